"""How posteriors are computed and compared: one file per algorithm.

>>> from ardvark.inference import BACKENDS
>>> {name: method.KIND for name, method in BACKENDS.items() if method.KIND == "mcmc"}
{'exact': 'mcmc', 'nuts': 'mcmc', 'gibbs': 'mcmc'}

Names are imported when first used, so that a fit imports what it needs: ``__init__.pyi`` says where
from.
"""

import lazy_loader

from ardvark.common.declared import Settings, option

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += [Settings.__name__, option.__name__]
