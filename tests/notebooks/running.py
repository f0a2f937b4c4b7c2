"""Execute a notebook and look at its variables: a student's page shows no `assert`.

With small settings (ARDVARK_QUICK) what does not rest on a few draws is checked, at full size
everything. Numbers that come from a NumPy generator with a fixed seed, from a grid or from a file
are the same in every run; those of a sampler are compared with limits far outside their Monte Carlo
error.
"""

import pickle
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell

FOLDER = Path(__file__).parents[2] / "notebooks"
DATA = FOLDER / "data"  # what scripts have computed and notebooks read

SIZES = pytest.mark.parametrize(
    "full",
    [pytest.param(False, marks=pytest.mark.course), pytest.param(True, marks=pytest.mark.slow)],
)
"""The quick form is run by `make course`, the full one by `make slow`."""


def values(name, folder, *expressions):
    """Execute a notebook and return what these expressions are at its end."""
    notebook = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    file = str(folder / "values.pickle")
    code = f"import pickle\nwith open({file!r}, 'wb') as f:\n    "
    code += f"pickle.dump([eval(e) for e in {expressions!r}], f)"
    notebook.cells.append(new_code_cell(code))
    resources = {"metadata": {"path": FOLDER}}
    NotebookClient(notebook, timeout=600, resources=resources).execute()
    return pickle.loads(Path(file).read_bytes())
