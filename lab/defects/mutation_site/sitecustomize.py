"""With this folder on PYTHONPATH, `ardvark` is the copy of the project that this file lies in.

It goes before an editable install, in the processes that the tests start as well. A defect that
fills the memory shall fail, and not take the machine with it: a process gets half of what there is.
"""

import importlib.util
import os
import resource
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
FOLDERS = {f"ardvark.{name}": ROOT / name for name in ("models", "inference", "data")}
FOLDERS["ardvark"] = ROOT / "ardvark"


class Copy:
    """Finds the packages of pyproject's package-dir; their modules are then found beside them."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name not in FOLDERS:
            return None
        folder = FOLDERS[name]
        return importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )


sys.meta_path.insert(0, Copy)
memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
resource.setrlimit(resource.RLIMIT_DATA, (memory // 2, resource.getrlimit(resource.RLIMIT_DATA)[1]))
