"""Where X and y come from: the `Dataset`, built-in data sets, and loaders of public ones.

>>> from ardvark.data import Dataset, available, load
>>> load("digits38")
Dataset('digits38', N=357, D=64, '3': 183, '8': 174)
"""

from .dataset import Dataset
from .loading import available, fetch, golub_split, known_name, load
from .tables import Table, table

__all__ = [
    "Dataset",
    "Table",
    "available",
    "fetch",
    "golub_split",
    "known_name",
    "load",
    "table",
]
