# The public names, a line each, and where they are from: see `ardvark/__init__.pyi`.
import ardvark.common.declared as declared

from .checks.calibrate import calibrate as calibrate
from .checks.sensitivity import Sensitivity as Sensitivity
from .checks.sensitivity import sensitivity as sensitivity
from .choosing.choice import Choice as Choice
from .choosing.choose import choose as choose
from .comparison.report.summary import Summary as Summary
from .comparison.report.summary import summary as summary
from .comparison.table import Comparison as Comparison
from .comparison.table import compare as compare
from .fits.datatree import read as read
from .fits.datatree import save as save
from .fits.diagnostics import khat as khat
from .fits.effects import effects as effects
from .fits.selection import select as select
from .fits.selection_text import selection_text as selection_text
from .methods.adoption import adopt as adopt
from .methods.prediction import predict as predict
from .methods.registry import BACKENDS as BACKENDS
from .methods.registry import register_backend as register_backend
from .methods.resume import resume as resume
from .methods.run import fit as fit
from .panels.panel import panel as panel
from .panels.result import Panel as Panel
from .target.backend import Result as Result
from .target.backend import continuous_only as continuous_only

Settings = declared.Settings
option = declared.option

__all__: list[str]
