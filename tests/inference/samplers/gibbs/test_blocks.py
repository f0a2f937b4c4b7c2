"""Weights that are drawn as one block: mean and covariance beside dense algebra, exactly.

A draw is linear in its standard normal numbers. So those of 0, and of each unit vector, tell its
whole law, which the harness of steps would know to half a standard deviation only.
"""

from types import FunctionType

import numpy as np
import pytest

from ardvark.inference.samplers.gibbs import horseshoe_steps, probit_columns, probit_steps
from ardvark.inference.samplers.gibbs.covariates import Covariates
from ardvark.inference.samplers.gibbs.mask_moves import Working, draw_coefficients
from ardvark.inference.samplers.gibbs.method import make_sampler
from tests.inference.samplers.gibbs.step_bench import make, posed
from tests.support import rng

N = 9


class Told:
    """Gives these numbers, one after the other; a chi-squared one is as given."""

    def __init__(self, z, chisquare=None):
        self.z, self.chisquare = list(z), lambda n: chisquare

    def standard_normal(self, size=None):
        return self.z.pop(0) if size is None else np.array([self.z.pop(0) for _ in range(size)])


def check_law(draw, numbers, precision, linear):
    """draw(z) has the law N(Q^-1 l, Q^-1), of so many standard normal numbers."""
    covariance = np.linalg.inv(precision)
    mean = draw(np.zeros(numbers))
    np.testing.assert_allclose(mean, covariance @ linear, rtol=1e-9, atol=1e-12)
    root = np.array([draw(e) - mean for e in np.eye(numbers)])
    np.testing.assert_allclose(root.T @ root, covariance, rtol=1e-9, atol=1e-12)


def numbers():
    """H (4, N), positive weights W (N,), slopes r and what is added to eta (N,)."""
    random = rng(3)
    H = random.standard_normal((4, N))
    return H, random.gamma(2.0, 0.1, N), random.normal(size=N), random.normal(size=N)


def test_bias_and_covariates():
    problem = posed("pfcvm", "tall", True, bias_sd=0.7)
    block, (_, W, r, rest) = Covariates(problem, 0.7), numbers()
    beta = rng(4).normal(size=3)
    A = np.column_stack([np.ones(N), problem.C])
    score = r - W * (rest + A @ beta)
    Q = A.T @ np.diag(W) @ A + np.diag([0.7**-2, 1.5**-2, 1.5**-2])
    check_law(lambda z: block.draw(Told(z), W, score, beta)[0], 3, Q, A.T @ (r - W * rest))


@pytest.mark.parametrize("size", ["tall", "fat"])
def test_a_bias_alone(size):
    """And eta is that of the new one."""
    sampler = make_sampler(posed("pfcvm", size, False, bias_sd=0.7))
    start, random = sampler.problem.simulate(rng(4)), rng(5)

    def draw(z):
        state = sampler.state(start)
        make(sampler, ["omega"], state, random)
        state.working.score[:] = r - W * state.eta
        state.working.before, state.working.W = state.working.score.copy(), W
        sampler.bias(state, Told(z))
        np.testing.assert_allclose(state.eta, sampler.problem.decision(sampler.point(state)))
        return np.array([state.bias])

    rows = len(sampler.problem.y)
    _, W, r, _ = (x[..., :rows] for x in numbers())
    linear = np.sum(r - W * (start["eta"] - start["bias"]))
    check_law(draw, 1, np.array([[W.sum() + 0.7**-2]]), np.array([linear]))


def test_a_block_of_the_horseshoe():
    """The bias, a covariate and two of the large weights."""
    (H, W, r, e), fixed, local = numbers(), np.array([0.8, 1.5]), np.array([40.0, 9.0])
    scales = horseshoe_steps.Scales(0.3, 4.0)
    block = horseshoe_steps.Block(
        (H * W) @ H.T, H @ r, H @ (W * e), fixed, local, np.empty(0), *[0.0] * 3, *[1.0] * 3
    )
    v = np.append(fixed**2, 1.0 / ((scales.tau * local) ** -2.0 + 1.0 / scales.c2))
    draw = horseshoe_steps.draw_block.py_func
    precision = (H * W) @ H.T + np.diag(1.0 / v)
    check_law(lambda z: draw(Told(z), block, scales), 4, precision, H @ (r - W * e))


def test_a_pair_of_the_horseshoe():
    own = {"draw_weight": horseshoe_steps.draw_weight.py_func}
    code = horseshoe_steps.draw_pair.py_func.__code__
    draw = FunctionType(code, vars(horseshoe_steps) | own)
    v, w, L, P, cross = 0.3, 2.0, (2.0, -1.2), (3.0, 4.0), 1.7
    Q = np.array([[P[0] + 1.0 / v, cross], [cross, P[1] + 1.0 / w]])
    check_law(lambda z: np.array(draw(Told(z), v, w, L, P, cross)), 2, Q, np.array(L))


@pytest.mark.parametrize("columns", [False, True])
def test_weights_of_a_probit_model(columns):
    """Given z in rows, and in columns, whose scale is told not to move."""
    (H, *_), sd, z = numbers(), np.array([1.0, 0.3, 2.0, 1e-2]), rng(5).normal(size=N)
    H, beta = H.T, np.empty(4)
    P = probit_steps.precision_matrix(H * sd)

    def in_rows(told):
        probit_steps.draw_block(told, P, H, sd**2, z, beta)

    def in_columns(told):
        probit_columns.draw_weights(told, H, H.T @ H, sd, np.sign(z), 0, z.copy(), beta)

    def draw(numbers):
        (in_columns if columns else in_rows)(Told(numbers, chisquare=z @ P @ z))
        return beta.copy()

    # no random number is drawn in no scan
    scan = probit_columns.latent_scan.py_func
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(probit_columns, "latent_scan", scan)
        precision = H.T @ H + np.diag(sd**-2.0)
        check_law(draw, 4 if columns else 4 + N, precision, H.T @ z)


def test_coefficients_of_masks():
    K, W, r, _ = numbers()
    working, Q = Working(W, r, 0.3), (K * W) @ K.T + 0.3 * np.eye(4)
    check_law(lambda z: draw_coefficients(K, working, z), 4, Q, K @ r)
