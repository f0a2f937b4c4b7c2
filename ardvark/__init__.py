"""ardvark: a zoo of doubly sparse Bayesian classifiers in PyMC.

>>> import ardvark as av
>>> problem = av.problem("rfvm", "digits38")
>>> exact = av.fit(problem, "nuts")
>>> paper = av.fit(problem, "paper")
>>> av.compare({"nuts": exact, "paper": paper}, reference="nuts", problem=problem).table

Names are imported when first used, so that ``import ardvark`` does not load PyMC.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_MODULES = ("data", "inference", "models")
if any((Path(__file__).parent / name).is_file() for name in _MODULES):
    raise ImportError(
        "this checkout has no symbolic links: ardvark/models, ardvark/inference and ardvark/data "
        "are plain files. Run `git config core.symlinks true` and `git checkout -- ardvark` "
        "(on Windows with developer mode on), or install the package from a wheel."
    )
_HOME = {
    "InputError": "ardvark.common.validate",
    "Dataset": "ardvark.data",
    "available": "ardvark.data",
    "load": "ardvark.data",
    "Problem": "ardvark.models",
    "ZOO": "ardvark.models",
    "problem": "ardvark.models",
    "BACKENDS": "ardvark.inference",
    "Comparison": "ardvark.inference",
    "adopt": "ardvark.inference",
    "calibrate": "ardvark.inference",
    "compare": "ardvark.inference",
    "complete": "ardvark.inference",
    "fit": "ardvark.inference",
    "loo": "ardvark.inference",
    "power_scaling": "ardvark.inference",
    "predict": "ardvark.inference",
    "refit_loo": "ardvark.inference",
    "register_backend": "ardvark.inference",
    "select": "ardvark.inference",
    "selected": "ardvark.inference",
    "selection_text": "ardvark.inference",
    "sensitivity": "ardvark.inference",
    "stability": "ardvark.inference",
    "summary": "ardvark.inference",
}

__all__ = [
    "BACKENDS",
    "ZOO",
    "Comparison",
    "Dataset",
    "InputError",
    "Problem",
    "__version__",
    "adopt",
    "available",
    "calibrate",
    "compare",
    "complete",
    "data",
    "fit",
    "inference",
    "load",
    "loo",
    "models",
    "power_scaling",
    "predict",
    "problem",
    "refit_loo",
    "register_backend",
    "select",
    "selected",
    "selection_text",
    "sensitivity",
    "stability",
    "summary",
]

if TYPE_CHECKING:
    from ardvark import data, inference, models
    from ardvark.common.validate import InputError
    from ardvark.data import Dataset, available, load
    from ardvark.inference import (
        BACKENDS,
        Comparison,
        adopt,
        calibrate,
        compare,
        complete,
        fit,
        loo,
        power_scaling,
        predict,
        refit_loo,
        register_backend,
        select,
        selected,
        selection_text,
        sensitivity,
        stability,
        summary,
    )
    from ardvark.models import ZOO, Problem, problem


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"ardvark.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'ardvark' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
