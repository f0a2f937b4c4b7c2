"""Masks and their priors by enumeration and quadrature; special cases of FS-SKLR, SKLR, FS-SKR."""

import itertools
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest
from scipy import integrate, special, stats
from scipy.spatial.distance import cdist

from ardvark.common.validate import InputError
from ardvark.models import ZOO, fsklr
from ardvark.models.parts.masks import BinaryMask, expected_selected, log_mask_prior, mask_log_odds
from tests.models import forms
from tests.support import ALARM, rng, seed

SPECS = {name: ZOO[name] for name in ("fsklr", "sklr", "fs_skr")}
PRIORS = ("independent", "shared", "printed")
every_prior = pytest.mark.parametrize("mask_prior", PRIORS)
every_size = pytest.mark.parametrize(("n", "a"), [(1, 0.5), (4, 2.0), (7, 0.8), (9, 12.0)])
with_probability = pytest.mark.parametrize("mask_prior", ["independent", "shared"])


def make(name="fsklr", **settings):
    return forms.make(name, **settings)


def all_masks(n):
    return np.array(list(itertools.product((0, 1), repeat=n)))


def stacked(problem, n):
    return forms.stacked(forms.prior_points(problem, n))


# --- the prior of a mask --------------------------------------------------------------------------


@every_size
def test_independent_prior_integrates_the_beta_out(n, a):
    """int Bernoulli(bit | q) Beta(q | a/n, 1) dq, by quadrature, one bit at a time."""
    # q = u^(n/a) has the density Beta(a/n, 1) for a uniform u, and no singularity at 0
    on, _ = integrate.quad(lambda u: u ** (n / a), 0.0, 1.0, epsabs=1e-13)
    masks = all_masks(n)
    by_bit = np.where(masks == 1, np.log(on), np.log1p(-on)).sum(-1)
    np.testing.assert_allclose(log_mask_prior(masks, a, "independent"), by_bit, rtol=1e-9)


@every_size
def test_shared_prior_integrates_one_probability_out(n, a):
    for S in range(n + 1):
        value, _ = integrate.quad(
            lambda u, S=S: u ** (S * n / a) * (1.0 - u ** (n / a)) ** (n - S), 0.0, 1.0
        )
        mask = np.arange(n) < S
        assert np.exp(log_mask_prior(mask, a, "shared")) == pytest.approx(value, rel=1e-7)


def test_printed_prior_is_the_count_law_over_its_sum():
    """Eq. (21) with its factor a sums to 1 over counts, so to more than 1 over masks."""
    n, a = 8, 3.0
    S = np.arange(n + 1)
    count_law = a * special.comb(n, S) * special.beta(S + a, n - S + 1)
    assert count_law.sum() == pytest.approx(1.0, abs=1e-12)
    over_masks = (special.comb(n, S) * count_law).sum()
    assert over_masks > 10.0
    ours = np.exp(log_mask_prior(np.tri(n + 1, n, -1), a, "printed"))
    np.testing.assert_allclose(ours, count_law / over_masks, rtol=1e-11)


@every_size
def test_eq_19_sums_to_one_over_n(n, a):
    """As printed, (19) is 1/n of a shared Beta(a, 1) prior: an erratum."""
    S = all_masks(n).sum(-1)
    printed = a / n * np.exp(special.gammaln(S + a) + special.gammaln(n - S + 1))
    printed = printed / special.gamma(n + a + 1)
    assert printed.sum() == pytest.approx(1.0 / n, rel=1e-12)


@every_prior
@every_size
def test_conditional_odds_are_those_of_the_prior(mask_prior, n, a):
    for S_others in range(n):
        off = (np.arange(n) < S_others).astype(int)
        on = off.copy()
        on[-1] = 1
        difference = np.subtract(*(log_mask_prior(m, a, mask_prior) for m in (on, off)))
        odds = mask_log_odds(S_others, n, a, mask_prior)
        assert odds == pytest.approx(difference, rel=1e-10, abs=1e-11)


