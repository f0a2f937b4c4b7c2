"""Chains by nutpie whose draws are taken as they come: none is lost, shifted or held in vain."""

import threading
import time
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

from ardvark.inference.samplers.gradient import nuts
from ardvark.inference.samplers.gradient.tap import Tap
from ardvark.inference.target.backend import FitFailed, Job
from ardvark.inference.target.chains import FREE
from ardvark.inference.target.density import Density
from ardvark.inference.target.draws import Draws
from ardvark.inference.target.length import Length
from ardvark.inference.target.target import Target
from tests.support import seed

pytestmark = pytest.mark.timeout(120)  # a chain that waits for nothing would wait for ever
JOB = Job(seed=seed(1), chains=3)
OPTIONS = nuts.Options(tune=20, target_accept=0.8)


@pytest.fixture(scope="module")
def target():
    with pm.Model() as model:
        x = pm.Normal("x", shape=3)
        pm.Deterministic("double", 2.0 * x)
    return Target(model)


@pytest.fixture(scope="module")
def funnel():
    with pm.Model() as model:
        v = pm.Normal("v", 0.0, 3.0)
        pm.Normal("x", 0.0, pm.math.exp(0.5 * v), shape=9)
    return Target(model)


def silent(done, note=""):
    pass


def run(target, legs, options=OPTIONS, job=JOB, start=None, room=128):
    with nuts.chains(target, options, job, Length(limit=128, room=room), start) as chains:
        for iterations, every in legs:
            chains.advance(iterations, every, silent)
            assert [t.calls for t in chains.taps] == [chains.tune + iterations] * job.chains
        return chains.take(0), chains.last()[FREE], chains


def test_thinned_draws_are_every_so_many_th_of_the_same_chain(target):
    (dense, stats), last, _ = run(target, [(96, 1)])
    (thin, thin_stats), same, _ = run(target, [(16, 1), (32, 2), (48, 2), (96, 8)], room=24)
    for name, x in (dense | stats).items():
        np.testing.assert_array_equal((thin | thin_stats)[name], x[:, 7::8], err_msg=name)
    np.testing.assert_array_equal(same, last)
    np.testing.assert_array_equal(dense["double"], 2.0 * dense["x"])
    np.testing.assert_array_equal(last, dense["x"][:, -1])  # x is its own unconstrained vector


def test_the_draws_are_those_that_nutpie_itself_would_store(target):
    """Of one chain under the same seed: its own trace, of one call that is never held up."""
    job = replace(JOB, chains=1)
    (posterior, stats), _, _ = run(target, [(32, 1), (64, 1)], job=job)
    (number,) = np.random.SeedSequence(job.seed).generate_state(1).tolist()
    whole = nuts.Whole(target, OPTIONS, replace(job, seed=number))
    whole.advance(64, 1, silent)
    stored, statistics = whole.take(0)
    assert posterior.keys() == stored.keys()
    for name, x in (posterior | stats).items():
        np.testing.assert_array_equal(x, (stored | statistics)[name], err_msg=name)


def test_chains_that_start_again_take_new_draws_from_the_first_on(funnel, monkeypatch):
    """More than one transition in a thousand diverges: twice the tuning, and smaller steps."""
    monkeypatch.setattr(nuts.Chains, "targets", (0.5, 0.9))  # with steps that are too long
    (posterior, stats), last, chains = run(funnel, [(64, 1), (128, 2)], nuts.Options(tune=20))
    assert (chains.tune, chains.attrs["target_accept"]) == (40, 0.9)
    given = nuts.Options(tune=40, target_accept=0.9)
    (want, want_stats), same, _ = run(funnel, [(128, 2)], given)
    for name, x in (want | want_stats).items():
        np.testing.assert_array_equal((posterior | stats)[name], x, err_msg=name)
    np.testing.assert_array_equal(last, same)


def test_chains_begin_where_others_ended(target):
    _, last, _ = run(target, [(16, 1)])
    _, again, chains = run(target, [(16, 2)], start={FREE: last})
    assert chains.kept == 8
    assert not np.array_equal(last, again)


