"""How a posterior is computed, and how two are compared: one file per algorithm."""

from .adoption import adopt
from .calibration.calibrate import calibrate
from .comparison.leave_one_out import loo, refit_loo
from .comparison.power_scaling import power_scaling
from .comparison.selected import Stability, selected, stability
from .comparison.sensitivity import Sensitivity, sensitivity
from .comparison.summary import Summary, summary
from .comparison.table import Comparison, compare
from .completion import complete
from .datatree import read, save
from .fitting import BACKENDS, fit, register_backend
from .prediction import predict
from .selection import select, selection_text

__all__ = [
    "BACKENDS",
    "Comparison",
    "Sensitivity",
    "Stability",
    "Summary",
    "adopt",
    "calibrate",
    "compare",
    "complete",
    "fit",
    "loo",
    "power_scaling",
    "predict",
    "read",
    "refit_loo",
    "register_backend",
    "save",
    "select",
    "selected",
    "selection_text",
    "sensitivity",
    "stability",
    "summary",
]
