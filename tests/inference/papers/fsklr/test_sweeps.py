"""The bit sweeps of FS-SKLR's algorithm 1 against `log_joint`, enumeration and plain loops.

Negative control: the comparison as printed must fail the check that Gibbs sampling passes.
"""

import numpy as np
import pytest
from scipy import special, stats
from scipy.spatial.distance import cdist

from ardvark.inference.papers.fsklr.variational import (
    Labels,
    Rule,
    additive_sweep,
    distance_sweep,
    log_likelihood,
)
from ardvark.models.parts.masks import log_mask_prior
from tests.inference.papers.fsklr.problems import every_form, every_prior, made, searching
from tests.support import ALARM, rng


def joint_without_noise(problem, search, zeta, z):
    """ln of the joint density at masks, by the model's own `log_joint`."""
    point = {"z": z.astype(int), "alpha": search.alpha}
    if problem.hypers.FEATURE_MASK:
        point["zeta"] = zeta.astype(int)
    if search.noise:
        point["tau"] = np.asarray(search.labels.tau)
    return float(problem.log_joint(point))


def odds_by_log_joint(problem, search, name, before, after):
    """Log-odds of every bit on the path of one sweep, from differences of `log_joint`."""
    out = np.empty(len(before))
    for k in range(len(before)):
        path = np.r_[after[:k], before[k:]]
        value = []
        for bit in (1, 0):
            path[k] = bit
            masks = (path, search.z) if name == "zeta" else (search.zeta, path)
            value.append(joint_without_noise(problem, search, *masks))
        out[k] = value[0] - value[1]
    return out


@every_prior
@every_form
def test_odds_of_a_sweep_are_differences_of_log_joint(model, kernel, mask_prior):
    basis = [5, 11, 0, 8, 2, 7, 1, 3, 9, 4, 10, 6]  # as many as rows, in another order
    given = {"mask_prior": mask_prior, "xi": 0.3, "basis": basis}
    problem = made(model, kernel, N=12, D=6, number=2, **given)
    search = searching(problem, number=4)
    flips = 0
    for _ in range(6):
        if problem.hypers.FEATURE_MASK:
            before = search.zeta.copy()
            values = search.sweep_features()
            want = odds_by_log_joint(problem, search, "zeta", before, search.zeta)
            np.testing.assert_allclose(values, want, rtol=1e-7, atol=1e-8)
            flips += np.sum(before != search.zeta)
            search.refit()
        before = search.z.copy()
        values = search.sweep_samples()
        want = odds_by_log_joint(problem, search, "z", before, search.z)
        np.testing.assert_allclose(values, want, rtol=1e-7, atol=1e-8)
        flips += np.sum(before != search.z)
        search.refit()
    assert flips > 3


def test_what_the_printed_comparison_compares():
    """ln p(zeta_k = 1 | others) + ln p(y | zeta_k = 1), not a conditional probability."""
    problem = made(N=8, D=4, mask_prior="shared")
    search = searching(problem, number=1, comparison="printed")
    before = search.zeta.copy()
    values = search.sweep_features()
    for k in range(4):
        on = np.r_[search.zeta[:k], [True], before[k + 1 :]]
        off = on.copy()
        off[k] = False
        prior = [log_mask_prior(m, problem.hypers.a_zeta, "shared") for m in (on, off)]
        point = {"zeta": on.astype(int), "z": np.ones(8, int), "alpha": search.alpha}
        want = prior[0] - np.logaddexp(*prior) + problem.log_likelihood(point).sum()
        assert values[k] == pytest.approx(want, rel=1e-9)


