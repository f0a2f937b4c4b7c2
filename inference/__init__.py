"""How posteriors are computed and compared: one file per algorithm.

>>> from ardvark.inference import BACKENDS
>>> {name: method.KIND for name, method in BACKENDS.items() if method.KIND == "mcmc"}
{'exact': 'mcmc', 'nuts': 'mcmc', 'mams': 'mcmc', 'gibbs': 'mcmc'}
"""

from ardvark.common.declared import Settings, option

from .calibration.calibrate import calibrate
from .comparison.explore import explore
from .comparison.table import Comparison, compare
from .contract.backend import Result, continuous_only
from .fits.datatree import read, save
from .fits.diagnostics import khat
from .fits.selection import select
from .fits.selection_text import effects, selection_text
from .fitting.adoption import adopt
from .fitting.completion import complete
from .fitting.prediction import predict
from .fitting.registry import BACKENDS, register_backend
from .fitting.resume import resume
from .fitting.run import fit
from .refits.leave_one_out import loo, refit_loo
from .refits.power_scaling import power_scaling
from .refits.second_opinion import SecondOpinion, second_opinion
from .refits.sensitivity import Sensitivity, sensitivity
from .refits.stability import Stability, selected, stability
from .report.summary import Summary, summary

__all__ = [
    "BACKENDS",
    "Comparison",
    "Result",
    "SecondOpinion",
    "Sensitivity",
    "Settings",
    "Stability",
    "Summary",
    "adopt",
    "calibrate",
    "compare",
    "complete",
    "continuous_only",
    "effects",
    "explore",
    "fit",
    "khat",
    "loo",
    "option",
    "power_scaling",
    "predict",
    "read",
    "refit_loo",
    "register_backend",
    "resume",
    "save",
    "second_opinion",
    "select",
    "selected",
    "selection_text",
    "sensitivity",
    "stability",
    "summary",
]
