"""Placeholder until the run below."""
