"""ardvark: a zoo of doubly sparse Bayesian classifiers in PyMC.

>>> import ardvark as av
>>> problem = av.problem("rfvm", "digits38")
>>> exact = av.fit(problem, "nuts")
>>> paper = av.fit(problem, "paper")
>>> av.compare({"nuts": exact, "paper": paper}, reference="nuts", problem=problem).table

Names are imported when first used, so that ``import ardvark`` does not load PyMC: ``__init__.pyi``
says where from.
"""

from pathlib import Path

import lazy_loader

if any((Path(__file__).parent / name).is_file() for name in ("data", "inference", "models")):
    raise ImportError(
        "this checkout has no symbolic links: ardvark/models, ardvark/inference and ardvark/data "
        "are plain files. Run `git config core.symlinks true` and `git checkout -- ardvark` "
        "(on Windows with developer mode on), or install the package from a wheel."
    )

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__all__ += ["__version__"]
