"""When a run ends and what it leaves, on chains whose draws are made here, with known faults."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from ardvark.inference.fits.mixing import mixing
from ardvark.inference.samplers import driver
from ardvark.inference.samplers.driver import Run, judgements
from ardvark.inference.target.backend import Earlier
from ardvark.inference.target.length import Length
from ardvark.inference.target.reasons import Reason
from tests.support import rng

ASKED = Length(ess=1000.0, limit=4096, room=10**6, warm_up=0.25)


class Made:
    """Chains of an autoregression with unit variance around the means of each chain."""

    tune, seconds_compile = 0, 0.0

    def __init__(self, random, keep=0.0, means=(0.0, 0.0, 0.0, 0.0), count=3):
        self.random, self.keep, self.means = random, keep, np.asarray(means)[:, None]
        self.x = random.normal(size=(4, count)) + self.means
        self.every, self.iterations = 1, 0
        self.held = np.empty((4, 0, count))

    def advance(self, iterations, every, update):
        assert every % self.every == 0
        self.held = self.held[:, every // self.every - 1 :: every // self.every]
        new = []
        for at in range(self.iterations + 1, iterations + 1):
            fresh = self.random.normal(size=self.x.shape)
            self.x = self.means + self.keep * (self.x - self.means)
            self.x += math.sqrt(1.0 - self.keep**2) * fresh
            if at % every == 0:
                new.append(self.x)
                update(at)
        self.held = np.concatenate([self.held, np.stack(new, axis=1)], axis=1)
        self.iterations, self.every = iterations, every

    def read(self, first):
        return {"eta": self.held[:, first // self.every :]}, {}

    def take(self, first):
        return self.read(first)

    def last(self):
        return {"eta": self.x}


def judge(posterior):
    return mixing(None, posterior)


def over(chains, asked=ASKED, judge=judge, **given):
    """A run of these chains that has ended."""
    run = Run(chains, asked)
    run.go(judge, **given)
    return run


def test_judgements_are_at_powers_of_two_and_three_halves_of_them():
    found = [*itertools.islice(judgements(), 7)]
    assert found == [256, 384, 512, 768, 1024, 1536, 2048]


@pytest.mark.parametrize("room", [300, 667, 1334])
def test_what_is_held_fits_the_room_and_is_more_than_half_of_it(room):
    asked = replace(ASKED, limit=10**6, room=room)
    for iterations in itertools.islice(judgements(), 12):
        every = asked.apart(iterations)
        assert iterations // every <= room
        assert every == 1 or iterations // every > room // 2
        assert iterations % every == 0


@pytest.mark.statistical
def test_chains_that_agree_are_stopped_once_they_have_the_draws():
    """Independent draws: ESS is their number, at 384 iterations 4 x 288 = 1152.

    Of three quantities and eight half-chains the largest R-hat is below 1.01 with a probability
    above 0.99 from then on (the module's docstring), so that two judgements of the next six fail
    to pass in a row with one below 1e-9.
    """
    chains = Made(rng(1))
    run = over(chains)
    assert run.ended == "converged"
    assert run.missing == []
    assert 384 < run.iterations <= 2048
    assert run.take()[0]["eta"].shape[1] == run.iterations * 3 // 4  # without the warm-up
    assert run.trace["iterations"][-1] == run.iterations


@pytest.mark.statistical
def test_slow_chains_run_longer():
    """An autocorrelation of 0.8 leaves a ninth of the draws: ESS 1000 at 4 x 0.75 n / 9.

    That is n = 3000, and the estimate of ESS has an error of about 10 % there.
    """
    run = over(Made(rng(2), keep=0.8), replace(ASKED, limit=20000))
    assert run.ended == "converged"
    assert 2048 <= run.iterations <= 12288


@pytest.mark.parametrize("means", [(0, 0, 3, 3), (0, 0, 0, 3)], ids=["two", "one"])
def test_chains_in_another_mode_are_not_stopped(means):
    run = over(Made(rng(3), means=means))
    assert run.ended == "limit"
    assert run.iterations == ASKED.limit
    assert run.missing[0].code == "rhat"
    assert min(run.trace["rhat"]) > 1.1


class Visits(Made):
    """Chains that change between two copies of a feature about once in 700 iterations."""

    def advance(self, iterations, every, update):
        before = self.iterations
        super().advance(iterations, every, update)
        if before == 0:
            self.copy = np.arange(4) % 2
            self.trail = []
        for _ in range(iterations - before):
            leaves = self.random.random(4) < 1 / 700
            self.copy = np.where(leaves, 1 - self.copy, self.copy)
            self.trail.append(self.copy)

    def read(self, first):
        found, stats = super().read(first)
        copies = np.stack(self.trail, axis=1)[:, first:]
        return {"eta": found["eta"] + 4.0 * copies[..., None]}, stats


@pytest.mark.statistical
def test_chains_that_seldom_change_copies_are_not_stopped_early():
    """Half-stuck chains: over 3072 iterations each changes four times, so ESS is about ten."""
    run = over(Visits(rng(4)))
    assert run.ended == "limit"
    assert "ess" in [reason.code for reason in run.missing]


def scripted(outcomes):
    """A judge that says what it is told."""
    good, bad = (mixing(None, {"eta": rng(5).normal(size=(4, n, 1))}) for n in (5000, 50))
    told = iter(outcomes)
    return lambda posterior: good if next(told) else bad


@pytest.mark.parametrize(
    ("outcomes", "iterations"),
    [((1, 1), 384), ((1, 0, 1, 1), 768), ((0, 1, 0, 1, 1), 1024)],
    ids=["at once", "one by chance", "two by chance"],
)
def test_two_judgements_in_a_row_must_pass(outcomes, iterations):
    run = over(Made(rng(6)), judge=scripted(outcomes))
    assert (run.ended, run.iterations) == ("converged", iterations)


def test_a_run_that_ends_after_one_judgement_that_passed_says_so():
    count = len(list(itertools.takewhile(lambda n: n <= ASKED.limit, judgements())))
    run = over(Made(rng(6)), judge=scripted([0] * (count - 1) + [1]))
    assert (run.ended, run.iterations) == ("limit", ASKED.limit)
    assert run.missing == [Reason("one pass", {"passes": 2})]


def test_the_clock_ends_a_run_before_a_leg_that_would_not_fit(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(driver.time, "perf_counter", lambda: clock[0])

    class Slow(Made):
        def advance(self, iterations, every, update):
            clock[0] += 0.1 * (iterations - self.iterations)
            super().advance(iterations, every, update)

    def run(seconds):
        clock[0] = 0.0
        chains = Slow(rng(7), means=(0, 0, 0, 3))
        return over(chains, replace(ASKED, seconds=seconds)), clock[0]

    found, spent = run(60.0)  # 0.1 s an iteration: 512 take 51.2 s, and 768 would take 76.8 s
    assert (found.ended, found.iterations) == ("time", 512)
    assert spent == pytest.approx(51.2)
    assert found.missing[0].code == "rhat"
    assert run(1.0)[0].iterations == 256  # the first leg is always run
    assert run(1000.0)[0].ended == "limit"


def test_progress_never_says_that_it_is_done_and_says_what_is_there():
    told = []
    chains = Made(rng(8), means=(0, 0, 0, 3))
    over(chains, update=lambda share, note="": told.append((share, note)))
    assert all(0.0 <= share < 1.0 for share, _ in told)
    assert told[0] == (1 / 256, "")  # nothing is known before the first judgement
    assert any(0.2 < share < 0.9 for share, _ in told)
    assert "of 1000, R-hat" in told[-1][1]


def test_a_run_of_so_many_draws_is_not_judged():
    run = over(Made(rng(10)), Length.of_draws(40, every=3), judge=None)
    result = run.result(*run.take())
    assert (run.iterations, run.every, run.trace) == (120, 3, {})
    assert result.posterior["eta"].shape[1] == 40
    assert not result.judged
    assert result.details == {}


# --- going on -------------------------------------------------------------------------------------

BEGAN, CHAINS = 512, 2


class Counted:
    """Chains begun after `BEGAN` iterations; a draw is the number of its iteration in both."""

    tune, seconds_compile = 0, 1.5

    def __init__(self):
        self.iterations, self.every = 0, 1

    def advance(self, iterations, every, update):
        self.iterations, self.every = iterations, every

    def read(self, first):
        at = np.arange(self.every, self.iterations + 1, self.every)
        draws = np.tile(BEGAN + at[at > first], (CHAINS, 1))
        return {"x": draws}, {"lp": -draws}

    def last(self):
        return {"x": np.full(CHAINS, BEGAN + self.iterations)}


@pytest.mark.parametrize(("every", "apart"), [(1, 1), (1, 2), (1, 4), (2, 2), (2, 4)])
@pytest.mark.parametrize("first", [192, 256, 600])
@pytest.mark.parametrize("told", [False, True], ids=["apart", "at"])
def test_draws_of_both_runs_are_in_order_and_equally_far_apart(every, apart, first, told):
    """Of 768 iterations, what was kept after `first`; earlier draws begin after their warm-up."""
    at = np.arange(128 + every, BEGAN + 1, every)
    draws = np.tile(at, (CHAINS, 1))
    earlier = Earlier({"x": draws}, {"lp": -draws}, {}, BEGAN, every, at if told else None)
    length = replace(ASKED, room=768 // apart, every=every, warm_up=first / 768, least=10**6)
    run = Run(Counted(), replace(length, limit=768), earlier)
    run.go(lambda posterior: judge({"x": posterior["x"] + 0.0}))
    assert run.trace["iterations"] == [768]
    wanted = np.arange(768, first, -apart)[::-1]
    posterior, stats = run.take()
    for found in (posterior["x"], -stats["lp"]):
        np.testing.assert_array_equal(found, np.tile(wanted, (CHAINS, 1)))
    result = run.result(posterior, stats)
    assert result.details["last_x"].tolist() == [768] * CHAINS
    assert (result.attrs["every"], result.attrs["reproducible"]) == (apart, 0)
