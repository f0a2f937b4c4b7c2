"""How a posterior is computed, and how two are compared: one file per algorithm."""

from ardvark.inference.comparison import Comparison, compare
from ardvark.inference.datatree import read, save
from ardvark.inference.fitting import BACKENDS, fit, register_backend
from ardvark.inference.leave_one_out import loo, refit_loo
from ardvark.inference.prediction import predict

__all__ = [
    "BACKENDS",
    "Comparison",
    "compare",
    "fit",
    "loo",
    "predict",
    "read",
    "refit_loo",
    "register_backend",
    "save",
]
