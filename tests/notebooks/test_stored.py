"""Notebooks are stored executed and clean, and have the form that a course needs."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.notebooks.rules import ALSO, LARGEST, LEVELS, PACKAGES, exercises, flaws, private, raw
from tests.notebooks.running import FOLDER

PATHS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_a_notebook_is_stored_executed_and_clean(path):
    assert path.stat().st_size <= LARGEST
    assert flaws(nbformat.read(path, as_version=4), ALSO.get(path.stem, set())) == []


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_a_notebook_has_three_exercises_with_solutions(path):
    assert exercises(nbformat.read(path, as_version=4)) == []


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_a_notebook_says_first_what_it_asks_of_a_reader(path):
    first = nbformat.read(path, as_version=4).cells[0].source
    assert re.match(r"# \w", first)
    assert re.search(r"\d+ minutes|\bhour", first)
    before = re.search(r"\]\(\d\d_\w+\.ipynb\)", first)  # what to read before this
    assert before or "Prerequisites" in first


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_the_links_of_a_notebook_lead_somewhere(path):
    cells = nbformat.read(path, as_version=4).cells
    text = "\n".join(c.source for c in cells if c.cell_type == "markdown")
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", text)
    assert [link for link in links if not (FOLDER / link).exists()] == []


@pytest.mark.parametrize("name", ["05_pfcvm", "06_jcfo"])
def test_an_algorithm_from_scratch_has_at_most_60_lines(name):
    cells = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4).cells
    algorithm = [c.source for c in cells if "algorithm" in c.metadata.get("tags", ())]
    lines = [line for source in algorithm for line in source.splitlines() if line.strip()]
    assert 30 < len(lines) <= 60


def stream(name, text):
    return new_output("stream", name=name, text=text)


def result(text, **data):
    return new_output("execute_result", data={"text/plain": text} | data)


PICTURE = result("<Figure size 1x1>", **{"image/png": "aGVsbG8="})
ALT = "Two lines cross where both are zero."
FLAWED = {
    "not executed from top to bottom": {"execution_count": 2},
    "an error": {"outputs": [new_output("error", ename="E", evalue="e", traceback=[])]},
    "a warning or a log": {"outputs": [stream("stderr", "UserWarning")]},
    "a progress bar": {"outputs": [stream("stdout", "1 %\r2 %")]},
    "a figure without its picture": {"outputs": [result("<Figure size 1x1>")]},
    "a path of this machine": {
        "outputs": [new_output("display_data", data={"text/html": "<a href='/home/me/x'>"})]
    },
    "the state of a widget": {
        "outputs": [
            new_output("display_data", data={"application/vnd.jupyter.widget-view+json": {}})
        ]
    },
    "times of execution": {"metadata": {"execution": {}}},
    "an assert": {"source": "x = 1\nassert x"},
    "too large": {"outputs": [stream("stdout", "x" * LARGEST)]},
    "a raw repr": {"outputs": [result("Text(0.5, 1.0, 'a title')")]},
    "a picture without alt text": {"outputs": [PICTURE]},
    "two pictures in a cell, which has one alt text": {
        "outputs": [PICTURE, PICTURE],
        "metadata": {"alt": ALT},
    },
    "alt text without a picture": {"metadata": {"alt": ALT}},
    "something private": {"source": "from ardvark.inference.fits.diagnostics import rhat"},
}


@pytest.mark.parametrize("flaw", FLAWED)
def test_a_flaw_is_seen(flaw):
    clean = {"source": "1", "execution_count": 1, "outputs": [stream("stdout", "1")]}
    assert flaws(new_notebook(cells=[new_code_cell(**clean), new_markdown_cell("assert")])) == []
    assert flaws(new_notebook(cells=[new_code_cell(**(clean | FLAWED[flaw]))])) == [flaw]


@pytest.mark.parametrize(
    "output",
    [
        result("array([1, 2])"),
        result("[<matplotlib.lines.Line2D at 0x7f>]"),
        result("np.float64(1.5)"),
        result("(Dataset('a', N=1),\n Dataset('b', N=2))"),
        result("{'a': 1,\n 'b': 2,\n 'c': 3,\n 'd': 4}"),
        result("<xarray.DataTree>", **{"text/html": "<div class='xr-wrap'>"}),
        stream("stdout", "a picture:\nPicture(figure=1, alt='a')"),
        stream("stdout", "<ardvark.fit object at 0x7f>"),
    ],
)
def test_a_raw_repr_is_seen(output):
    assert raw(output)


@pytest.mark.parametrize(
    "output",
    [
        result("0.5"),
        result("'here'"),
        result("   a  b\n0  1  2\n1  1  2\n2  3  4", **{"text/html": "<table>"}),
        PICTURE,
        stream("stdout", "P(y = 1) differs by 0.5\na\nb\nc\nd"),
        stream("stdout", "def build():\n    with pm.Model(coords=coords):\n        np.zeros(3)"),
    ],
)
def test_what_is_written_for_a_reader_is_no_raw_repr(output):
    assert not raw(output)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import ardvark as av\nav.fit(1)\nav.models.ZOO['rfvm'].title\nav.ZOO.x.y", []),
        ("from ardvark.sklearn import SparseBayesClassifier\nfrom ardvark.data import load", []),
        ("import os\nimport matplotlib.pyplot as plt\nfrom pathlib import Path", []),
        ("import ardvark as av\nav.inference.comparison.report.plots.image(1)", ["report"]),
        ("from ardvark.models.parts.ard import draw", ["parts"]),
        ("av.rhat_of_mine(1)", ["rhat_of_mine"]),
        ("problem._model", ["_model"]),
        ("import torch", ["torch"]),
        ("from sklearn.svm import SVC", ["sklearn.svm"]),
    ],
)
def test_private_names_are_seen(source, expected):
    found = private(source, PACKAGES)
    assert bool(found) == bool(expected)
    assert all(any(e in name for name in found) for e in expected)


def solved():
    """Return the cells of a summary and of three exercises in the right form."""
    cells = [new_markdown_cell("## Summary"), new_markdown_cell("## Exercises")]
    for level in LEVELS:
        folded = "<details><summary>Solution</summary>\n\nIt is 1.\n\n</details>"
        hidden = {"tags": ["solution"], "jupyter": {"source_hidden": True}}
        code = new_code_cell("1", execution_count=1, outputs=[result("1")], metadata=hidden)
        cells += [new_markdown_cell(f"{level}\n\nHow much?"), new_markdown_cell(folded), code]
    return cells


WRONG = {
    "summary": lambda cells: cells.pop(0),
    "order": lambda cells: cells.insert(0, cells.pop(1)),
    "exercise": lambda cells: cells.__delitem__(slice(-3, None)),
    "text": lambda cells: cells.pop(3),
    "code": lambda cells: cells.pop(4),
    "tag": lambda cells: cells[4].metadata.pop("tags"),
    "folded": lambda cells: cells[4].metadata.pop("jupyter"),
    "executed": lambda cells: cells[4].update(execution_count=None),
    "output": lambda cells: cells[4].update(outputs=[]),
}
"""What takes one part of the right form away, or makes it wrong."""


def test_exercises_in_the_right_form_lack_nothing():
    assert exercises(new_notebook(cells=solved())) == []


@pytest.mark.parametrize("part", WRONG)
def test_what_exercises_lack_is_seen(part):
    cells = solved()
    WRONG[part](cells)
    assert len(exercises(new_notebook(cells=cells))) == 1


@pytest.mark.course
def test_storing_executes_in_place_and_twice_is_once(tmp_path):
    spec = importlib.util.spec_from_file_location("store", FOLDER / "store.py")
    store = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(store)
    (tmp_path / "beside.txt").write_text("here")
    cells = [new_code_cell("open('beside.txt').read()"), new_code_cell("print(1)")]
    path = tmp_path / "small.ipynb"
    nbformat.write(new_notebook(cells=cells, metadata={"widgets": {}}), path)
    store.store(path)
    once, notebook = path.read_bytes(), nbformat.read(path, as_version=4)
    assert flaws(notebook) == []
    assert notebook.cells[0].outputs[0].data["text/plain"] == "'here'"
    store.store(path)
    assert path.read_bytes() == once


def test_every_notebook_has_a_test_of_its_claims():
    tests = Path(__file__).parent.glob("test_[0-9]*.py")
    assert {path.stem.removeprefix("test_") for path in tests} == {path.stem for path in PATHS}
