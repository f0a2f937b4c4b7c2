"""ardvark: a zoo of doubly sparse Bayesian classifiers in PyMC.

>>> import ardvark as av
>>> problem = av.problem("pfcvm", av.load("digits38").take(range(40)))
>>> fit = av.fit(problem, "paper", random_seed=0, progressbar=False)  # "exact" is the posterior
>>> fit.attrs["method"], fit.attrs["status"]
('pfcvm_lp', 'finished')
>>> av.compare({"paper": fit}, problem=problem)
Comparison of 1 fit of pfcvm on digits38, reference: none
40 rows, 19 of them '8'; 64 features.
...
paper: mean effects per sd towards '8', in log odds
...
paper           [not judged] ...
paper: there is no exact posterior to compare it with.
try: ardvark.fit(problem, "exact")
...

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
