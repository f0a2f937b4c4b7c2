"""The steps of the Gibbs sampler of PFCVM and RFVM, each against its law.

Given RFVM's noisy decision values u and their precision tau the likelihood of eta is normal, so
that there log_joint itself is the law of each step: W = tau, score = tau (u - eta).

Where a step is a draw, its law is known. Where it only leaves a law invariant it starts at a draw
of that law, so that where it ends is one too: exact Kolmogorov-Smirnov tests, whose false alarm is
ALARM over all those of a test.
"""

import copy
import math

import numpy as np
import pytest
from scipy import special, stats

from ardvark.inference.samplers.gibbs import ard_steps as steps
from ardvark.inference.samplers.gibbs.ard_linear import Sampler, Working
from ardvark.models.parts.ard import WeightPrior
from tests.inference.samplers.gibbs.ard_problems import every_prior, log_joint, made
from tests.support import ALARM, rng

PRIORS = {
    "sparse": WeightPrior(0.5, 1e-4, 1.0),
    "dense": WeightPrior(1.5, 0.5),
    "narrow slab": WeightPrior(0.5, 0.3, 0.4),
}
every_law = pytest.mark.parametrize("law", PRIORS)
every_sign = pytest.mark.parametrize("positive", [True, False])
LIKELIHOODS = [(0.0, 0.0), (-300.0, 5.0), (-2.0, 3.0), (0.4, 1.0), (6.0, 2.0), (60.0, 30.0)]


def ks(draws, cdf):
    return stats.kstest(draws, cdf).pvalue


def grid(prior, linear, precision, positive, count=20_001):
    """Points that resolve the spike, and reach where nothing is left."""
    precision = max(precision, 1e-3)
    ends = abs(linear) / precision + 40.0 / math.sqrt(precision) + 400.0 * prior.scale
    side = prior.scale * np.sinh(np.linspace(0.0, np.arcsinh(ends / prior.scale), count))
    return side if positive else np.concatenate([-side[:0:-1], side])


def cdf_of(x, log_f):
    """The distribution function of a density on a grid, by the trapezoid rule."""
    f = np.exp(log_f - log_f.max())
    F = np.concatenate([[0.0], np.cumsum(0.5 * (f[1:] + f[:-1]) * np.diff(x))])
    return lambda at: np.interp(at, x, F / F[-1])


def accepted(x, log_f, log_q):
    """The share of proposals from q that steps accept in equilibrium: E min(f(x) / q(x), ...)."""
    f, q = (np.exp(v - v.max()) * np.gradient(x) for v in (log_f, log_q))
    order = np.argsort(log_f - log_q)  # of two, the smaller ratio of f to q counts
    f, q = f[order] / f.sum(), q[order] / q.sum()
    return f @ (2.0 * (1.0 - np.cumsum(q)) + q)


def drawn_from(random, x, log_f, n):
    """Draws of a density on a grid."""
    F = cdf_of(x, log_f)(x)
    return np.interp(random.random(n), F, x)


# --- one weight -----------------------------------------------------------------------------------


@pytest.mark.parametrize("precision", [0.04, 1.0, 1e6])
@pytest.mark.parametrize("t", [-1e5, -40.0, -5.01, -4.99, -0.3, 0.0, 2.0, 9.0, 50.0])
def test_integral_of_the_normal(t, precision):
    linear = t * math.sqrt(precision)
    whole = 0.5 * math.log(2.0 * math.pi / precision)
    assert steps.log_normal_integral(linear, precision, False) == pytest.approx(whole + t * t / 2)
    if t < 0.0:  # e^(t^2/2) Phi(t) = erfcx(-t / 2^1/2) / 2
        want = whole + math.log(0.5 * special.erfcx(-t / math.sqrt(2.0)))
    else:
        want = whole + 0.5 * t * t + special.log_ndtr(t)
    assert steps.log_normal_integral(linear, precision, True) == pytest.approx(want, rel=1e-12)


