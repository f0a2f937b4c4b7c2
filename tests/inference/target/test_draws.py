"""Draws that are collected, thinned and handed over."""

import numpy as np
import pytest

from ardvark.inference.target.backend import Job
from ardvark.inference.target.draws import Draws

CHAINS, ROOM = 3, 20


def filled(count):
    draws = Draws(Job(seed=0, chains=CHAINS), ROOM)
    for chain in range(CHAINS):
        number = 100 * chain + np.arange(count)
        draws.add(chain, 0, {"x": number[:, None] + np.array([0.0, 0.5])}, {"lp": -number})
    return draws


def numbers(rows):
    return 100 * np.arange(CHAINS)[:, None] + np.asarray(rows)


@pytest.mark.parametrize("every", [1, 2, 3, 4])
def test_thinning_keeps_the_last_of_every_so_many(every):
    draws = filled(12)
    count = draws.thin(12, every)
    assert count == 12 // every
    posterior, stats = draws.read(0, count)
    want = numbers(np.arange(every - 1, 12, every))
    np.testing.assert_array_equal(posterior["x"][..., 0], want)
    np.testing.assert_array_equal(stats["lp"], -want)


@pytest.mark.parametrize("looked", [False, True])
@pytest.mark.parametrize(("first", "count"), [(0, ROOM), (0, 12), (5, 12), (5, ROOM), (12, 12)])
def test_taken_draws_are_what_was_read_in_arrays_of_their_own(first, count, looked):
    draws = filled(count)
    want = [{n: x.copy() for n, x in held.items()} for held in draws.read(first, count)]
    view = draws.read(first, count) if looked else None  # then they must be copied
    found = draws.take(first, count)
    for held, wanted in zip(found, want, strict=True):
        assert held.keys() == wanted.keys()
        for name, x in held.items():
            np.testing.assert_array_equal(x, wanted[name])
            assert x.flags.c_contiguous
            assert x.dtype == wanted[name].dtype
            if not looked:
                assert x.base is None  # the rest of the memory is freed
    assert draws.posterior == draws.sample_stats == {}
    assert (view is None) is not looked
