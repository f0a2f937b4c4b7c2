# The public names and where each is from: `__init__.py` imports a name from there when it is first
# used, and editors and type checkers read this file.
from . import data, inference, models
from .common.validate import InputError
from .data import Dataset, available, load
from .inference import (
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
from .models import ZOO, Problem, problem

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

__version__: str