@every_prior
@every_size
def test_expected_selected_is_the_mean_over_all_masks(mask_prior, n, a):
    masks = all_masks(n)
    mean = np.exp(log_mask_prior(masks, a, mask_prior)) @ masks.sum(-1)
    assert expected_selected(n, a, mask_prior) == pytest.approx(mean, rel=1e-11)


def test_priors_at_the_size_of_gene_expression():
    """The shared prior is nearly the empty mask, the printed one nearly flat."""
    n, a = 7129, 20.0
    empty = np.exp(log_mask_prior(np.zeros(n), a, "shared"))
    assert empty == pytest.approx(0.97, abs=0.01)
    assert empty == pytest.approx(n ** (-a / n), abs=0.01)
    assert expected_selected(n, a, "printed") == pytest.approx(3574, abs=1)
    assert expected_selected(n, a, "independent") == pytest.approx(19.94, abs=0.01)


def check_mask_frequencies(masks, a, mask_prior):
    """Exact binomial tests of how often each state occurs, and each bit is on."""
    n, draws = masks.shape[-1], len(masks)
    states = all_masks(n)
    p_states = np.exp(log_mask_prior(states, a, mask_prior))
    counts = np.bincount(masks @ 2 ** np.arange(n)[::-1], minlength=2**n)
    p_bits = np.full(n, expected_selected(n, a, mask_prior) / n)
    tests = [*zip(counts, p_states, strict=True), *zip(masks.sum(0), p_bits, strict=True)]
    for count, p in tests:
        assert stats.binomtest(int(count), draws, p).pvalue > ALARM / len(tests)


@pytest.mark.statistical
@every_prior
def test_simulated_masks_follow_the_prior(mask_prior):
    problem = make(D=3, mask_prior=mask_prior, a_zeta=1.2)
    masks = stacked(problem, 2000)["zeta"]
    check_mask_frequencies(masks, 1.2, mask_prior)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "choice",
    [c for c in ZOO["fsklr"].choices() if c["kernel"] == "rbf"],
    ids=lambda c: "-".join(c.values()),
)
def test_pymc_draws_of_masks_follow_the_prior(choice):
    problem = make(D=3, a_zeta=1.2, **choice)
    masks = pm.draw(problem.model["zeta"], 1000, random_seed=seed(2), mode="FAST_COMPILE")
    check_mask_frequencies(masks, 1.2, choice["mask_prior"])


@pytest.mark.statistical
@pytest.mark.parametrize("mask_prior", ["shared", "printed"])
def test_masks_of_one_variable_are_drawn_each_by_itself(mask_prior):
    with pm.Model():
        mask = BinaryMask("mask", 3, 1.2, mask_prior, shape=(4000, 3))
    masks = pm.draw(mask, random_seed=seed(4), mode="FAST_COMPILE")
    check_mask_frequencies(masks, 1.2, mask_prior)


@pytest.mark.parametrize("mask_prior", ["shared", "printed"])
@pytest.mark.parametrize("D", [3, 2000])
def test_pymc_density_of_a_mask_is_normalised(mask_prior, D):
    """Equal to the NumPy law, its constant too, which comparing two prior states would miss."""
    a = 1.7
    with pm.Model() as model:
        BinaryMask("mask", D, a, mask_prior, shape=D)
    logp = model.compile_logp(mode="FAST_COMPILE")
    for mask in rng(6).random((5, D)) < 0.4:
        theirs = float(logp({"mask": mask.astype(int)}))
        ours = float(log_mask_prior(mask, a, mask_prior))
        rounding = np.finfo(float).eps * special.gammaln(D + 2)  # of the largest term
        assert theirs == pytest.approx(ours, rel=1e-12, abs=8.0 * rounding)


@pytest.mark.parametrize("mask_prior", ["shared", "printed"])
def test_pymc_density_refuses_what_is_no_mask(mask_prior):
    with pm.Model() as model:
        BinaryMask("mask", 3, 1.2, mask_prior, shape=3)
    logp = model.compile_logp(mode="FAST_COMPILE")
    assert np.isfinite(logp({"mask": np.array([0, 1, 1])}))
    assert logp({"mask": np.array([0, 2, 1])}) == -np.inf


