"""Slips of one number in a step, too small for the harness of steps (`step_bench`) to see.

Only these tests see that a precision of the noise is drawn as if there were another observation
(`test_law_of_the_noise`), that a move of a pair counts the weights as before it, or follows them
wrongly from move to move (`test_acceptance_of_pairs`), and that a scan of JCFO's feature weights
compares with the likelihood of an earlier point (`test_likelihood_follows_a_scan`). None of them
is statistical: what a step uses is computed anew.
"""

import copy
import math
from types import FunctionType, SimpleNamespace

import numpy as np
import pytest

from ardvark.inference.samplers.gibbs import ard_steps as steps
from ardvark.inference.samplers.gibbs.jcfo_steps import slice_scan
from ardvark.inference.samplers.gibbs.method import make_sampler
from ardvark.models.parts.ard import WeightPrior
from tests.inference.samplers.gibbs.step_bench import posed
from tests.support import rng


def drawn(model, **settings):
    """A sampler, and its state at a point that was drawn with its labels."""
    problem = posed(model, "tall", False, **settings)
    sampler, point = make_sampler(problem), problem.simulate(rng())
    sampler.set_labels(point["y"])
    return sampler, sampler.state(point)


def check_tau(sampler, state, asked, miss):
    """The one law that was asked for is that of tau given the noise, and its draw is kept."""
    h = sampler.noise
    want = (h.noise_shape + 0.5 * len(miss), 1.0 / (h.noise_rate + 0.5 * miss @ miss))
    np.testing.assert_allclose(asked, [want], rtol=1e-12)
    assert state.tau == 0.3


@pytest.mark.parametrize("z", [-1.0, 0.0, 1.0])
def test_law_of_the_noise(z):
    """RFVM's u is z standard deviations from its mean, and tau's law is the one given that u."""
    sampler, state = drawn("rfvm", latent_noise="explicit")
    sampler.omega(state, rng(1))
    tau, omega, asked = state.tau, state.working.omega, []
    told = {
        "standard_normal": lambda n: np.full(n, z),
        "gamma": lambda *law: asked.append(law) or 0.3,
    }
    sampler.latent(state, SimpleNamespace(**told))

    def log_density(u):
        """That of u given omega, without its constant."""
        return 0.5 * (sampler.label_sign * u - omega * u**2 - tau * (u - state.eta) ** 2)

    peak = state.u - z * (omega + tau) ** -0.5
    np.testing.assert_allclose(log_density(peak + 1), log_density(peak - 1), rtol=1e-9, atol=1e-9)
    check_tau(sampler, state, asked, state.u - state.eta)


def test_law_of_the_noise_of_masks():
    """FS-SKR's tau given the decision values."""
    (sampler, state), asked = drawn("fs_skr", xi=0.3, mask_prior="independent"), []
    sampler.augment(state, SimpleNamespace(gamma=lambda *law: asked.append(law) or 0.3))
    check_tau(sampler, state, asked, sampler.label_sign - state.eta)


