"""Measurements of this project beside its peers: `make bench`, or `python -m bench NAME` for one part."""