# --- explicit and integrated probabilities are one posterior --------------------------------------


@with_probability
@pytest.mark.parametrize("name", list(SPECS))
def test_explicit_form_integrates_to_the_integrated_one(name, mask_prior):
    """Integrate exp(log_joint) of the explicit form over every probability by quadrature.

    At a/n = 1/2, q = u^2 turns Beta(a/n, 1) into a uniform law of u and the integrand into a
    polynomial of u, which Gauss-Legendre nodes integrate exactly.
    """
    settings = {"a_z": 1.0, "mask_prior": mask_prior, "delta": 0.3}
    if name != "sklr":
        settings["a_zeta"] = 1.0
    integrated = make(name, N=6, D=2, basis=[0, 3], **settings)
    explicit = make(name, N=6, D=2, basis=[0, 3], mask_probability="explicit", **settings)
    assert explicit.fingerprint == integrated.fingerprint
    assert explicit.form != integrated.form

    generator = rng(3)
    base = explicit.simulate(generator)
    names = [k for k in base if k.endswith("_mask_probability")]
    sizes = [np.size(base[k]) for k in names]
    x, weight = np.polynomial.legendre.leggauss(6)
    u, weight = (x + 1.0) / 2.0, weight / 2.0
    grid = np.stack([g.ravel() for g in np.meshgrid(*[u] * sum(sizes), indexing="ij")], -1)
    weights = np.prod(np.meshgrid(*[weight] * sum(sizes), indexing="ij"), axis=0).ravel()
    q, log_dq = grid**2, np.log(2.0 * grid).sum(-1)  # q = u^2, dq = 2u du
    parts = dict(zip(names, np.split(q, np.cumsum(sizes)[:-1], axis=-1), strict=True))

    for zeta, z in (([0, 1], [1, 1]), ([0, 0], [1, 0]), ([1, 1], [0, 0])):
        state = {k: v for k, v in base.items() if k not in names} | {"z": np.array(z)}
        if name != "sklr":
            state["zeta"] = np.array(zeta)
        many = {k: np.broadcast_to(v, (len(q), *np.shape(v))) for k, v in state.items()}
        shaped = {k: v if base[k].ndim else v[:, 0] for k, v in parts.items()}
        log_density = explicit.log_joint(many | shaped) + log_dq
        assert special.logsumexp(log_density, b=weights) == pytest.approx(
            float(integrated.log_joint(state)), abs=1e-10
        )


# --- the decision value ---------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_decision_is_the_masked_kernel_sum(kernel):
    """Against distances and products of masked inputs, with the PyMC model as a third route."""
    problem = make(kernel=kernel, basis=[1, 2, 5, 7])
    points = stacked(problem, 12)
    X_new = rng(5).normal(size=(5, 4))
    eta = problem.decision(points, X_new)
    for s in range(12):
        zeta, weight = points["zeta"][s], points["z"][s] * points["alpha"][s]
        x, centre = X_new * zeta, problem.Z * zeta
        K = x @ centre.T if kernel == "linear" else None
        K = np.exp(-problem.hypers.delta * cdist(x, centre) ** 2) if K is None else K
        K = problem.hypers.delta * K if kernel == "linear" else K
        np.testing.assert_allclose(eta[s], K @ weight, rtol=1e-9, atol=1e-12)
    stored = {k: points[k] for k in ("feature_weight", "sample_weight")}
    np.testing.assert_allclose(problem.decision(stored, X_new), eta, rtol=1e-12, atol=1e-10)
    two_axes = {k: v.reshape(3, 4, *v.shape[1:]) for k, v in points.items()}
    np.testing.assert_array_equal(problem.decision(two_axes, X_new), eta.reshape(3, 4, 5))
    model = problem.model
    inputs = [model[k] for k in ("zeta", "z", "alpha")]
    evaluate = model.compile_fn(model["eta"], inputs=inputs, mode="FAST_COMPILE", point_fn=False)
    theirs = evaluate(points["zeta"][0], points["z"][0], points["alpha"][0])
    np.testing.assert_allclose(theirs, points["eta"][0], rtol=1e-10, atol=1e-12)


