"""FS-SKLR's search and its fits: scores, selection, coefficients, contract, awkward input."""

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

import ardvark as av
from ardvark.inference.papers.fsklr import savb as fsklr_savb
from ardvark.inference.papers.fsklr.variational import logistic
from ardvark.inference.target.backend import FitFailed
from tests.inference.papers.fsklr.problems import (
    arrays,
    direct,
    every_form,
    made,
    point_of,
    searching,
)
from tests.support import ALARM

# --- the search -----------------------------------------------------------------------------------


@every_form
def test_stages_scores_and_selection(model, kernel):
    problem = made(model, kernel)
    result = direct(problem, sample_sweeps=60)
    d, point = result.details, point_of(result)
    stage, objective, chosen = d["stage"], d["objective"], int(d["selected_iteration"])
    expected = [2] * 61 if model == "sklr" else [1] * 9 + [2] * 61
    assert stage.tolist() == expected
    assert d["visited_z"][stage == 1].all()
    assert len(np.unique(d["visited_zeta"][stage == 2], axis=0)) == 1
    assert chosen == np.flatnonzero(stage == 2)[objective[stage == 2].argmax()]
    if model != "sklr":
        first = objective[stage == 1].argmax()
        np.testing.assert_array_equal(d["visited_zeta"][first], d["visited_zeta"][-1])
        assert objective[9] == pytest.approx(objective[first])  # where stage 2 starts
        np.testing.assert_array_equal(point["zeta"], d["visited_zeta"][chosen])
    # a walk, no ascent: with coefficients drawn anew each of 60 steps can fall
    assert np.diff(objective).min() < 0.0
    np.testing.assert_array_equal(point["z"], d["visited_z"][chosen])
    np.testing.assert_array_equal(d["features_kept"], d["visited_zeta"].sum(1))
    np.testing.assert_array_equal(d["samples_kept"], d["visited_z"].sum(1))
    # the score is the posterior's density without p(alpha), p(tau)
    h = problem.hypers
    score = float(problem.log_joint(point)) - stats.norm.logpdf(point["alpha"], 0, h.xi**-0.5).sum()
    if model == "fs_skr":
        score -= stats.gamma.logpdf(point["tau"], h.noise_shape, 0, 1 / h.noise_rate)
    assert result.attrs["score"] == pytest.approx(score, rel=1e-9)
    assert objective[chosen] == result.attrs["score"]


def test_the_error_has_the_prior_of_the_problem():
    """q(tau) of the mean field is Gamma(noise_shape + N / 2, noise_rate + E|s - K alpha|^2 / 2)."""
    problem = made("fs_skr", noise_shape=2.6, noise_rate=1.9)
    search = searching(problem)
    search.refit()
    q, K, s = search.q, search.K[:, search.z], 2.0 * problem.y - 1.0
    error = np.sum((s - K @ q.mean) ** 2) + np.trace(K @ q.covariance() @ K.T)
    assert q.tau_shape == pytest.approx(2.6 + len(s) / 2)
    assert q.tau_rate == pytest.approx(1.9 + error / 2)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_whole_gram_matrix_fits_the_samples_that_are_off(kernel):
    """Its q does not depend on z; the decision, and so the score, does."""
    search = searching(made("fsklr", kernel), gram="whole", alpha="mean")
    every = search.alpha
    search.z = np.arange(24) % 3 > 0
    search.refit()
    np.testing.assert_allclose(search.alpha, every, atol=2e-2)  # but for where algorithm 2 stops
    assert np.abs(search.alpha[~search.z]).min() > 1e-4
    np.testing.assert_allclose(search.eta, search.K[:, search.z] @ search.alpha[search.z])
    masked = searching(made("fsklr", kernel), alpha="mean")
    masked.z = search.z
    masked.refit()
    np.testing.assert_array_equal(masked.alpha[~search.z], 0.0)
    assert np.abs(masked.alpha - search.alpha).max() > 0.05


@pytest.mark.parametrize("model", ["fsklr", "sklr", "fs_skr"])
def test_a_fit_on_the_whole_gram_matrix_keeps_the_masks_of_its_state(model):
    problem = made(model, a_z=8.0)
    result = direct(problem, gram="whole")
    point, d = point_of(result), result.details
    off = point["z"] == 0
    assert off.any()
    np.testing.assert_array_equal(point["alpha"][off], 0.0)
    assert np.abs(d["alpha_mean"][off]).max() > 1e-4
    assert d["alpha_covariance"].shape == (len(off) - off.sum(),) * 2
    assert point["eta"] == pytest.approx(
        problem.decision({k: point[k] for k in ("feature_weight", "sample_weight")})
    )


@pytest.mark.parametrize("model", ["fsklr", "fs_skr"])
def test_mean_coefficients_are_the_mean_of_q(model):
    result = direct(made(model), alpha="mean")
    point, d = point_of(result), result.details
    np.testing.assert_array_equal(point["alpha"], d["alpha_mean"])
    if model == "fs_skr":
        assert point["tau"] == d["tau_shape"] / d["tau_rate"]
    drawn = direct(made(model))
    assert (point_of(drawn)["alpha"] != drawn.details["alpha_mean"]).any()


