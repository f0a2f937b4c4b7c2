"""Where X and y come from: the `Dataset`, built-in data sets, and loaders of public ones.

>>> from ardvark.data import Dataset, available, load
>>> load("digits38")
Dataset('digits38', N=357, D=64, '3': 183, '8': 174)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