def test_acceptance_of_pairs():
    """The loss of each move of one scan, all accepted, from the weights before and after it.

    The scan is not compiled, so that its exponentials can note what they are compared with. The
    second weight of a pair is proposed given the new value of the first.
    """
    given, K, N, random = WeightPrior(3.0, 1.0, 1.5), 5, 4, rng()
    prior = steps.Prior.of(given, positive=False)
    partners = [[1, 2, 3], [0], [0], [0], []]
    table = np.array([p + [-1] * (3 - len(p)) for p in partners])
    pairs = steps.Pairs(0.7, table, np.array([len(p) for p in partners]))
    rows, W, target = random.normal(size=(K, N)), np.arange(1.0, 5.0), random.normal(size=N)
    slope, x = np.array([1.0, -0.5, 2.0, 1.5, 0.8]), np.full(K, 0.9)
    noted, latest = [], {}
    g = slope[:, None] * rows
    gram, linear = (g * W) @ g.T, g @ (W * target)

    class Accepted:
        def __gt__(self, loss):
            noted.append((loss, x.copy(), latest["draw_student"][1], latest["draw_proposal"][0][0]))
            return True

    def drawing(name):
        """A compiled function, which takes no generator but a true one; its last call is kept."""

        def draw(_, *given):
            latest[name] = given, getattr(steps, name)(random, *given)
            return latest[name][1]

        return draw

    names = {n: drawing(n) for n in ("draw_student", "draw_proposal", "draw_partner")}
    pair_scan = FunctionType(steps.pair_scan.py_func.__code__, vars(steps) | names)
    told = SimpleNamespace(
        random=random.random, integers=random.integers, standard_exponential=Accepted
    )
    score = W * (target - x @ g)
    accepted = pair_scan(told, 100, steps.Group(rows, slope, W, prior, score, x), pairs)
    np.testing.assert_allclose(score, W * (target - x @ g), rtol=1e-9, atol=1e-9)

    def of_partner(j, i):
        near = partners[i]
        return 0.5 / (K - 1) + 0.5 * ((j in near) / len(near) if near else 1.0 / (K - 1))

    def log_chance(x, i, j):
        """That of choosing the pair at x, and of proposing x, less the log density of x."""
        A, two = np.abs(x) > pairs.visible, [i, j]
        others = np.where(np.isin(np.arange(K), two), 0.0, x)
        L, P = (linear - gram @ others)[two], gram.diagonal()[two] + given.slab**-2.0
        ratio = steps.log_pair_ratio(x[i], x[j], tuple(L), tuple(P), gram[i, j], prior)
        return math.log((A[i] * of_partner(j, i) + A[j] * of_partner(i, j)) / A.sum()), ratio

    points, sizes = [at for _, at, *_ in noted] + [x], set()
    for (loss, at, new, q), after in zip(noted, points[1:], strict=True):
        i, j = np.flatnonzero(at != after)
        (choice, ratio), (back, other) = log_chance(at, i, j), log_chance(after, i, j)
        assert loss == pytest.approx(other - ratio + choice - back, rel=1e-7, abs=1e-7)
        second = j if after[i] == new else i
        L = linear - gram @ np.where(np.arange(K) == second, 0.0, after)
        P = gram.diagonal() + given.slab**-2.0
        np.testing.assert_allclose(q, steps.proposal(L[second], P[second], prior), rtol=1e-7)
        sizes.add(int((np.abs(at) > pairs.visible).sum()))
    assert accepted == len(noted) > 10
    assert len(sizes) > 2


@pytest.mark.parametrize(("kernel", "degree"), [("linear", 1), ("polynomial", 2), ("rbf", 1)])
def test_likelihood_follows_a_scan(kernel, degree):
    """A scan of all weights is one scan of each, which begins with the likelihood of its eta."""
    given = {"kernel": kernel, "degree": degree, "scale": "fixed", "parametrization": "latent"}
    sampler, whole = drawn("jcfo", gamma1=0.7, gamma2=1.4, **given)
    parts, slope = copy.deepcopy(whole), sampler.Zt @ whole.beta[sampler.samples]
    one, other, D = rng(1), rng(1), len(whole.theta)

    def scan(state, random, at):
        slice_scan(
            random, sampler.kernel_function.code, degree, sampler.Xt[at], sampler.Zt[at],
            sampler.label_sign, sampler.root2, slope[at], state.beta, np.empty(0), state.inner,
            state.eta, state.theta[at],
        )  # fmt: skip

    for _ in range(300):
        scan(whole, one, slice(None))
        for k in range(D):
            scan(parts, other, slice(k, k + 1))
        np.testing.assert_allclose(whole.theta, parts.theta, rtol=1e-9)
        np.testing.assert_allclose(whole.eta, parts.eta, rtol=1e-9, atol=1e-9)
