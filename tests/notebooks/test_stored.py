"""Notebooks are stored executed and clean."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.notebooks.running import FOLDER

PATHS = sorted(FOLDER.glob("*.ipynb"))
LARGEST = 1_000_000  # bytes
# an absolute path of two names or more (an address has a colon or a slash before it), or a drive
MACHINE = re.compile(r"(?<![\w/:.<])/[\w.-]+/[\w.-]|[A-Z]:\\|site-packages")


def texts(output):
    """Every text of an output; pictures are not text."""
    if output.output_type == "stream":
        return [output.text]
    data = output.get("data", {})
    return [str(v) for k, v in data.items() if not k.startswith("image/")]


def flaws(notebook):
    """Return what a stored notebook must not have."""
    cells = [c for c in notebook.cells if c.cell_type == "code"]
    outputs = [o for c in cells for o in c.outputs]
    text = "\n".join(t for o in outputs for t in texts(o))
    found = {
        "not executed from top to bottom": [c.execution_count for c in cells]
        != list(range(1, len(cells) + 1)),
        "an error": any(o.output_type == "error" for o in outputs),
        "a warning or a log": any(o.get("name") == "stderr" for o in outputs),
        "a progress bar": "\r" in text,
        "a figure without its picture": any(
            t.startswith("<Figure") and "image/png" not in o.get("data", {})
            for o in outputs
            for t in texts(o)
        ),
        "a path of this machine": MACHINE.search(text) is not None,
        "the state of a widget": "widgets" in notebook.metadata
        or any("widget" in kind for o in outputs for kind in o.get("data", {})),
        "times of execution": any("execution" in c.metadata for c in cells),
        "an assert": any(re.search(r"^\s*assert\b", c.source, re.MULTILINE) for c in cells),
        "too large": len(nbformat.writes(notebook).encode()) > LARGEST,
    }
    return [what for what, there in found.items() if there]


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p.stem)
def test_a_notebook_is_stored_executed_and_clean(path):
    assert path.stat().st_size <= LARGEST
    assert flaws(nbformat.read(path, as_version=4)) == []


def stream(name, text):
    return new_output("stream", name=name, text=text)


FLAWED = {
    "not executed from top to bottom": {"execution_count": 2},
    "an error": {"outputs": [new_output("error", ename="E", evalue="e", traceback=[])]},
    "a warning or a log": {"outputs": [stream("stderr", "UserWarning")]},
    "a progress bar": {"outputs": [stream("stdout", "1 %\r2 %")]},
    "a figure without its picture": {
        "outputs": [new_output("execute_result", data={"text/plain": "<Figure size 1x1>"})]
    },
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
}


@pytest.mark.parametrize("flaw", FLAWED)
def test_a_flaw_is_seen(flaw):
    clean = {"source": "1", "execution_count": 1, "outputs": [stream("stdout", "1")]}
    assert flaws(new_notebook(cells=[new_code_cell(**clean), new_markdown_cell("assert")])) == []
    assert flaws(new_notebook(cells=[new_code_cell(**(clean | FLAWED[flaw]))])) == [flaw]


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
