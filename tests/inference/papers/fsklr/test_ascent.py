"""FS-SKLR's algorithm 2, (31) to (35): the bound of a mean field, which each step raises."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special, stats

from ardvark.inference.papers.fsklr.variational import gaussian, logistic
from tests.inference.papers.ascent import Ascent, check_ascent, check_control
from tests.support import rng


def numbers(N, A, number=0):
    random = rng(number)
    return random.standard_normal((N, A)), random.integers(2, size=N).astype(float), random


def of_coefficients(m, S, xi):
    """E_q[ln p(alpha)] and the entropy of q(alpha) = N(m, S)."""
    A = len(m)
    square = np.trace(S) + m @ m
    prior = 0.5 * (A * np.log(xi / (2 * np.pi)) - xi * square)
    return prior + 0.5 * np.linalg.slogdet(2 * np.pi * np.e * S)[1]


def labels(A, N=14, xi=0.7, scale=1.0):
    """Logistic labels; as many columns as rows, or more, are computed in eta."""
    K, y, _ = numbers(N, A)
    K = scale * K

    def elbo(v):
        """Mean field over Polya-Gamma variables, q(omega_i) = PG(1, rho_i): KL by their mean.

        PG(w | 1, c) = cosh(c / 2) exp(-c^2 w / 2) PG(w | 1, 0).
        """
        m, S, c = v["m"], v["S"], v["rho"]
        omega = np.tanh(c / 2) / (2 * c)
        square = np.einsum("ij,jk,ik->i", K, S + np.outer(m, m), K)
        likelihood = -np.log(2) + (y - 0.5) * (K @ m) - 0.5 * omega * square
        kl = np.log(np.cosh(c / 2)) - 0.5 * c**2 * omega
        return np.sum(likelihood - kl) + of_coefficients(m, S, xi)

    def coefficients(v):
        """(32) to (34), row by row."""
        P, b = xi * np.eye(A), np.zeros(A)
        for k, label, rho in zip(K, y, v["rho"], strict=True):
            P += 2 * np.tanh(rho / 2) / (4 * rho) * np.outer(k, k)
            b += (label - 0.5) * k
        S = np.linalg.inv(P)
        return {"m": S @ b, "S": S}

    def bound_points(v):
        """(35), with a rho of its own for each row."""
        second = v["S"] + np.outer(v["m"], v["m"])
        return {"rho": np.array([np.sqrt(k @ second @ k) for k in K])}

    def coefficient_step(state):
        state.q = logistic(K, y, xi, state.rho, 1, 1e-300)
        state.m, state.S = state.q.mean, state.q.covariance()
        state.fresh = True

    def bound_step(state):
        state.rho, state.fresh = state.q.rho, False

    def start(number):
        state = SimpleNamespace(rho=(0.5 + numbers(N, 0, number)[2].random(N)) * 4.0**number)
        coefficient_step(state)
        return state

    def end(state):
        state.q = logistic(K, y, xi, state.rho, 5000, 1e-14)
        state.rho, state.m, state.S = state.q.rho, state.q.mean, state.q.covariance()
        state.fresh = False
        assert state.q.converged
        assert np.diff(state.q.elbo).min() > -1e-10

    return Ascent(
        start=start,
        steps={"rho": bound_step, "alpha": coefficient_step},
        values=lambda state: {"m": state.m, "S": state.S, "rho": state.rho},
        dense=elbo,
        objective=lambda state: state.q.elbo[0] if state.fresh else None,
        charts={"m": "real", "S": "covariance", "rho": "positive"},
        maximises={"alpha": (("m", "S"), None), "rho": (("rho",), None)},
        formula={"alpha": coefficients, "rho": bound_points},
        end=end,
    )


def squared(A, N=14, xi=0.8):
    """Squared errors: q(alpha) q(tau), in which an iteration updates both."""
    K, y, _ = numbers(N, A)
    s, (a, b) = 2.0 * y - 1.0, (3.0, 2.0)

    def run(iterations, tolerance=1e-300):
        return gaussian(K, s, xi, (a, b), iterations, tolerance)

    def error(v):
        return np.sum((s - K @ v["m"]) ** 2) + np.trace(K @ v["S"] @ K.T)

    def elbo(v):
        shape, rate = float(v["shape"]), float(v["rate"])
        law = stats.gamma(shape, scale=1 / rate)
        log_tau = special.digamma(shape) - np.log(rate)
        value = 0.5 * N * (log_tau - np.log(2 * np.pi)) - 0.5 * law.mean() * error(v)
        prior = a * np.log(b) - special.gammaln(a) + (a - 1) * log_tau - b * law.mean()
        return value + prior + law.entropy() + of_coefficients(v["m"], v["S"], xi)

    def updated(v):
        tau = v["shape"] / v["rate"]
        S = np.linalg.inv(xi * np.eye(A) + tau * K.T @ K)
        after = {"m": tau * S @ K.T @ s, "S": S}
        return after | {"shape": a + N / 2, "rate": b + error(after) / 2}

    def values(state):
        q = run(state.count)
        return {
            "m": q.mean, "S": q.covariance(),
            "shape": np.asarray(q.tau_shape), "rate": np.asarray(q.tau_rate),
        }  # fmt: skip

    return Ascent(
        start=lambda number: SimpleNamespace(count=1 + number),
        steps={"sweep": lambda state: setattr(state, "count", state.count + 1)},
        values=values,
        dense=elbo,
        objective=lambda state: run(state.count).elbo[-1],
        charts={"m": "real", "S": "covariance", "shape": "positive", "rate": "positive"},
        maximises={"sweep": (("shape", "rate"), None)},
        formula={"sweep": updated},
        end=lambda state: setattr(state, "count", 300),
    )


CASES = {
    "columns": lambda: labels(6),
    "rows": lambda: labels(14),
    "more_columns": lambda: labels(20),
    "large": lambda: labels(6, xi=0.01, scale=3.0),
    "squared": lambda: squared(4),
}


@pytest.mark.parametrize("case", CASES)
def test_ascent(case):
    check_ascent(CASES[case]())


def one_rho(state):
    """(35) as printed: one rho, of all rows (an erratum)."""
    rho = state.q.rho
    state.rho, state.fresh = np.full(len(rho), np.mean(rho**2) ** 0.5), False


def without_mean(state):
    """(35) without m m'."""
    K, _, _ = numbers(14, 6)
    state.rho, state.fresh = np.sqrt(np.einsum("ij,jk,ik->i", K, state.S, K)), False


def other_labels(state):
    K, y, _ = numbers(14, 6)
    state.q = logistic(K, 1 - y, 0.7, state.rho, 1, 1e-300)
    state.m, state.S, state.fresh = state.q.mean, state.q.covariance(), True


def rate_for_precision(state):
    """xi as a variance (an erratum: after (15))."""
    K, y, _ = numbers(14, 6)
    state.q = logistic(K, y, 1 / 0.7, state.rho, 1, 1e-300)
    state.m, state.S, state.fresh = state.q.mean, state.q.covariance(), True


WRONG = {
    "rho-one_for_all": ("rho", one_rho),
    "rho-without_mean": ("rho", without_mean),
    "alpha-other_labels": ("alpha", other_labels),
    "alpha-xi_is_a_variance": ("alpha", rate_for_precision),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_step_fails(wrong):
    check_control(labels(6), *WRONG[wrong])


def test_a_wrong_sweep_of_squared_errors_fails():
    """Two sweeps for one."""
    check_control(squared(4), "sweep", lambda state: setattr(state, "count", state.count + 2))
