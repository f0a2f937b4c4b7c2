# The public names, a line each, and where they are from: see `ardvark/__init__.pyi`.
from .cleaned import Table as Table
from .dataset import Dataset as Dataset
from .loading import available as available
from .loading import fetch as fetch
from .loading import golub_split as golub_split
from .loading import known_name as known_name
from .loading import load as load
from .tables import table as table

__all__: list[str]
