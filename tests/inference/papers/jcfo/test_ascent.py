"""JCFO's EM: the E-step (23) to (25), the M-step (19), (26) to (29), and where it ends, (12), (15).

The same engine serves sparse probit regression, whose problem is convex.
"""

import numpy as np
import pytest
from scipy import stats

from ardvark.inference.papers.jcfo import em_steps as jcfo_em_steps
from ardvark.inference.papers.jcfo.em import Options
from ardvark.inference.papers.jcfo.em_steps import Basis, State, iterate
from ardvark.models.parts.kernels import make_kernel
from tests.inference.papers.ascent import Ascent, check_ascent, check_control
from tests.inference.papers.jcfo.problems import KERNELS, RATES, arrays, fixed
from tests.support import rng

FORMS = [("jcfo", *kernel, N) for kernel in KERNELS for N in (14, 24)]
FORMS += [("sparse_probit", "", 0, N) for N in (9, 24)]
every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form)))


def em(model, kernel, degree, N, D=5):
    """The case of one form; at N = 14 (29) is solved in its dual form, at 24 in the primal one.

    There are 14 centres, none of which is a row. On fixed data: a climb can end before a weight
    that is slow on its way to 0 arrives there.
    """
    X, y = arrays(N, D, number=1, generator=np.random.default_rng)
    Z = None if model == "sparse_probit" else np.random.default_rng(2).standard_normal((14, D))
    rates = RATES.get((kernel, degree), (2.0, 1.0))
    basis = Basis(X) if Z is None else Basis(X, Z, make_kernel(kernel, degree))
    M, K = (D + 1, 0) if Z is None else (15, D)
    sign = 2.0 * y - 1.0

    def eta(v):
        """(1), (8)."""
        if Z is None:
            return v["beta"][0] + X @ v["beta"][1:]
        if kernel == "rbf":
            gram = np.exp(-((X[:, None] - Z) ** 2) @ v["theta"])
        else:
            inner = (X[:, None] * Z) @ v["theta"]
            gram = inner if kernel == "linear" else (1.0 + inner) ** degree
        return v["beta"][0] + gram @ v["beta"][1:]

    def log_posterior(v):
        """(3), (12), (15): a Laplace and an exponential prior, whose rates are the roots."""
        if (v["theta"] < 0.0).any():
            return -np.inf
        value = stats.norm.logcdf(sign * eta(v)).sum()
        value += stats.laplace.logpdf(v["beta"], scale=1.0 / rates[0]).sum()
        return value + stats.expon.logpdf(v["theta"], scale=1.0 / rates[1]).sum()

    def expected(before):
        """(26) at the expectations (23) to (25) of the weights before, less constants."""
        at, none = eta(before), {k: before[k] == 0.0 for k in ("beta", "theta")}
        hazard = stats.norm.pdf(at) / stats.norm.cdf(sign * at)
        z = at + sign * hazard
        with np.errstate(divide="ignore"):
            inverse = {k: r / np.abs(before[k]) for k, r in zip(none, rates, strict=True)}

        def Q(v):
            value = -0.5 * np.sum((z - eta(v)) ** 2)
            for k, zero in none.items():
                if v[k][zero].any():
                    return -np.inf  # of variance 0
                value -= 0.5 * np.sum(inverse[k][~zero] * v[k][~zero] ** 2)
            return value

        return Q

    def start(number):
        random = np.random.default_rng(number)
        beta, theta = 0.3 * random.standard_normal(M), 0.1 + random.exponential(size=K)
        return State(basis, y, beta, theta, rates)

    def slopes(state):
        of_beta, of_theta = state.full_slopes()
        return {
            "beta": of_beta - rates[0] * np.sign(state.beta),
            "theta": of_theta - rates[1] * np.ones(K),
        }

    def end(state):
        iterate(state, Options(tolerance=1e-10))

    return Ascent(
        start=start,
        steps={
            "em": lambda state: state.step(2000, 1e-12),
            "prune": lambda state: state.prune(1e-2),
        },
        values=lambda state: {"beta": state.beta, "theta": state.theta},
        dense=log_posterior,
        objective=lambda state: state.objective,
        charts={"beta": "kept", "theta": "kept"},
        maximises={"em": (("beta", "theta"), expected)},
        slopes=slopes,
        end=end,
        slack=5e-3 * max(rates),
    )


@every_form
def test_ascent(form):
    check_ascent(em(*form))


def printed(state):
    """One step by (24), (25), (29) as printed: rates without the roots (an erratum)."""
    rates = state.rates
    state.rates = tuple(rate**2 for rate in rates)
    state.step(2000, 1e-12)
    state.rates = rates


def other_labels(state):
    """An E-step (23) on the wrong side."""
    state.y = 1.0 - state.y
    state.step(2000, 1e-12)
    state.y = 1.0 - state.y


def swapped_rates(state):
    state.rates = state.rates[::-1]
    state.step(2000, 1e-12)
    state.rates = state.rates[::-1]


def theta_kept(state):
    """(29) alone: beta at its best, theta where it was."""
    v = jcfo_em_steps.latent_mean(state.y, state.eta)
    H, _ = state.basis.evaluate(state.theta)
    beta = jcfo_em_steps.profile(H, v, np.abs(state.beta) / state.rates[0])[0]
    state.set(beta, state.theta)


def prune_the_largest(state):
    """The largest theta goes, whether or not that raises the log posterior."""
    state.set(state.beta, np.where(state.theta == state.theta.max(), 0.0, state.theta))


WRONG = {
    "em-printed": ("em", printed),
    "em-other_labels": ("em", other_labels),
    "em-swapped_rates": ("em", swapped_rates),
    "em-theta_kept": ("em", theta_kept),
    "prune-the_largest": ("prune", prune_the_largest),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_step_fails(wrong):
    case = em("jcfo", "linear", 1, 24)
    step, function = WRONG[wrong]
    check_control(case, step, function)


@pytest.mark.parametrize(("kernel", "degree"), KERNELS)
def test_the_objective_is_the_models_marginal_density(kernel, degree):
    X, y = arrays(15, 4)
    problem = fixed("jcfo", (X, y.astype(int)), kernel=kernel, degree=degree, gamma1=2.0)
    random = rng(0)
    beta, theta = random.standard_normal(16), random.exponential(size=4)
    rates = problem.hypers.gamma1**0.5, problem.hypers.gamma2**0.5
    state = State(Basis(X, X, problem.kernel), y, beta, theta, rates)
    point = {"bias": beta[0], "sample_weight": beta[1:], "feature_weight": theta}
    assert state.objective == pytest.approx(float(problem.log_joint(point)), rel=1e-10)