@pytest.mark.statistical
@every_law
@every_sign
def test_proposal(law, positive):
    """q has the integral 1, its draws follow it, and it is near f: about half are accepted.

    The least is 0.49; with a share of the spike that is wrong at one end it is 0.1 or 0.2.
    """
    given, random = PRIORS[law], rng()
    prior = steps.Prior.of(given, positive=positive)
    for linear, precision in LIKELIHOODS:
        precision += given.slab**-2.0
        q = steps.proposal(linear, precision, prior)
        x = grid(given, linear, precision, positive)
        tail = stats.t.logpdf(x, 2.0 * given.shape, scale=given.scale) + positive * math.log(2.0)
        found = [steps.log_student(v, prior) for v in x[::500]]
        np.testing.assert_allclose(found, tail[::500], rtol=1e-10, atol=1e-10)
        log_f = tail + linear * x - 0.5 * precision * x**2
        log_q = log_f + np.array([steps.log_ratio(v, q, prior) for v in x])
        assert accepted(x, log_f, log_q) > 0.45
        inside = np.trapezoid(np.exp(log_q), x)
        beyond = 2.0 * q.share * stats.t.sf(x[-1], 2.0 * given.shape, scale=given.scale)
        # without any precision the normal is beyond the grid, too
        normal = 1.0 - q.share if precision == 0.0 else 0.0
        assert inside + beyond + normal == pytest.approx(1.0, abs=1e-3)
        draws = np.array([steps.draw_proposal(random, q, prior) for _ in range(3000)])
        kept = draws[np.abs(draws) < x[-1]]
        assert ks(kept, cdf_of(x, log_q)) > ALARM / len(LIKELIHOODS)


def stepped(random, x, linear, precision, prior):
    """A step of each of many weights; G, without its slab, is the likelihood of a row of its own.

    The rows are those of the identity, a block of weights at once.
    """
    ends = np.array(x, dtype=float)
    rows = np.eye(500)
    for at in range(0, len(ends), 500):
        block = ends[at : at + 500]
        n = len(block)
        score = linear - precision * block
        W = np.full(n, precision)
        group = steps.Group(rows[:n, :n].copy(), np.ones(n), W, prior, score, block)
        steps.weight_scan(random, group)
        np.testing.assert_allclose(score, linear - precision * block, rtol=1e-8, atol=1e-8)
    return ends


@pytest.mark.statistical
@every_law
@every_sign
def test_a_step_leaves_the_law_of_a_weight(law, positive):
    """One step from a draw ends at a draw; and forty from next to 0 end at one."""
    given, random = PRIORS[law], rng()
    prior = steps.Prior.of(given, positive=positive)
    for linear, precision in LIKELIHOODS:
        x = grid(given, linear, precision + given.slab**-2.0, positive)
        log_f = stats.t.logpdf(x, 2.0 * given.shape, scale=given.scale)
        log_f += linear * x - 0.5 * (precision + given.slab**-2.0) * x**2
        cdf, level = cdf_of(x, log_f), ALARM / (2 * len(LIKELIHOODS))
        starts = drawn_from(random, x, log_f, 3000)
        assert ks(stepped(random, starts, linear, precision, prior), cdf) > level
        now = np.full(1500, 1e-9)
        for _ in range(40):
            now = stepped(random, now, linear, precision, prior)
        assert ks(now, cdf) > level


@pytest.mark.statistical
@pytest.mark.parametrize("positive", [True, False])
def test_the_slab_is_in_the_acceptance(positive):
    """Negative control: the same steps without it end elsewhere."""
    given, random = PRIORS["narrow slab"], rng()
    x = grid(given, 0.0, given.slab**-2.0, positive)
    log_f = stats.t.logpdf(x, 2.0 * given.shape, scale=given.scale) - 0.5 * (x / given.slab) ** 2
    prior = steps.Prior.of(given._replace(slab=np.inf), positive=positive)
    now = drawn_from(random, x, log_f, 2000)
    for _ in range(8):
        now = stepped(random, now, 0.0, 1e-4, prior)
    assert ks(now, cdf_of(x, log_f)) < ALARM


# --- conditionals against log_joint ---------------------------------------------------------------


def drawn(problem, number=1):
    """A sampler, and the state at a point that was drawn with its labels."""
    sampler, random = Sampler(problem), rng(number)
    point = problem.simulate(random)
    sampler.set_labels(point["y"])
    return sampler, sampler.state(point), point, random


