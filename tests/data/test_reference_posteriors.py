"""Stored reference posteriors belong to the data sets of the registry, as they are read here."""

import pytest

from ardvark.data.sources import SOURCES
from ardvark.inference.references import references
from ardvark.inference.references.declared import REFERENCES


@pytest.mark.parametrize("name", [n for n, r in REFERENCES.items() if r.data in SOURCES])
@pytest.mark.data
def test_a_stored_reference_is_of_the_data_as_they_are_read(shared, name):
    problem = REFERENCES[name].problem()
    assert references.find(problem) == references.files()[name]
    eta = references.stored(problem)["posterior"]["eta"]
    assert eta.sizes["obs"] == SOURCES[REFERENCES[name].data].shape[0]