def test_no_feature_and_no_sample_on():
    """With no feature every rbf kernel value is 1; with no sample eta is 0."""
    problem = make()
    point = problem.simulate(rng(1))
    point |= {"zeta": np.zeros(4, dtype=int), "z": np.ones(9, dtype=int)}
    np.testing.assert_allclose(problem.decision(point), np.full(9, point["alpha"].sum()))
    np.testing.assert_array_equal(problem.decision(point | {"z": np.zeros(9, dtype=int)}), 0.0)


# --- special cases of one another -----------------------------------------------------------------


@every_prior
def test_all_features_on_is_sklr(mask_prior):
    """Equal eta, and equal densities but for the prior of the full feature mask."""
    with_mask = make("fsklr", mask_prior=mask_prior, delta=0.2)
    without = make("sklr", mask_prior=mask_prior, delta=0.2)
    points = stacked(without, 6)
    full = points | {"zeta": np.ones((6, 4), dtype=int)}
    np.testing.assert_allclose(
        with_mask.decision(full), without.decision(points), rtol=1e-12, atol=1e-10
    )
    constant = log_mask_prior(np.ones(4), with_mask.hypers.a_zeta, mask_prior)
    np.testing.assert_allclose(
        with_mask.log_joint(full), without.log_joint(points) + constant, rtol=1e-12
    )
    np.testing.assert_array_equal(points["feature_weight"], 1.0)


# --- defaults and bad input -----------------------------------------------------------------------


@every_prior
def test_defaults_follow_the_sizes(mask_prior):
    h = make(N=72, D=100, mask_prior=mask_prior).hypers
    assert (h.xi, h.a_z, h.a_zeta) == (1.0, 20.0, 20.0)
    assert h.delta == 1.0 / (2.0 * expected_selected(100, 20.0, mask_prior))
    small = make("sklr", N=10, D=6, mask_prior=mask_prior).hypers
    assert (small.a_z, small.delta) == (5.0, 1.0 / 12.0)


MASKS = [
    (name, mask) for name in SPECS for mask in ("z", "zeta") if (name, mask) != ("sklr", "zeta")
]


@pytest.mark.parametrize(("name", "mask"), MASKS)
def test_a_mask_that_is_not_binary_is_refused(name, mask):
    problem = make(name)
    point = problem.simulate(rng(1))
    with pytest.raises(InputError, match=f"{mask} is a mask of 0 and 1, got .*0.5"):
        problem.log_joint(point | {mask: np.full(point[mask].shape, 0.5)})


def movable(mask_prior):
    """A model whose masks follow their prior: coefficients too small for the labels to matter.

    Each bit then changes with a probability of at least 1/4 a scan, whatever the others are: that
    one of seven stays for 60 scans has a probability below 1e-6.
    """
    return make(N=4, D=3, mask_prior=mask_prior, a_z=4.0, a_zeta=3.0, xi=1e6).model


@pytest.mark.parametrize(
    "mask_prior",
    [pytest.param(p, marks=[] if p == "shared" else [pytest.mark.slow]) for p in PRIORS],
)
def test_pymcs_bitwise_step_moves_every_mask(mask_prior):
    model = movable(mask_prior)
    masks = [model["zeta"], model["z"]]
    settings = {"mode": "FAST_COMPILE"}
    with model:
        step = pm.BinaryGibbsMetropolis(masks, compile_kwargs=settings, rng=rng(1))
    point, seen = model.initial_point(), []
    for _ in range(60):
        point, _ = step.step(point)
        seen.append(np.concatenate([point["zeta"], point["z"]]))
    assert np.isin(seen, (0, 1)).all()
    assert (np.ptp(seen, axis=0) > 0).all()


def test_given_values_stay_as_given():
    asked = fsklr.Hypers(delta=0.7, a_z=3.0, a_zeta=2.0)
    assert vars(asked.fill(20, 20, 5)) == vars(asked)
    assert replace(asked, delta=None).fill(20, 20, 5).delta == 1.0 / (2.0 * 10.0 / 7.0)