@every_prior
def test_conditionals_of_the_weights(prior):
    """f of a weight of either kind against log_joint given u; and the score follows a scan."""
    problem = made("rfvm-explicit", prior, parametrization="marginal", D=5)
    sampler, state, point, random = drawn(problem)
    W = np.full(len(state.eta), state.tau)
    score = W * (state.u - state.eta)
    a, theta = point["sample_weight"], point["feature_weight"]
    Mt = problem.Z @ (theta[:, None] * sampler.Xt)  # (B, N)
    groups = (
        ("feature_weight", sampler.Xt, sampler.Zt @ a, sampler.feature, theta),
        ("sample_weight", Mt, np.ones(3), sampler.sample, a),
    )
    for name, rows, slope, law, x in groups:
        for k in range(len(x)):
            g = slope[k] * rows[k]
            precision = g @ (W * g) + law.slab**-2.0
            linear = g @ score + (g @ (W * g)) * x[k]

            def f(v, law=law, linear=linear, precision=precision):
                return steps.log_student(v, law) + linear * v - 0.5 * precision * v * v

            for v in random.exponential(1.0, 6):
                other = x.copy()
                other[k] = v
                found = log_joint(problem, point | {name: other}, point["y"])
                found -= log_joint(problem, point, point["y"])
                assert found == pytest.approx(f(v) - f(x[k]), rel=1e-8, abs=1e-8)
        moved, follows = x.copy(), score.copy()
        # of few weights it can be that none moves; not in twenty scans
        group = steps.Group(rows, slope, W, law, follows, moved)
        assert sum(steps.weight_scan(random, group) for _ in range(20)) > 0
        eta = problem.decision(point | {name: moved})
        np.testing.assert_allclose(follows, W * (state.u - eta), rtol=1e-8, atol=1e-8)
        pairs = sampler.feature_pairs if len(x) == 5 else sampler.sample_pairs
        pairs = pairs._replace(visible=0.0)
        assert steps.pair_scan(random, 50, group, pairs) > 0
        eta = problem.decision(point | {name: moved})
        np.testing.assert_allclose(follows, W * (state.u - eta), rtol=1e-8, atol=1e-8)


@pytest.mark.statistical
@every_prior
def test_conditionals_of_the_bias_and_the_precisions(prior):
    """Draws of the bias given u, and of each precision given its weight, against log_joint."""
    problem = made("rfvm-explicit", prior, bias_sd=0.4)
    sampler, state, point, random = drawn(problem)
    W = np.full(len(state.eta), state.tau)

    def law(name, k, axis):
        """The distribution function of one entry of a variable, from log_joint on a grid."""
        n, whole = len(axis), {v: np.asarray(x) for v, x in point.items()}
        stack = {v: np.broadcast_to(x, (n, *x.shape)).copy() for v, x in whole.items()}
        stack[name][(slice(None), *k)] = axis
        return cdf_of(axis, log_joint(problem, stack, point["y"]))

    draws = []
    for _ in range(2000):
        now = copy.deepcopy(state)
        working = Working(W, W, W * (now.u - now.eta))
        sampler.bias(now, working, random)
        draws.append(now.bias)
        moved = now.eta + now.bias - state.bias
        np.testing.assert_allclose(working.score, W * (now.u - moved), atol=1e-9)
    assert ks(draws, law("bias", (), np.linspace(-12.0, 12.0, 4001))) > ALARM / 5
    psi, delta = np.empty((2000, 3)), np.empty((2000, 4))
    for s in range(2000):
        sampler.precisions(state, random)
        psi[s], delta[s] = state.sample_precision, state.feature_precision
    for name, found, weight in (
        ("psi", psi, point["sample_weight"]),
        ("delta", delta, point["feature_weight"]),
    ):
        p = problem.hypers.sample_prior if name == "psi" else problem.hypers.feature_prior
        for k in (0, 2):
            top = 60.0 * (p.shape + 0.5) / (p.rate + 0.5 * weight[k] ** 2)
            axis = np.linspace(0.0, 1.0, 20_001)[1:] ** 2 * top
            assert ks(found[:, k], law(name, (k,), axis)) > ALARM / 5


def test_noise_is_integrated_out_of_the_working_likelihood():
    """exp(r eta - W eta^2 / 2) is the integral over u, for each observation, up to a constant."""
    problem = made("rfvm-explicit")
    sampler, state, point, random = drawn(problem)
    working = sampler.augment(state, random)
    r, tau = working.score + working.W * state.eta, state.tau
    u = np.linspace(-60.0, 60.0, 200_001)

    def integral(eta, n):
        log_f = (point["y"][n] - 0.5) * u - 0.5 * working.omega[n] * u**2
        return special.logsumexp(log_f - 0.5 * tau * (u - eta) ** 2)

    for n in range(len(r)):
        for eta in (-3.0, 0.7):
            want = integral(eta, n) - integral(0.0, n)
            assert r[n] * eta - 0.5 * working.W[n] * eta**2 == pytest.approx(want, abs=1e-9)