def sweep_frequencies(comparison, draws, number=0):
    """How often each of 8 feature masks comes up, alpha fixed, and its exact probability.

    Thinned until the second eigenvalue of so many exact sweeps is below 1e-3: independent draws.
    """
    problem = made(N=10, D=3, number=3, a_zeta=2.0)
    search = searching(problem, number=number, comparison=comparison)
    alpha = search.alpha.copy()
    masks = np.array([[(c >> k) & 1 for k in range(3)] for c in range(8)])
    joint = [joint_without_noise(problem, search, m, np.ones(10)) for m in masks]
    p = special.softmax(joint)
    sweep = np.eye(8)
    for k in range(3):
        same = ((masks[:, None] == masks) | (np.arange(3) == k)).all(axis=2)  # but for bit k
        sweep = sweep @ (same * p / (same @ p)[:, None])
    second = np.sort(np.abs(np.linalg.eigvals(sweep)))[-2]
    thin, counts = int(np.ceil(np.log(1e-3) / np.log(second))), np.zeros(8, dtype=int)
    for _ in range(draws):
        for _ in range(thin):
            search.sweep_features()
            search.eta = search.K @ alpha
        counts[search.zeta @ [1, 2, 4]] += 1
    return counts, p


@pytest.mark.statistical
def test_sweeps_at_fixed_coefficients_visit_masks_at_their_probability():
    def smallest_p_value(counts, p):
        n = counts.sum()
        return min(stats.binomtest(c, n, q).pvalue for c, q in zip(counts, p, strict=True))

    assert smallest_p_value(*sweep_frequencies("normalised", 3000)) > ALARM / 8
    # negative control: algorithm 1's comparison as printed, which leaves every bit off; over 30
    # seeds that mask had a probability of at most 0.15, and 300 of 300 is impossible
    assert smallest_p_value(*sweep_frequencies("printed", 300)) < ALARM / 8


def test_a_kernel_that_underflowed_comes_back():
    """All on, K is the identity; after most bits are off the distances are still those."""
    random = rng(0)
    X = 8 * random.standard_normal((9, 60))
    zeta, square = np.ones(60, bool), cdist(X, X, "sqeuclidean")
    assert (np.exp(-square) == np.eye(9)).all()
    alpha, labels = random.standard_normal(9), Labels(np.repeat([-1.0, 1.0, 1.0], 3), 0.0)
    eta = np.exp(-square) @ alpha
    threshold = np.full(60, np.inf)
    threshold[[3, 17, 40]] = -np.inf  # what is on after the sweep
    Xt, rule = np.ascontiguousarray(X.T), Rule(np.full(60, -4.0), threshold, False)
    distance_sweep(zeta, Xt, Xt, square, 1.0, alpha, eta, labels, rule)
    assert np.flatnonzero(zeta).tolist() == [3, 17, 40]
    want = cdist(X[:, zeta], X[:, zeta], "sqeuclidean")
    np.testing.assert_allclose(square, want, atol=1e-10)
    np.testing.assert_allclose(eta, np.exp(-want) @ alpha, atol=1e-9)


def test_additive_sweep_keeps_eta():
    random = rng(0)
    columns, weight, mask = (
        random.standard_normal((40, 7)),
        random.standard_normal(40),
        random.random(40) < 1,
    )
    eta = (mask * weight) @ columns
    rule = Rule(np.zeros(40), special.logit(random.random(40)), False)
    additive_sweep(mask, columns, weight, eta, Labels(np.ones(7), 2.0), rule)
    assert 0 < mask.sum() < 40
    np.testing.assert_allclose(eta, (mask * weight) @ columns, atol=1e-12)


def test_likelihood_of_saturated_decisions():
    sign = np.array([1.0, -1.0, 1.0])
    eta = np.array([1e4, 1e4, -1e300])
    assert log_likelihood(eta[:2], Labels(sign[:2], 0.0)) == -1e4
    assert log_likelihood(eta, Labels(sign, 0.0)) == pytest.approx(-1e300)
    want = stats.norm.logpdf(sign[:2], 0.5, 0.5**0.5).sum()
    assert log_likelihood(np.full(2, 0.5), Labels(sign[:2], 2.0)) == pytest.approx(want)
