"""`calibrate`: one call, what it says in words and draws, and the command of that name."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import ardvark as av
from ardvark.inference import BACKENDS
from ardvark.inference.checks import calibrate as front
from ardvark.inference.checks import plots
from ardvark.inference.checks.ranks import Calibration, as_normal
from ardvark.inference.methods import registry
from tests.inference.checks.toy import Conjugate, make_toy
from tests.support import ALARM, rng, z_limit


@pytest.fixture
def conjugate(monkeypatch):
    """A backend of the user's own."""
    monkeypatch.setattr(registry, "BACKENDS", dict(BACKENDS))
    av.inference.register_backend(Conjugate)


def test_progress_is_shown_unless_it_is_not_wanted(conjugate, capsys):
    for given in ({}, {"progressbar": False}):
        av.calibrate(make_toy(), "conjugate", replicates=3, **given)
        shown = capsys.readouterr()
        assert ("sbc-toy-conjugate" in shown.err) == (not given)
        assert shown.out == ""


def found(ranks, names=("a", "b"), name="sbc-toy-own"):
    return Calibration(names, ranks, (), np.full(len(ranks), 99), 1.0, name)


@pytest.mark.statistical
@pytest.mark.parametrize(("d", "c"), [(0.0, 1.0), (0.5, 1.0), (-0.3, 0.6), (0.2, 2.0)])
def test_a_normal_posterior_that_is_wrong_by_so_much(d, c):
    """Exact ranks of a truth m + s z among N(m + d c s, (c s)^2): mean and sd are recovered."""
    R = 4000
    u = stats.norm.cdf((rng(0).normal(size=(R, 1)) - d * c) / c)
    shift, ratio = (float(v[0]) for v in as_normal(u))
    assert abs(shift - d) < z_limit() / (c * np.sqrt(R))
    assert abs(np.log(ratio / c)) < 1.1 * z_limit() / np.sqrt(2 * R)


def test_what_a_calibration_says(snapshot):
    grid = (np.arange(100) + 0.5) / 100
    even = found(np.stack([grid, grid[::-1]], axis=1))
    assert repr(even) == even.text()
    failed = dataclasses.replace(even, ranks=np.empty((0, 2)), reasons=("no start",))
    low = found(np.stack([grid, 0.3 * grid], axis=1))
    snapshot("calibration", "\n\n".join(found.text() for found in (even, failed, low)))


@pytest.mark.statistical
def test_the_band_holds_whole_curves():
    """With the stated probability, by its own 10 000 simulations: exact binomial test."""
    R, share, runs = 80, 0.9, 400
    x, low, high = plots.band(R, share)
    curves = np.array([plots.difference(u, x) for u in rng(1).random((runs, R))])
    inside = ((curves >= low) & (curves <= high)).all(axis=1).sum()
    assert stats.binomtest(int(inside), runs, share).pvalue > ALARM
    assert not ((curves >= 0.0) & (curves <= 0.0)).all(axis=1).any()


def test_the_figure_marks_what_is_wrong():
    """All ranks below 0.3 against all quantiles of the uniform, one of each."""
    grid = (np.arange(100) + 0.5) / 100
    figure = found(np.stack([grid, 0.3 * grid], axis=1)).plot()
    assert [axis.get_title() for axis in figure.axes[:2]] == ["b (outside)", "a"]


def test_the_joint_test_is_of_a_transition(conjugate, monkeypatch):
    asked = {}
    monkeypatch.setattr(
        front, "joint_test", lambda _, kernel, **given: asked.update(given, kernel=kernel)
    )
    X = rng(2).normal(size=(6, 2))
    problem = av.problem("fsklr", (X, np.arange(6) % 2))
    av.calibrate(problem, "gibbs", test="joint", replicates=7, progressbar=False)
    assert asked["replicates"] == 7
    assert asked["kernel"] is front.KERNELS["gibbs"]
    assert asked["called"] == "gibbs"  # not the function that makes the kernel
