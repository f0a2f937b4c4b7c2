"""The parts of a distance and of its floor, each from its definition in plain NumPy."""

import numpy as np
import pytest
import xarray as xr
from scipy import special, stats

from ardvark.inference.scoring import quantities
from ardvark.inference.scoring.draws import PROBABILITY, REPEATS, Draws, ReferenceDraws
from ardvark.inference.scoring.statistics.p_active import P_ACTIVE, Probabilities
from ardvark.inference.scoring.statistics.prediction import DIFFERENCE
from tests.made import drawn
from tests.models.forms import make
from tests.support import rng, z_limit

LEAD = ("chain", "draw")


def test_halves_and_contrasts_of_seven_blocks():
    """Three blocks against four; a contrast has the noise of two equal halves, times a t's tail.

    Its squares sum to (4 / B) (B - 1) / chi^2: so 4 (B - 1) / B over the sums are chi-squared
    numbers of B - 1 degrees of freedom, whose mean of 400 is known to 0.17.
    """
    exact = ReferenceDraws(rng(1).normal(size=(7, 50, 2)), known=(200.0, 100.0), seed=3)
    assert [(b.start, b.stop) for b in exact.blocks] == [(50 * k, 50 * k + 50) for k in range(7)]
    halves = np.sort(exact.halves, axis=1)
    np.testing.assert_allclose(halves, np.tile([-1 / 4] * 4 + [1 / 3] * 3, (REPEATS, 1)))
    assert len(np.unique(exact.halves > 0.0, axis=0)) > 25  # of 35
    scale = exact.contrast / exact.halves
    np.testing.assert_allclose(scale, np.broadcast_to(scale[:, :1], scale.shape))
    chi2 = 4.0 * 6 / 7 / np.square(exact.contrast).sum(axis=1)
    assert abs(chi2.mean() - 6.0) < z_limit() * np.sqrt(12.0 / REPEATS)
    means = [exact.draws[k].mean(axis=0) for k in range(7)]
    np.testing.assert_allclose(exact.block_means(exact.flat), means)
    again = ReferenceDraws(exact.draws, known=(200.0, 100.0), seed=3)
    np.testing.assert_array_equal(again.contrast, exact.contrast)
    assert (ReferenceDraws(exact.draws, known=(200.0, 100.0)).halves != exact.halves).any()


def test_standardised_draws_and_their_parts():
    draws = 3.0 + 2.0 * rng(2).normal(size=(5, 20, 4))
    draws[..., 1] = 7.0
    exact = ReferenceDraws(draws)
    flat = draws.reshape(100, 4)
    np.testing.assert_array_equal(exact.moves, [True, False, True, True])
    z = (flat - flat.mean(0))[:, [0, 2, 3]] / flat.std(0, ddof=1)[[0, 2, 3]]
    np.testing.assert_allclose(exact.standardised(), z)
    np.testing.assert_array_equal(Draws(-draws).sizes().draws, np.abs(draws))
    first, second = exact.split()
    np.testing.assert_array_equal(first.draws, draws[:2])
    np.testing.assert_array_equal(second.draws, draws[2:])
    np.testing.assert_allclose(exact.mean, flat.mean(0), rtol=1e-12)
    np.testing.assert_allclose(exact.sd, flat.std(0, ddof=1), atol=1e-12)
    assert np.isnan(Draws(draws[:1, :1]).sd).all()


@pytest.mark.statistical
def test_the_floor_of_a_function_of_means_knows_a_method_with_few_draws():
    """Halves have the variance 4 / E; a method of M draws beside the reference 1 / M + 1 / E.

    The halves' is raised to 2 / E + 1 / M where that is more. At E = 10 M the floor is 3^1/2 times
    that at M = E, whose halves have noise enough; a quantile of 400 is known to 5 %, each.
    """
    exact = ReferenceDraws(rng(3).normal(size=(4, 1000, 1)), independent=True, kinds=PROBABILITY)
    floors = [
        DIFFERENCE.distance(Draws(exact.draws + 1.0, known=(m, m)), exact).floor
        for m in (4000.0, 400.0)
    ]
    room = z_limit() * np.hypot(0.05, 0.05)
    assert abs(np.log(floors[1] / floors[0] / np.sqrt(3.0))) < room


