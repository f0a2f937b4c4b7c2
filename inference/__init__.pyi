# The public names, a line each, and where they are from: see `ardvark/__init__.pyi`.
import ardvark.common.declared as declared

from .calibration.calibrate import calibrate as calibrate
from .choosing.choice import Choice as Choice
from .choosing.choose import choose as choose
from .choosing.stack import Stack as Stack
from .comparison.explore import explore as explore
from .comparison.table import Comparison as Comparison
from .comparison.table import compare as compare
from .contract.backend import Result as Result
from .contract.backend import continuous_only as continuous_only
from .fits.datatree import read as read
from .fits.datatree import save as save
from .fits.diagnostics import khat as khat
from .fits.selection import select as select
from .fits.selection_text import effects as effects
from .fits.selection_text import selection_text as selection_text
from .fitting.adoption import adopt as adopt
from .fitting.completion import complete as complete
from .fitting.prediction import predict as predict
from .fitting.registry import BACKENDS as BACKENDS
from .fitting.registry import register_backend as register_backend
from .fitting.resume import resume as resume
from .fitting.run import fit as fit
from .panels.panel import panel as panel
from .panels.result import Panel as Panel
from .refits.leave_one_out import loo as loo
from .refits.leave_one_out import refit_loo as refit_loo
from .refits.power_scaling import power_scaling as power_scaling
from .refits.prior_number import PriorNumber as PriorNumber
from .refits.prior_number import prior_number as prior_number
from .refits.second_opinion import SecondOpinion as SecondOpinion
from .refits.second_opinion import second_opinion as second_opinion
from .refits.sensitivity import Sensitivity as Sensitivity
from .refits.sensitivity import sensitivity as sensitivity
from .refits.stability import Stability as Stability
from .refits.stability import selected as selected
from .refits.stability import stability as stability
from .report.summary import Summary as Summary
from .report.summary import summary as summary

Settings = declared.Settings
option = declared.option

__all__: list[str]