@pytest.mark.statistical
def test_latent_values():
    """u given omega, tau given u, and u given the label without omega."""
    problem = made("rfvm-explicit", noise_shape=2.6, noise_rate=20.0)
    sampler, state, point, random = drawn(problem)
    working = sampler.augment(state, random)
    h, tau, level = problem.hypers, state.tau, ALARM / 30
    u, rate, taus = [], [], []
    for _ in range(2000):
        state.tau = tau
        sampler.latent(state, working, random)
        u.append(state.u)
        rate.append(h.noise_rate + 0.5 * np.sum((state.u - state.eta) ** 2))
        taus.append(state.tau)
    law = stats.gamma(h.noise_shape + 0.5 * len(state.eta))
    assert ks(np.multiply(taus, rate), law.cdf) > level
    axis = np.linspace(-40.0, 40.0, 20_001)
    for n, found in enumerate(np.transpose(u)):
        log_f = (point["y"][n] - 0.5) * axis - 0.5 * working.omega[n] * axis**2
        assert ks(found, cdf_of(axis, log_f - 0.5 * tau * (axis - state.eta[n]) ** 2)) > level
    out = np.empty(2000)
    for eta in (-60.0, -3.0, -0.4, 2.0):
        for tau in (0.1, 1.0, 20.0):
            axis = eta + np.linspace(-8.0, 1.0 / tau**0.5 + 8.0, 8001) / tau**0.5
            log_f = -0.5 * tau * (axis - eta) ** 2 + special.log_expit(axis)
            steps.draw_noisy(random, np.ones(2000), np.full(2000, eta), tau, out)
            assert ks(out, cdf_of(axis, log_f)) > level
            steps.draw_noisy(random, -np.ones(2000), np.full(2000, -eta), tau, out)
            assert ks(-out, cdf_of(axis, log_f)) > level


# --- pairs ----------------------------------------------------------------------------------------


@every_sign
def test_pair_proposal_is_a_density(positive):
    """The integral of q over both weights, in coordinates that resolve the spike."""
    given = WeightPrior(0.5, 0.01, 1.0)
    prior = steps.Prior.of(given, positive=positive)
    v = np.linspace(0.0 if positive else -6.0, 6.0, 241)
    x = given.scale * np.sinh(v)
    weight = given.scale * np.cosh(v) * (v[1] - v[0])
    weight[[0, -1]] *= 0.5
    for L, P, cross in (((3.0, 5.0), (4.0, 6.0), 4.5), ((-1.0, 0.3), (1.0, 2.0), -1.2)):
        log_t = np.array([steps.log_student(w, prior) for w in x])
        log_g = [L[k] * x - 0.5 * P[k] * x**2 for k in (0, 1)]
        total = 0.0
        for i in range(len(x)):
            log_f = log_t[i] + log_t + log_g[0][i] + log_g[1] - cross * x[i] * x
            ratio = [steps.log_pair_ratio(x[i], w, L, P, cross, prior) for w in x]
            total += weight[i] * (weight @ np.exp(log_f + ratio))
        # what lies beyond the axis: a tail of t in one weight or the other
        tail = stats.t.sf(x[-1], 1.0, scale=given.scale) * 2.0
        assert total == pytest.approx(1.0, abs=2.0 * tail + 1e-3)
        assert total < 1.0 + 1e-3


def test_products_of_rows_are_weighted():
    random = rng(4)
    rows, score, W = random.normal(size=(3, 50)), random.normal(size=50), random.gamma(1.0, size=50)
    weighted = (rows * W) @ rows.T
    for i in range(3):
        found = steps.products(rows, i, score, W)
        np.testing.assert_allclose(found, (rows[i] @ score, weighted[i, i]))
        for j in range(3):
            cross = steps.cross_product(rows, i, j, W)
            np.testing.assert_allclose(cross, weighted[i, j], atol=1e-12)