def test_the_noise_of_a_probability_is_that_of_both_sides():
    """sqrt(a^2 + b^2), a the larger one of the fit's error and the binomial law's."""

    def floor(error, draws, p=0.3, known=0.04):
        found = Probabilities(np.array([0.0]), np.array([error]), draws)
        score = P_ACTIVE.distance(found, Probabilities(np.array([p]), np.array([known]), 4000))
        assert score.value == pytest.approx(p)
        return np.array([score.floor, score.typical])

    one = floor(0.03, 4000)  # a pair of 0.03 and 0.04 is 0.05
    room = z_limit(2) * np.array([0.083, 0.063])  # of quantiles of 400 normal sizes
    assert (np.abs(one / 0.05 - stats.norm.ppf([0.975, 0.75])) < room).all()
    np.testing.assert_allclose(floor(0.12, 4000, known=0.16), 4.0 * one)
    np.testing.assert_allclose(floor(0.0, 1, known=0.04), 0.8 * one)  # one draw has no error
    few = np.sqrt(0.3 * 0.7 / 50 + 0.04**2)
    np.testing.assert_allclose(floor(0.001, 50), few / 0.05 * one)


def test_what_a_model_has_besides_weights():
    """Logs of what is positive, the bias as it is; neither masks, whole numbers nor raw parts."""
    random = rng(4)
    shape = (3, 8)
    positive = random.gamma(2.0, size=(*shape, 2))
    posterior = {
        "eta": ((*LEAD, "obs"), random.normal(size=(*shape, 4))),
        "tau": (LEAD, positive[..., 0]),
        "bias": (LEAD, positive[..., 1]),
        "slope": (LEAD, random.normal(size=shape)),
        "count": (LEAD, random.integers(1, 5, size=shape)),
        "psi_raw": ((*LEAD, "basis"), positive),
        "delta": ((*LEAD, "feature"), random.gamma(2.0, size=(*shape, 3))),
        "signed": ((*LEAD, "feature"), random.normal(size=(*shape, 3))),
        "psi": ((*LEAD, "basis"), positive),
    }
    tree = xr.DataTree.from_dict({"/posterior": xr.Dataset(posterior)})
    tree.attrs["model"] = "rfvm"
    readers = quantities.quantities(None, {}, exact=tree)
    x = {name: values for name, (_, values) in posterior.items()}
    scalars = np.stack([np.log(x["tau"]), x["bias"], x["slope"]], axis=-1)
    np.testing.assert_allclose(readers["scalar"]("a", tree), scalars)
    precisions = np.log(np.concatenate([x["delta"], x["psi"]], axis=-1))
    np.testing.assert_allclose(readers["precision"]("a", tree), precisions)
    assert quantities.labels("scalar", 3, None, tree) == ("log tau", "bias", "slope")
    assert quantities.labels("precision", 5, None, tree) == (
        "log delta[0]", "log delta[1]", "log delta[2]", "log psi[0]", "log psi[1]",
    )  # fmt: skip
    other = tree.copy()
    other["posterior"] = xr.DataTree(tree["posterior"].to_dataset().drop_vars("psi"))
    assert readers["precision"]("b", other) is None


def test_primal_weights_and_probabilities_of_training_rows():
    """theta_k sum_j a_j z_jk by loops; P(y = 1) from the likelihood of labels of both kinds."""
    problem, random = make("rfvm", N=6, D=3, latent_noise="none"), rng(5)
    v, a = random.gamma(2.0, size=(2, 4, 3)), random.normal(size=(2, 4, 6))
    eta = random.normal(size=(2, 4, 6))
    y = np.array([0, 1, 1, 0, 1, 0])
    tree = drawn({"feature_weight": v, "sample_weight": a, "eta": eta}, y=y)
    found = quantities.primal(problem, tree)
    for k in range(3):
        w = sum(a[..., j] * problem.Z[j, k] for j in range(6))
        np.testing.assert_allclose(found[..., k], v[..., k] * w)
    assert quantities.primal(make("pfcvm", N=6, D=3, kernel="rbf"), tree) is None
    masked = make("fsklr", N=6, D=3, kernel="linear")  # theta = delta zeta, and delta is not 1
    on = drawn({"feature_weight": 1.0 * (v > 1.5), "sample_weight": a})
    assert masked.hypers.delta != 1.0
    by_mask = np.where(v > 1.5, masked.hypers.delta * (a @ masked.Z), 0.0)
    np.testing.assert_allclose(quantities.primal(masked, on), by_mask)
    tree.attrs["model"] = "rfvm"
    np.testing.assert_allclose(quantities.fitted(tree), special.expit(eta))
    tree.attrs["model"] = "fs_skr"  # a score is no probability
    assert quantities.fitted(tree) is None
