"""When RFVM's variational Bayes stops: plateaus of the ELBO on which the weights still drift."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special

from ardvark.inference.papers.rfvm import stopping
from ardvark.inference.papers.rfvm.factors import Factors
from ardvark.inference.papers.rfvm.stopping import State, Watch, averaged
from ardvark.inference.papers.rfvm.vb import Options, iterate
from tests.inference.papers.rfvm.dense import FLAT, arrays, hypers
from tests.support import rng

# --- the rule on made-up runs ---------------------------------------------------------------------


def state(sweep, v, elbo=-100.0, kept=None, threshold=0.01, p=0.5):
    """One state with these feature means, one sample, one fitted probability."""
    v = np.asarray(v, dtype=float)
    q = SimpleNamespace(
        shares=(threshold, 0.001),
        features=np.arange(len(v)) if kept is None else np.asarray(kept),
        samples=np.array([0]),
        v=v,
        var_v=np.zeros(len(v)),
        a=np.array([2.0]),
        A=np.array([[4.0]]),
        probabilities=lambda: np.array([p]),
    )
    return State.of(q, sweep, elbo, prunes=True)


def stop_of(states, tolerance=1e-6):
    """Return the sweep at which a watch calls the run settled; None: never."""
    watch = Watch(tolerance)
    return next((one.sweep for one in states if watch.add(one)), None)


def test_what_stands_still_settles_after_the_shortest_window():
    assert stop_of(state(t, [1.0, 0.5]) for t in range(1, 100)) == 21


def test_the_window_is_half_of_what_came_before():
    """Changes until sweep 200, and nothing after: settled at 300."""
    moves = (state(t, [1.0, 0.9], elbo=-100.0 + 0.01 * (t % 2)) for t in range(1, 400))
    assert stop_of(moves) is None  # the ELBO does not stand still
    watch = Watch(1e-6)
    done = [watch.add(state(t, [1.0, 0.9], elbo=-100.0 - max(0, 200 - t))) for t in range(1, 400)]
    assert done.index(True) + 1 == 300


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_a_power_law_is_seen_however_late(power):
    """v_2 / v_1 = t^-power with an ELBO that stands still: it passes 0.01 without being called."""
    sweeps = np.unique(np.geomspace(1, 2e4, 4000).astype(int))
    states = (state(t, [1.0, t**-power]) for t in sweeps if t**-power > 0.012)
    assert stop_of(states) is None


def decaying(sweeps, threshold=0.01, rate=-5e-5):
    """The ELBO moves until sweep 1000; v_2 / v_1 goes through 0.0107 at 1500 and changes slowly."""
    for t in range(1, sweeps):
        v = [1.0, 0.0107 * np.exp(rate * (t - 1500))]
        yield state(t, v, elbo=-100.0 - max(0, 1000 - t), threshold=threshold)


def test_a_weight_that_will_soon_be_pruned_is_waited_for():
    """From 1500 on it takes 1353 sweeps to the threshold; it has lost 2.5 % in the 500 before."""
    assert stop_of(decaying(2800)) is None
    assert stop_of(decaying(2800, threshold=0.0)) == 1500
    assert stop_of(decaying(2800, rate=5e-5)) == 1500
    assert stop_of(decaying(2800, threshold=0.009)) == 1500


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"v": [1.0, 0.5, 0.2], "kept": [0, 1, 3]}, "3 became 3 by pruning"),
        ({"v": [1.0, 0.5], "kept": [0, 1]}, "3 became 2 by pruning"),
        ({"v": [1.0, 0.4, 0.2]}, "one changed by 0.1 of the largest"),
        ({"v": [1.0, 0.5, 0.011]}, "1 shrank towards the pruning threshold"),
        ({"p": 0.6}, "a fitted probability changed by 0.1"),
        ({"elbo": -101.0}, "the ELBO changed by 9.9e-03 of its value"),
        ({"v": [1.0, 0.5, 0.0113]}, "1 shrank towards"),  # by 7 % of its own size
        ({"v": [3.0, 1.5, 0.6]}, ""),  # the common scale is no drift
        ({"p": 0.54, "elbo": -100.05}, ""),
    ],
)
def test_what_counts_as_drift(change, words):
    given = {"v": [1.0, 0.5, 0.012 if "towards" in words else 0.2]}
    found = state(10, **given).drift(state(40, **given | change), 1e-6)
    assert words in found
    assert bool(words) == bool(found)


def test_the_released_rule_compares_199_bounds_with_the_next():
    rising = [-100.0 - 50.0 * 0.9**t for t in range(300)]
    assert not averaged(rising, 1e-6)  # needs more than 300
    assert averaged([*rising, -100.0], 1e-6)
    assert not averaged([*rising, -100.1], 1e-6)  # differs by 1e-3 of its value
    # only the 199 before the last count: one bad value 200 before it is not seen, 199 before it is
    flat = [-1.0] * 301
    for back, seen in ((201, False), (200, True)):
        bounds = [*flat]
        bounds[-back] = -2.0
        assert averaged(bounds, 1e-6) != seen


# --- runs -----------------------------------------------------------------------------------------


def flat_problem(N=60, D=40):
    """One informative feature, all correlated, and the hyperparameters of the released code."""
    random = np.random.default_rng(1)
    X = random.standard_normal((N, D)) + 2.0 * random.standard_normal((N, 1))
    y = (random.random(N) < special.expit(1.5 * X[:, 0])).astype(float)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y, hypers(N, N, D, **FLAT)


def run_of(data, number=0, **options):
    X, y, h = data
    chosen = Options(prune=True, **options)
    return iterate(Factors(X, y, X, h, np.random.default_rng(number), chosen), chosen)


def test_no_sparse_end_is_missed_by_a_plateau(monkeypatch):
    """On fixed data, whose ELBO first stands still, by 1e-6 of its value, with every weight left.

    Where the run ends, three times as many sweeps change nothing in what survives.
    """
    data = flat_problem()
    run = run_of(data, max_sweeps=3000)
    assert run.reason is None
    plateau = np.abs(np.diff(run.elbo)) <= 1e-6 * np.abs(run.elbo[1:])
    assert run.features[int(np.argmax(plateau))] == 40
    assert len(run.q.features) == 1
    monkeypatch.setattr(stopping, "DRIFT", 1e-9)
    further = run_of(data, max_sweeps=3 * len(run.elbo), tolerance=1e-15)
    assert len(further.elbo) == 3 * len(run.elbo)
    np.testing.assert_array_equal(run.q.features, further.q.features)
    np.testing.assert_array_equal(run.q.samples, further.q.samples)


def test_the_average_of_the_bound_stops_while_weights_drift():
    run = run_of(flat_problem(), stopping="moving_average", tolerance=0.5, max_sweeps=2000)
    assert len(run.elbo) == 301  # a tolerance that any bound meets
    assert "has not settled after 301 sweeps" in str(run.reason)


# --- the released code's start, order and rate of tau ---------------------------------------------


def test_the_released_start_and_order():
    X, y, Z = arrays(9, 6, number=1, B=4)
    h = hypers(9, 4, 6)
    q = Factors(X, y, Z, h, rng(0), Options(start="released"))
    np.testing.assert_allclose(q.u, X @ (q.v * (Z.T @ q.a)) + q.b, rtol=1e-12)
    np.testing.assert_array_equal(q.var_v, 1.0)
    wide = np.zeros((2, 4000))
    many = Factors(wide, np.array([0.0, 1.0]), wide, hypers(2, 2, 4000), np.random.default_rng(0),
                   Options(start="released"))  # fmt: skip
    assert abs(np.mean(many.v > 0) - 0.5) < 0.05  # of either sign; at fixed numbers
    # tau, xi, u: tau's rate holds the R of the old u, xi follows the old u, and u the new tau
    q = Factors(X, y, Z, h, rng(0), Options(order="tau_xi_u"))
    q.sweep()
    assert q.xi != pytest.approx(np.sqrt(q.u**2 + q.var_u))
    before = q.u.copy()
    q.update_u()
    np.testing.assert_allclose(q.u, before, rtol=1e-12)