def test_statistics_are_those_of_the_draws(target):
    """`lp` of a standard normal follows from x, so a shift by one draw would show."""
    (posterior, stats), _, _ = run(target, [(32, 1), (64, 4)])
    want = -0.5 * (posterior["x"] ** 2).sum(-1) - 1.5 * np.log(2.0 * np.pi)
    np.testing.assert_allclose(stats["lp"], want, rtol=1e-12)


@pytest.mark.parametrize("when", ["waiting", "running"])
def test_the_end_of_the_block_ends_the_chains_at_once(target, when):
    before = threading.active_count()

    def interrupt(done, note=""):
        if when == "running" and done:
            raise KeyboardInterrupt

    started = time.monotonic()
    chains = nuts.chains(target, OPTIONS, JOB, Length(limit=10**6, room=64), None)
    with suppress(KeyboardInterrupt), chains:
        chains.advance(10**6 if when == "running" else 8, 2**14, interrupt)
        assert when == "waiting"
        raise KeyboardInterrupt
    calls = [tap.calls for tap in chains.taps]
    assert time.monotonic() - started < 60.0
    time.sleep(0.05)
    assert [tap.calls for tap in chains.taps] == calls  # no chain moves any more
    assert threading.active_count() <= before


def test_an_error_in_a_call_fails_the_fit(target, monkeypatch):
    def broken(self, *given):
        raise MemoryError("no room")

    monkeypatch.setattr(Draws, "add", broken)
    with pytest.raises(FitFailed, match="no room"):
        run(target, [(8, 1)])


def test_variables_that_cannot_be_computed_fail_the_fit(target, monkeypatch):
    monkeypatch.setattr(Density, "expansion", lambda self, names: lambda *given: -2)
    with pytest.raises(FitFailed, match="could not be computed"):
        run(target, [(8, 1)])


def test_chains_that_cannot_start_fail_the_fit(target):
    start = {FREE: np.full((3, 3), np.nan)}
    with pytest.raises(FitFailed, match="NUTS could not start"):
        run(target, [(8, 1)], start=start)


def test_a_chain_that_ended_too_early_is_an_error(target):
    chains = nuts.chains(target, OPTIONS, JOB, Length(limit=8, room=16), None)
    with pytest.raises(FitFailed, match="ended after 29 of 36 draws"), chains:
        chains.advance(16, 1, silent)


def test_what_nutpie_holds_does_not_grow_with_the_variables(target):
    with nuts.chains(target, OPTIONS, JOB, Length(limit=64, room=64), None) as chains:
        chains.advance(32, 1, silent)
        (tree,) = {id(s): s.inspect() for s in chains._samplers[:1]}.values()
    held = sum(node.to_dataset().nbytes for node in tree.subtree)
    assert held < 33 * 8 * 40  # about twenty statistics a draw


def test_a_tap_by_itself(target):
    """Its function, called as nutpie calls it: tuning, then every second draw, then the gate."""
    density, draws = target.density, Draws(replace(JOB, chains=1), 4)
    tap = Tap(density, ["x", "double"], draws, 0, tune=2)
    tap.open(goal=6, every=2)
    points = [np.full(3, float(n)) for n in range(7)]

    def chain():
        for point in points:
            assert tap._function(3, 0, point.ctypes.data, 0, 0) == 0

    thread = threading.Thread(target=chain)
    thread.start()
    while not tap.held:
        time.sleep(0.001)
    assert tap.calls == 6
    assert draws.posterior["x"][0, :2, 0].tolist() == [3.0, 5.0]
    assert draws.posterior["double"][0, :2, 0].tolist() == [6.0, 10.0]
    assert tap.last.tolist() == [5.0] * 3
    tap.open(goal=7, every=5)
    thread.join(10.0)
    assert tap.calls == 7
    assert draws.posterior["x"][0, 0, 0] == 6.0  # the fifth after tuning
    tap.stop()
    thread = threading.Thread(target=chain)
    thread.start()
    thread.join(10.0)
    assert not thread.is_alive()
    assert tap.calls == 7