@pytest.mark.statistical
def test_coefficients_of_unused_samples_are_prior_draws_inside_and_zero_outside():
    problem = made(N=40, xi=4.0)
    search = searching(problem, number=3)
    off = []
    for _ in range(60):
        search.sweep_samples()
        search.refit()
        off.append(search.alpha[~search.z])
    off = np.concatenate(off)
    assert len(off) > 500
    assert stats.kstest(off, stats.norm(0.0, 0.5).cdf).pvalue > ALARM
    result = direct(problem)
    point = point_of(result)
    assert (point["alpha"][point["z"] == 0] == 0.0).all()
    assert (point["alpha"][point["z"] == 1] != 0.0).all()


@pytest.mark.statistical
def test_the_precision_of_the_error_is_drawn_from_its_q():
    search = searching(made("fs_skr"))
    tau = []
    for _ in range(1000):
        search.refit()
        tau.append(search.labels.tau)
    q = search.q  # the gaussian bound has no random start: one q
    assert stats.kstest(tau, stats.gamma(q.tau_shape, 0, 1 / q.tau_rate).cdf).pvalue > ALARM


def test_the_stored_q_is_the_one_of_the_selected_masks(monkeypatch):
    problem = made(N=40)
    monkeypatch.setattr(fsklr_savb, "VB_TOLERANCE", 1e-12)
    result = direct(problem, vb_iterations=5000)
    point, d = point_of(result), result.details
    active = d["active_sample"]
    np.testing.assert_array_equal(active, np.flatnonzero(point["z"]))
    zeta = point["zeta"] == 1
    K = np.exp(-problem.hypers.delta * cdist(problem.X[:, zeta], problem.Z[active][:, zeta]) ** 2)
    q = logistic(K, problem.y.astype(float), problem.hypers.xi, np.ones(40), 5000, 1e-12)
    np.testing.assert_allclose(d["alpha_mean"][active], q.mean, atol=1e-5)
    np.testing.assert_allclose(d["alpha_covariance"], q.covariance(), atol=1e-5)
    assert d["elbo"][d["selected_iteration"]] == pytest.approx(q.elbo[-1], abs=1e-8)


@every_form
def test_the_printed_prior_is_that_of_a_problem_that_has_it(model, kernel):
    delta = {"delta": 0.2}
    ours = direct(made(model, kernel, mask_prior="printed", **delta))
    option = direct(made(model, kernel, **delta), prior="printed")
    other = direct(made(model, kernel, **delta))
    for name, values in ours.posterior.items():
        np.testing.assert_array_equal(values, option.posterior[name])
    np.testing.assert_array_equal(ours.details["objective"], option.details["objective"])
    assert not np.array_equal(ours.details["objective"], other.details["objective"])


@every_form
def test_the_comparison_as_printed_turns_everything_off(model, kernel):
    """A bit stays on with the probability of all labels: of 80, below 1e-8."""
    result = direct(made(model, kernel, N=80), comparison="printed")
    assert result.status == "not_converged"
    assert 'use comparison="normalised"' in result.reason
    kept = result.details["samples_kept" if model == "sklr" else "features_kept"]
    assert (kept[1:9] == 0).all()


@pytest.mark.parametrize("model", ["fsklr", "sklr", "fs_skr"])
@pytest.mark.parametrize("mask_prior", ["independent", "shared"])
def test_explicit_probabilities_are_conditional_means(model, mask_prior):
    forms = ("explicit", "integrated")
    explicit, integrated = (
        direct(made(model, D=4, mask_prior=mask_prior, mask_probability=form)) for form in forms
    )
    point, h = point_of(explicit), made(model, D=4).hypers
    for name, values in integrated.posterior.items():
        np.testing.assert_array_equal(values, explicit.posterior[name])
    masks = [("sample", point["z"], h.a_z)]
    if model != "sklr":
        masks.append(("feature", point["zeta"], h.a_zeta))
    for what, mask, a in masks:
        got = np.atleast_1d(point[f"{what}_mask_probability"])
        groups = [mask] if mask_prior == "shared" else [mask[k : k + 1] for k in range(len(mask))]
        assert len(got) == len(groups)
        for value, bits in zip(got, groups, strict=True):
            first = a / len(mask)  # q has the prior Beta(first, 1)
            assert value == pytest.approx((first + bits.sum()) / (first + 1.0 + len(bits)))
    assert np.isfinite(explicit.sample_stats["lp"]).all()


# --- awkward input --------------------------------------------------------------------------------


def test_a_constant_decision_is_said():
    """Every mask fits alike, so the prior chooses none, once it has been visited.

    Each of 60 sweeps turns off three bits that are on with a probability of at most 0.8.
    """
    problem = av.problem("fsklr", (np.ones((6, 3)), np.arange(6) % 2), a_zeta=1.0)
    options = {"alpha": "mean", "feature_sweeps": 60}
    result = direct(problem, **options)
    assert result.attrs["features"] == 0
    assert "has no feature, so its decision is constant" in result.reason


@pytest.mark.parametrize("model", ["fsklr", "fs_skr"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_a_kernel_that_overflows_fails_with_the_remedy(model, kernel):
    """Saturated probabilities are `test_fits.py`'s."""
    X, y = arrays(12, 3)
    problem = av.problem(model, (1e160 * X, y), standardize=False, kernel=kernel, delta=1.0)
    with pytest.raises(FitFailed, match="standardise X"):
        direct(problem)
    tree = av.fit(problem, "fsklr_savb", progressbar=False)
    assert tree.attrs["status"] == "failed"