def pair_ends(scan, random, n, tries):
    """Starts and ends of pair scans on five weights with a normal likelihood, and other draws.

    The likelihood is one, whatever the run's seeds: it says how many draws of the prior are kept.
    """
    given, K = WeightPrior(0.5, 0.02, 1.5), 5
    prior = steps.Prior.of(given, positive=True)
    rows = np.random.default_rng(7).standard_normal((K, 4))
    rows[1] = rows[0] + 0.1 * rows[1]
    W, target = np.full(4, 2.0), rows[0] * 1.2
    # a star: 0 has four partners, the others only it
    partner = np.array([[1, 2, 3, 4]] + [[0, -1, -1, -1]] * 4)
    pairs = steps.Pairs(0.4, partner, np.array([4, 1, 1, 1, 1]))
    x = np.abs(given.scale * random.standard_t(1.0, (40 * n, K)))
    miss = target - x @ rows
    log_l = -(miss**2).sum(-1) - 0.5 * (x**2).sum(-1) / given.slab**2
    x = x[np.log(random.random(len(x))) < log_l]  # exact draws: the likelihood is at most 1
    ends, others = x[: len(x) // 2].copy(), x[len(x) // 2 :]
    for end in ends:
        score = W * (target - end @ rows)
        scan(random, tries, steps.Group(rows, np.ones(K), W, prior, score, end), pairs)
        np.testing.assert_allclose(score, W * (target - end @ rows), atol=1e-8)
    moved = (ends != x[: len(ends)]).any(-1).mean()
    return ends, others, moved


def pair_p(ends, others):
    """The p-value of two samples of five weights being of one law."""
    p = [stats.ks_2samp(a, b).pvalue for a, b in zip(ends.T, others.T, strict=True)]
    return len(p) * min(p)


@pytest.mark.statistical
def test_pairs_leave_the_law_of_their_weights():
    ends, others, moved = pair_ends(steps.pair_scan, rng(), 4000, 8)
    assert len(ends) > 2000
    assert moved > 0.3
    assert pair_p(ends, others) > ALARM


@pytest.mark.slow
@pytest.mark.statistical
def test_the_chance_of_a_pair_is_in_the_acceptance(monkeypatch):
    """Negative control, not compiled: as if every pair were chosen back with its own chance.

    log10 of the p-value was -22; the limit is at -5.5.
    """
    monkeypatch.setattr(steps, "partner_chance", lambda *_: 1.0)
    ends, others, _ = pair_ends(steps.pair_scan.py_func, rng(), 1500, 8)
    assert pair_p(ends, others) < ALARM


# --- the scale ------------------------------------------------------------------------------------


@every_prior
def test_scale_density(prior):
    """That of the moved point, eta unchanged, times |Jacobian|."""
    for variant in ("pfcvm", "rfvm-none"):
        problem = made(variant, prior, parametrization="marginal")
        sampler, state, point, _ = drawn(problem)
        theta, x = state.theta, state.x
        density = [
            steps.log_scale_density(u, theta, sampler.feature, x, sampler.sample)
            for u in (0.0, -1.3, -0.2, 0.4, 2.0)
        ]
        for u, value in zip((-1.3, -0.2, 0.4, 2.0), density[1:], strict=True):
            scales = np.concatenate([np.full(len(theta), np.exp(u)), np.full(len(x), np.exp(-u))])
            names = ["feature_weight"] + ["sample_weight"] + (["w"] if "w" in point else [])
            moved = {n: point[n] * np.exp(u if n == "feature_weight" else -u) for n in names}
            found = log_joint(problem, point | moved, point["y"])
            found -= log_joint(problem, point, point["y"])
            jacobian = np.linalg.slogdet(np.diag(scales))[1]
            assert value - density[0] == pytest.approx(found + jacobian, rel=1e-8, abs=1e-8)


@pytest.mark.statistical
@every_prior
def test_scale_move(prior):
    """From a draw of the density along its orbit, the move ends at one."""
    problem = made("rfvm-none", prior)
    sampler, state, _, random = drawn(problem)
    theta, x = state.theta, state.x
    u = np.linspace(-12.0, 12.0, 6001)
    log_f = np.array(
        [steps.log_scale_density(v, theta, sampler.feature, x, sampler.sample) for v in u]
    )
    starts = drawn_from(random, u, log_f, 3000)
    ends = [
        v
        + steps.scale_move(
            random, 0.7, theta * np.exp(v), sampler.feature, x * np.exp(-v), sampler.sample
        )
        for v in starts
    ]
    assert ks(ends, cdf_of(u, log_f)) > ALARM
