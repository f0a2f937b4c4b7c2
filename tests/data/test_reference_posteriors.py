"""Stored reference posteriors belong to the data sets of the registry, as they are read here."""

import pytest

import ardvark as av
from ardvark.data.sources import SOURCES
from ardvark.inference.references import references

FILES = {path: references.attributes(path) for path in references.files().values()}


@pytest.mark.parametrize(
    "path", [p for p, a in FILES.items() if a["data"] in SOURCES], ids=lambda path: path.stem
)
@pytest.mark.data
def test_a_stored_reference_is_of_the_data_as_they_are_read(shared, path):
    fixed = {"scale": "fixed"} if path.stem.endswith("-fixed") else {}
    problem = av.problem(FILES[path]["model"], FILES[path]["data"], **fixed)
    assert references.find(problem) == path
    eta = references.stored(problem)["posterior"]["eta"]
    assert eta.sizes["obs"] == SOURCES[FILES[path]["data"]].shape[0]
