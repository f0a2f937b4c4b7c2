"""Chains that go on with earlier ones, on draws that say of which iteration they are."""

import numpy as np
import pytest

from ardvark.inference.target.backend import Earlier, Job
from ardvark.inference.target.chains import Resumed
from ardvark.inference.target.draws import Draws

FIRST, CHAINS = 512, 2


class Counted:
    """Chains after `FIRST` iterations; a draw is the number of its iteration, of both together."""

    attrs, seconds_compile = {"name": "counted"}, 1.5

    def __init__(self):
        self.open, self.iterations, self.every = False, 0, 1

    def __enter__(self):
        self.open = True
        return self

    def __exit__(self, *error):
        self.open = False

    def advance(self, iterations, every, update):
        self.iterations, self.every = iterations, every

    def read(self, first):
        at = np.arange(self.every, self.iterations + 1, self.every)
        draws = np.tile(FIRST + at[at > first], (CHAINS, 1))
        return {"x": draws}, {"lp": -draws}

    def last(self):
        return {"x": np.full(CHAINS, FIRST + self.iterations)}


def resumed(every, warm_up):
    """Chains that go on with draws `every` iterations apart, without those of the warm-up."""
    draws = np.tile(np.arange(warm_up + every, FIRST + 1, every), (CHAINS, 1))
    return Resumed(Counted(), Earlier({"x": draws}, {"lp": -draws}, {}, FIRST, every))


@pytest.mark.parametrize(("every", "apart"), [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4)])
@pytest.mark.parametrize("first", [192, 256, 600])
def test_draws_of_both_runs_are_in_order_and_equally_far_apart(every, apart, first):
    """Of 768 iterations, what was kept after `first`; earlier draws begin after their warm-up."""
    with resumed(every, 128) as chains:
        chains.advance(768, apart, lambda _: None)
        posterior, stats = chains.read(first)
        assert chains.last()["x"].tolist() == [768] * CHAINS
    wanted = np.arange(768, first, -apart)[::-1]
    for draws in (posterior["x"], -stats["lp"]):
        np.testing.assert_array_equal(draws, np.tile(wanted, (CHAINS, 1)))


def test_the_new_chains_end_with_the_block():
    chains = resumed(1, 0)
    assert (chains.attrs, chains.seconds_compile) == ({"name": "counted"}, 1.5)
    with chains as running:
        assert running is chains
        assert chains.chains.open
    assert not chains.chains.open


def test_room_for_more_or_fewer_draws_than_the_job_asks_for():
    """A job of three draws a chain: its own number by default, else what is said."""
    job = Job(seed=0, chains=CHAINS, draws=3)
    for size in (None, 2, 5):
        room = size or job.draws
        draws, piece = Draws(job, size), np.arange(2.0 * room).reshape(room, 2)
        for chain in range(CHAINS):
            draws.add(chain, 0, {"x": chain + piece}, {"lp": piece[:, 0]})
        posterior, stats = draws.read(0, room)
        np.testing.assert_array_equal(posterior["x"], [piece, 1 + piece])
        np.testing.assert_array_equal(stats["lp"], [piece[:, 0]] * CHAINS)
        assert draws.posterior["x"].shape == (CHAINS, room, 2)
