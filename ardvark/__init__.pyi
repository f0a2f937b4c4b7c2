# The public names, a line each, and where they are from: `__init__.py` imports a name from there
# when it is first used, and editors and type checkers read this file. With `as` a stub makes a name
# public.
from . import data as data
from . import inference as inference
from . import models as models
from .common.validate import InputError as InputError
from .data import Dataset as Dataset
from .data import load as load
from .data import table as table
from .inference import adopt as adopt
from .inference import calibrate as calibrate
from .inference import choose as choose
from .inference import compare as compare
from .inference import effects as effects
from .inference import fit as fit
from .inference import panel as panel
from .inference import predict as predict
from .inference import read as read
from .inference import resume as resume
from .inference import save as save
from .inference import select as select
from .inference import sensitivity as sensitivity
from .inference import summary as summary
from .models import ZOO as ZOO
from .models import Problem as Problem
from .models import problem as problem

__all__: list[str]
__version__: str
