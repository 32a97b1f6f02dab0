"""Public data sets, read in their official formats: `load(folder)` what is there, `fetch(folder)` what is not.

Each module holds a `SOURCE`: where the data comes from, under which licence, with which checksums. Importing this loads
NumPy alone. No other part of the package imports it.
"""

from bystander.datasets import cifar10, criteo, fashion_mnist, flights, tweets
from bystander.datasets.images import Images
from bystander.datasets.source import File, Source

__all__ = ["File", "Images", "Source", "cifar10", "criteo", "fashion_mnist", "flights", "tweets"]
