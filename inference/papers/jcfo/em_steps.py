"""JCFO's expectation-maximisation on plain arrays: its two steps, and one run of them.

Equation numbers are those of Krishnapuram, Carin, Hartemink (2004). H = [1, K_theta(X, Z)] (N, M),
M = B + 1, eta = H beta; for sparse probit regression H = [1, X] and there is no theta.
`rate_beta`, `rate_theta` are the rates of the Laplace and the exponential prior, gamma^1/2.

E-step. With s = 2y - 1, and h(t) = phi(t) / Phi(t),

    E[z_i | y, beta, theta] = eta_i + s_i h(s_i eta_i)          (23)
    E[1 / tau_j | beta_j]   = rate_beta / abs(beta_j)           (24), erratum: gamma1 in print
    E[1 / rho_k | theta_k]  = rate_theta / theta_k              (25), erratum: gamma2 in print

M-step. Minimise abs(v - H beta)^2 / 2 + beta' Omega beta / 2 + theta' Delta theta / 2 over beta and
theta >= 0 jointly (26). For a given theta the best beta is a ridge regression; with
V = Omega^-1 = diag(abs(beta_j)) / rate_beta and r = v - H beta, the two forms are

    primal   beta = k (I + k H'H k)^-1 k H'v,  k = V^1/2           M x M    (29)
    dual     r = (I + H V H')^-1 v,  beta = V H'r                  N x N

Neither form divides by a weight, so a weight of 0 stays 0 and causes no problem. It remains to
minimise

    F(theta) = v'r / 2 + theta' Delta theta / 2,
    dF/dtheta_k = delta_k theta_k - sum_ij r_i beta_j dK_ij/dtheta_k,                      (28)

where the change of beta does not contribute, because beta is at its optimum. The optimiser works on
phi_k = (rate_theta / theta_old_k)^1/2 theta_k, whose penalty phi_k^2 / 2 is the same for every k
and scale.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import linalg, optimize, special

from ardvark.common.declared import Settings, option
from ardvark.common.progress import Reporter, Update
from ardvark.models.parts.kernels import Kernel, Linear
from ardvark.models.parts.probit import probit_logp
from ardvark.models.parts.truncated_normal import truncated_moments

from ...target.backend import FitFailed
from ...target.reasons import Reason
from ..path import PATH, Path

_ROOT_HALF = math.sqrt(0.5)
_ROOT_2_OVER_PI = math.sqrt(2.0 / math.pi)
_TOO_LARGE = 1e100  # limit for a kernel, whose square must not overflow; the objective beyond it
_SETTLED = 1e-2  # a weight whose penalty is below this at convergence may be on its way to 0
VIOLATION = 1e-3  # share of the rate: larger slopes at a weight of 0 are counted
_HIDDEN = 1e-6  # slopes of this size are hidden by the rounding of the objective's values
_NEAR = 1e-3  # a root of the slope further away belongs to another maximum
_ROUNDING = 1e-9  # a root this far below 0 is 0
_STIFF = 1e10  # above it the normal equations of the ridge regression lose too many digits

Objective = Callable[[np.ndarray], tuple[float, np.ndarray]]
"""A function to be minimised, with its gradient."""


@dataclass(frozen=True, kw_only=True)
class EngineOptions(Settings):
    """Options of the iterations."""

    starts: int = option(6, "number of starting points; the one that ends highest is kept", above=0)
    prune: float = option(
        1e-6,
        "a weight whose penalty is below this is set to 0 if that raises the log posterior",
        at_least=0.0,
        below=1.0,
    )
    tolerance: float = option(
        1e-7, "converged when an iteration raises the log posterior by less than this", above=0.0
    )
    max_iterations: int = option(5000, "iterations per start", above=0)
    inner_iterations: int = option(50, "iterations of the optimiser in one M-step", above=0)
    inner_tolerance: float = option(
        1e-4,
        "an M-step ends at a slope of its objective below this; below 1e-6, to rounding",
        above=0.0,
    )
    path: bool = option(False, f"{PATH} (one state for each 5 % of the weights removed)")


# --- the basis functions --------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Basis:
    """The basis functions h_theta of one problem: [1, K_theta(x, Z)], or [1, x] without Z."""

    X: np.ndarray  # (N, D)
    Z: np.ndarray | None = None  # (B, D)
    kernel: Kernel = Linear()  # noqa: RUF009 it is immutable

    @property
    def weights(self) -> int:
        """The number of entries of beta after beta_0: B, or D without a kernel."""
        return self.X.shape[1] if self.Z is None else len(self.Z)

    def restrict(self, rows: np.ndarray, features: np.ndarray) -> "Basis":
        """Return the basis of some centres and some features (without Z: `rows` are features)."""
        if self.Z is None:
            return replace(self, X=_columns(self.X, rows))
        X = _columns(self.X, features)
        if self.Z is self.X:
            return replace(self, X=X, Z=X if len(rows) == len(X) else X[rows])
        return replace(self, X=X, Z=_columns(self.Z[rows], features))

    def evaluate(self, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Return H (N, M), and W (N, B) for `slope` (None if it is all ones).

        A kernel that is too large to be squared raises a FloatingPointError.
        """
        if self.Z is None:
            return _with_ones(self.X), None
        with np.errstate(over="ignore", invalid="ignore"):
            K, W = self.kernel.gram_and_slope(self.X, self.Z, theta)
        if not (np.abs(K) < _TOO_LARGE).all():
            raise FloatingPointError("the kernel overflows")
        return _with_ones(K), W

    def slope(self, W: np.ndarray | None, r: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Return sum_ij r_i weight_j dK_ij/dtheta_k (D,)."""
        if self.Z is None:
            return np.zeros(0)
        return self.kernel.pulled_back(self.X, self.Z, W, r, weight)


def _columns(X: np.ndarray, index: np.ndarray) -> np.ndarray:
    return X if len(index) == X.shape[1] else X[:, index]


def _with_ones(K: np.ndarray) -> np.ndarray:
    H = np.empty((len(K), K.shape[1] + 1))
    H[:, 0], H[:, 1:] = 1.0, K
    return H


# --- E-step ---------------------------------------------------------------------------------------


def score(y: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Return d log P(y | eta) / d eta = s h(s eta), exact to rounding in both tails."""
    s = 2.0 * y - 1.0
    return s * _ROOT_2_OVER_PI / special.erfcx(-_ROOT_HALF * s * eta)


def latent_mean(y: np.ndarray, eta: np.ndarray) -> np.ndarray:
    """Return v = E[z | y, eta], JCFO (23): a normal truncated to the side that y determines."""
    s = 2.0 * y - 1.0
    return s * truncated_moments(s * eta)[0]


# --- M-step ---------------------------------------------------------------------------------------


def profile(
    H: np.ndarray, v: np.ndarray, variance: np.ndarray, form: str = "smaller"
) -> tuple[np.ndarray, np.ndarray]:
    """Return the beta (M,) of JCFO (29), the best for a given H, and r = v - H beta (N,).

    `form` is "primal", "dual", or "smaller" for the one with the smaller matrix. If that matrix is
    too badly conditioned, the result is computed from the singular values of H V^1/2.
    """
    N, M = H.shape
    root = np.sqrt(variance)
    A = H * root  # (N, M)
    primal = form == "primal" or (form == "smaller" and M < N)
    inner = A.T @ A if primal else A @ A.T
    if inner.flat[:: len(inner) + 1].max() < _STIFF:
        inner.flat[:: len(inner) + 1] += 1.0
        factor = linalg.cho_factor(inner, lower=True, overwrite_a=True)
        if primal:
            beta = root * linalg.cho_solve(factor, A.T @ v)
            return beta, v - H @ beta
        r = linalg.cho_solve(factor, v)
        return root * (A.T @ r), r
    U, d, Vt = linalg.svd(A, full_matrices=False)
    along = U.T @ v
    r = v - U @ along + U @ (along / (1.0 + d * d))
    return root * (Vt.T @ (along * d / (1.0 + d * d))), r


def ridge_seed(H: np.ndarray, y: np.ndarray, epsilon: float = 1e-6) -> np.ndarray:
    """Return (epsilon I + H'H)^-1 H'y, step 2 of the algorithm (erratum: H y in print)."""
    U, d, Vt = linalg.svd(H, full_matrices=False)
    return Vt.T @ ((U.T @ y) * d / (d * d + epsilon))


def profiled(
    basis: Basis, beta: np.ndarray, theta: np.ndarray, v: np.ndarray, rates: tuple[float, float]
) -> Objective:
    """Return F, JCFO (26), and its gradient, JCFO (28), in phi = (rate / theta_old)^1/2 theta.

    The variance of beta is the inverse of JCFO (24); the unit of phi is the root of JCFO (25).
    """
    variance, root = np.abs(beta) / rates[0], np.sqrt(theta / rates[1])

    def objective(phi: np.ndarray) -> tuple[float, np.ndarray]:
        try:
            H, W = basis.evaluate(root * phi)
        except FloatingPointError:
            return _TOO_LARGE, np.zeros_like(phi)
        weight, r = profile(H, v, variance)
        slope = basis.slope(W, r, weight[1:])
        return float(0.5 * v @ r + 0.5 * phi @ phi), phi - root * slope

    return objective


def maximise(
    basis: Basis,
    beta: np.ndarray,
    theta: np.ndarray,
    v: np.ndarray,
    rates: tuple[float, float],
    iterations: int = 50,
    tolerance: float = 1e-4,
) -> tuple[np.ndarray, np.ndarray]:
    """Return beta, theta >= 0 at a maximum of Q, above its value at the given ones: JCFO (19).

    Q has several maxima in theta. The optimiser starts from the given theta and never ends lower.
    """
    if len(theta):
        objective, start = profiled(basis, beta, theta, v, rates), np.sqrt(theta * rates[1])
        found = optimize.minimize(
            objective,
            start,
            jac=True,
            method="L-BFGS-B",
            bounds=optimize.Bounds(0.0, np.inf),
            options={"maxiter": iterations, "ftol": 0.01 * tolerance**2, "gtol": tolerance},
        )
        phi = found.x if found.fun <= objective(start)[0] else start
        if tolerance < _HIDDEN:
            phi = _polish(objective, phi)
        theta = np.sqrt(theta / rates[1]) * phi
    H, _ = basis.evaluate(theta)
    return profile(H, v, np.abs(beta) / rates[0])[0], theta


def _polish(objective: Objective, phi: np.ndarray) -> np.ndarray:
    """Return phi with a slope of 0 where it is above 0, to rounding.

    A line search compares values, whose rounding hides slopes below about 1e-7. So the slope itself
    is solved for its root, close by; phi is returned as it is if the root is outside.
    """
    free = phi > 0.0

    def full(inner: np.ndarray) -> np.ndarray:
        point = np.zeros_like(phi)
        point[free] = inner
        return point

    if not free.any():
        return phi
    found = optimize.root(lambda x: objective(full(x))[1][free], phi[free], options={"xtol": 1e-15})
    near = np.abs(found.x - phi[free]).max() < _NEAR and found.x.min() > -_ROUNDING
    return full(np.maximum(found.x, 0.0)) if near else phi


# --- the log posterior ----------------------------------------------------------------------------


def log_posterior(
    y: np.ndarray,
    eta: np.ndarray,
    beta: np.ndarray,
    theta: np.ndarray,
    rates: tuple[float, float],
) -> float:
    """Return log p(y, beta, theta | X), tau, rho and z integrated out: (3), (12), (15).

    beta (M,) and theta (D,) at full size, zeros included.
    """
    log_prior = len(beta) * math.log(rates[0] / 2.0) - rates[0] * np.abs(beta).sum()
    log_prior += len(theta) * math.log(rates[1]) - rates[1] * theta.sum()
    return float(probit_logp(y, eta).sum() + log_prior)


# --- one start ------------------------------------------------------------------------------------


class State:
    """beta (M,), theta (D,), and what follows from them; weights at 0 are skipped."""

    def __init__(
        self,
        basis: Basis,
        y: np.ndarray,
        beta: np.ndarray,
        theta: np.ndarray,
        rates: tuple[float, float],
    ) -> None:
        self.basis, self.y, self.rates = basis, y, rates
        self._support: tuple[np.ndarray, np.ndarray] | None = None
        self.set(beta, theta)

    def set(self, beta: np.ndarray, theta: np.ndarray) -> None:
        """Move to a point; weights that have become 0 leave the working basis."""
        rows, features = np.flatnonzero(beta[1:]), np.flatnonzero(theta)
        old = self._support
        if old is None or not (np.array_equal(rows, old[0]) and np.array_equal(features, old[1])):
            self.working = self.basis.restrict(rows, features)
            self._support = rows, features
        self.beta, self.theta = beta, theta
        self.rows, self.features = np.r_[0, rows + 1], features
        self.H, self.W = self.working.evaluate(theta[features])
        self.eta = self.H @ beta[self.rows]
        self.objective = log_posterior(self.y, self.eta, beta, theta, self.rates)

    def slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return d log-likelihood / d beta and d theta, of the weights that are not 0."""
        r = score(self.y, self.eta)
        return self.H.T @ r, self.working.slope(self.W, r, self.beta[self.rows][1:])

    def full_slopes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the same for every weight, (M,) and (D,)."""
        r = score(self.y, self.eta)
        H, W = self.basis.evaluate(self.theta)
        return H.T @ r, self.basis.slope(W, r, self.beta[1:])

    def step(self, iterations: int, tolerance: float) -> None:
        """Take one E-step and one M-step."""
        v = latent_mean(self.y, self.eta)
        beta, theta = self.beta.copy(), self.theta.copy()
        beta[self.rows], theta[self.features] = maximise(
            self.working,
            beta[self.rows],
            theta[self.features],
            v,
            self.rates,
            iterations,
            tolerance,
        )
        self.set(beta, theta)

    def prune(self, part: float) -> bool:
        """Set weights with a penalty below `part` to 0 if that increases the log posterior."""
        slopes = self.slopes()
        beta_small, theta_small = (
            index[(rate * np.abs(weight[index]) < part) & (slope < rate)]
            for weight, index, slope, rate in (
                (self.beta, self.rows, np.abs(slopes[0]), self.rates[0]),
                (self.theta, self.features, slopes[1], self.rates[1]),
            )
        )
        if self._zero(beta_small, theta_small):
            return True
        none = np.zeros(0, dtype=int)  # together they decrease it, so try them one by one
        moved = [self._zero(np.array([j]), none) for j in beta_small if len(beta_small) > 1]
        moved += [self._zero(none, np.array([k])) for k in theta_small if len(theta_small) > 1]
        return any(moved)

    def _zero(self, at_beta: np.ndarray, at_theta: np.ndarray) -> bool:
        beta, theta = self.beta.copy(), self.theta.copy()
        beta[at_beta], theta[at_theta] = 0.0, 0.0
        return self._try(beta, theta)

    def _try(self, beta: np.ndarray, theta: np.ndarray) -> bool:
        """Move to a point unless nothing changes or the log posterior decreases."""
        if np.array_equal(beta, self.beta) and np.array_equal(theta, self.theta):
            return False
        before, objective = (self.beta, self.theta), self.objective
        self.set(beta, theta)
        if self.objective >= objective:
            return True
        self.set(*before)
        return False


@dataclass
class Run:
    """The run from one start: the point, the traces (entry 0 is the seed), why it stopped early."""

    state: State
    objective: list[float]
    features: list[int]
    samples: list[int]
    reason: str | Reason = ""
    path: Path = field(default_factory=Path)

    def note(self, keeps: bool) -> None:
        """Add the current state to the traces, and to the path if it `keeps` one."""
        self.objective.append(self.state.objective)
        self.features.append(len(self.state.features))
        self.samples.append(int(np.count_nonzero(self.state.beta[1:])))
        if keeps and self.path.due(self.features[-1], self.samples[-1]):
            self.keep()

    def keep(self) -> None:
        """Add the current weights to the path."""
        beta, theta = self.state.beta, self.state.theta
        self.path.keep(len(self.objective) - 1, theta, beta[1:], beta[0])


def iterate(state: State, options: EngineOptions, update: Update | None = None) -> Run:
    """Repeat E- and M-steps until the log posterior no longer changes."""
    run = Run(state, [], [], [])
    run.note(options.path)
    for iteration in range(1, options.max_iterations + 1):
        state.step(options.inner_iterations, options.inner_tolerance)
        state.prune(options.prune)
        still = abs(state.objective - run.objective[-1]) <= options.tolerance
        moved = still and state.prune(_SETTLED)  # converged only if no weight is on its way to 0
        run.note(options.path)
        if update is not None and iteration % 10 == 0:
            update(iteration, f"log posterior {state.objective:.2f}")
        if still and not moved:
            return run
    rise = run.objective[-1] - run.objective[-2]
    text = (
        f"after {options.max_iterations} iterations the log posterior still rises by {rise:.1e} "
        "per iteration"
    )
    run.reason = Reason("unfinished", {"text": text, "options": "max_iterations or tolerance"})
    return run


def seed(
    basis: Basis, y: np.ndarray, rates: tuple[float, float], number: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Return beta and theta at start `number`; number 0 is the paper's start.

    (theta / c, c beta) gives nearly the same eta, so c is set to make both penalties equal.
    """
    D = 0 if basis.Z is None else basis.X.shape[1]
    if number == 0:
        theta = np.ones(D)
        return ridge_seed(basis.evaluate(theta)[0], y), theta
    theta, screened = rng.exponential(size=D) ** 2, number % 2 == 1
    if screened:
        slope = np.abs((y - y.mean()) @ basis.X)
        theta = theta * (slope / max(slope.max(), 1e-300) + 1e-6) ** 2
    size = theta @ np.einsum("ik,ik->k", basis.X, basis.X) / len(y)  # of K_theta(x, x) - 1
    theta = theta / size if size > 0.0 else theta
    epsilon = 1.0 if screened else 1e-6
    beta = ridge_seed(basis.evaluate(theta)[0], y, epsilon)
    for _ in range(5):
        spread = np.abs(beta[1:]).sum()
        if spread > 0.0:
            theta = theta * (rates[0] * spread / (rates[1] * theta.sum())) ** 0.5
        beta = ridge_seed(basis.evaluate(theta)[0], y, epsilon)
    return beta, theta


def solve(
    basis: Basis,
    y: np.ndarray,
    rates: tuple[float, float],
    options: EngineOptions,
    rng: np.random.Generator,
    report: Reporter | None = None,
) -> tuple[Run, np.ndarray]:
    """Return the best of several starts, and the final objective of each (-inf if it failed)."""
    starts = options.starts if basis.Z is not None else 1  # without theta the problem is convex
    best: Run | None = None
    finals, error = np.full(starts, -np.inf), ""
    silent = Reporter(enabled=False) if report is None else report
    for number in range(starts):
        with silent.stage(f"start {number + 1}", total=options.max_iterations) as update:
            try:
                point = seed(basis, y, rates, number, rng)
                run = iterate(State(basis, y, *point, rates), options, update)
            except (FloatingPointError, linalg.LinAlgError) as reason:
                error = str(reason)
                continue
        if options.path and run.path.iteration[-1] != len(run.objective) - 1:
            run.keep()
        finals[number] = run.objective[-1]
        if best is None or finals[number] > best.objective[-1]:
            best = run
    if best is None:
        raise FitFailed(f"no start kept a finite log posterior; the last: {error}")
    return best, finals
