"""Samplers of masks against sums, wrong orders, and failing chains."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from tests.notebooks.running import SIZES, values

STATES = np.array(list(itertools.product([0.0, 1.0], repeat=4)))


def log_mass(zeta, tau, s, X, xi=0.1):
    """ln p(s | zeta, tau): a normal of mean 0, the weights being normal too."""
    covariance = (X * zeta) @ X.T / xi + np.eye(len(X)) / tau
    return stats.multivariate_normal.logpdf(s, np.zeros(len(X)), covariance)


def masses(s, X, pi, tau=None):
    """Probabilities of the 16 masks at tau, or under its prior Gamma(2, 1)."""

    def mass(zeta):
        prior = np.prod(np.where(zeta == 1, pi, 1 - pi))
        if tau is not None:
            return prior * np.exp(log_mass(zeta, tau, s, X))

        def density(log_tau):
            t = np.exp(log_tau)
            return np.exp(log_mass(zeta, t, s, X) + 2 * log_tau - t)

        return prior * integrate.quad(density, -8, 5, epsabs=0.0, limit=200)[0]

    p = np.array([mass(zeta) for zeta in STATES])
    return p / p.sum()


def check_masks(found, full):
    """Sums of the notebook against sums by scipy; its chains, whose seeds are fixed."""
    X, s, exact, truth = (found[n] for n in ("X", "s", "exact", "truth"))
    np.testing.assert_allclose(exact, masses(s, X, 0.3, tau=1.0), rtol=1e-9)
    np.testing.assert_allclose(truth, masses(s, X, 0.3) @ STATES, rtol=1e-5)
    often = exact > 1e-3
    assert np.abs(found["z_scores"][often]).max() < 4.5  # of 16 standard normal numbers
    # what a sweep must leave as it is, and how long it takes
    p = masses(found["strong"], found["copies"], 0.001, tau=4.0)
    for matrix in found["moves"].values():
        np.testing.assert_allclose(matrix.sum(1), 1.0)
        np.testing.assert_allclose(p @ matrix, p, atol=1e-9)
    forget = found["forget"]
    slope = np.log(forget.loc[0.001, "flips"] / forget.loc[0.1, "flips"]) / np.log(100)
    assert slope == pytest.approx(1.0, abs=0.05)
    assert (forget["flips and a swap"] < 3.0).all()
    # wrong orders: the errors are those of five and more standard errors, or far below
    orders, joint = found["orders"], found["joint"].abs()
    assert orders.loc["largest error, in standard errors", "right"] < 4.5
    assert orders.loc["x3", "between"] < 0.6 * orders.loc["x3", "exact"]
    assert orders.loc["x4", "between"] > 1.4 * orders.loc["x4", "exact"]
    assert np.abs(orders["kept"] - orders["exact"]).iloc[:4].max() < 0.03
    assert joint["right"].max() < 4.5
    assert joint["between"].max() > 10
    assert joint["kept"].max() > (3.5 if full else 0.0)  # fewer replicates may not see it
    assert found["p_value"] > 1e-4
    assert found["rotated_worst"] < 4.5
    assert np.abs(found["rotated_joint"]["bits on"]) < 4.5
    assert np.abs(found["rotated_joint"]["log squared error"]) > 8
    # stuck copies
    assert np.isin(found["bits"]["flips"][:, :, 0].mean(1).round(2), (0.0, 1.0)).all()
    assert np.abs(found["bits"]["flips and a swap"][:, :, 0].mean(1) - 0.5).max() < 0.2
    assert found["alike"].loc[0.999, "flips"] > 10 * found["alike"].loc[0.999, "with a swap"]
    assert found["alike"].loc[0.0, "flips"] < 3
    assert found["ess"]["with the scale move"] > 3 * found["ess"]["without"]


def check_nuts(found):
    """What NUTS shows: limits far from what any seed gave."""
    ridge, straight = found["ridge_table"], found["straight_table"]
    assert ridge.loc["v", "R-hat"] > ridge.loc["product", "R-hat"]
    assert straight.loc["v", "bulk ESS"] > 2 * ridge.loc["v", "bulk ESS"]
    assert (straight["R-hat"] < 1.02).all()
    funnel = found["funnel"]
    below, sd = funnel["P(below -4) (0.09 is right)"], funnel["sd (3 is right)"]
    assert below["target_accept 0.8"] < 0.05
    assert below["non-centred"] == pytest.approx(stats.norm.cdf(-4 / 3), abs=0.04)
    assert sd["non-centred"] == pytest.approx(3.0, abs=0.4)
    assert funnel["R-hat"].idxmin() == "non-centred"
    assert funnel.loc["target_accept 0.8", "divergences"] > 0
    steps = found["divergent"]
    assert steps.loc["target_accept 0.7", "divergences"] > 10
    assert steps.loc["target_accept 0.99", "divergences"] < 5
    assert steps["gradients a draw"].is_monotonic_increasing
    together, apart = found["together_table"], found["apart_table"]
    assert together.loc["w", "R-hat"] < 1.1 < 1.4 < apart.loc["w", "R-hat"]
    assert apart.loc["total", "R-hat"] < 1.1
    jumping = found["jumping"]
    assert (jumping["R-hat of its weight"] < 1.05).all()
    assert (jumping["P(active)"][["gene 1", "gene 2"]] > jumping.loc["noise", "P(active)"]).all()


NAMES = (
    "X", "s", "exact", "truth", "z_scores", "strong", "copies", "moves", "forget", "orders",
    "joint", "rotated_worst", "rotated_joint", "bits", "alike", "ess", "ridge_table",
    "straight_table", "funnel", "divergent", "together_table", "apart_table", "jumping",
)  # fmt: skip


@SIZES
@pytest.mark.usefixtures("size")
def test_samplers(full, tmp_path):
    *given, p_value = values("09_samplers", tmp_path, *NAMES, "checked.p_value")
    found = dict(zip(NAMES, given, strict=True)) | {"p_value": p_value}
    check_masks(found, full)
    if full:
        check_nuts(found)
