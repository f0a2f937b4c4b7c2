"""What `pfcvm_lp` and `pfcvm_em` share: modes and pruning of PFCVM, PCVM and RVM.

The weights form two blocks (`curvature.py`): the sample block (b, w_1, ..., w_B) and the feature
block theta. Each is a vector u, every entry of which has a prior precision p, a slab precision t
and a smoothing lam. The objective of both methods is

    Q = sum_i ln P(y_i | eta_i) + sum over both blocks of [-(p + t) u^2 / 2 + ln sigmoid(lam u)],

where ln sigmoid(lam u) replaces ln 1(u >= 0). The bias, and the RVM's weights of either sign, have
lam = 0. t = slab^-2 belongs to the model's own prior (`models/parts/slab.py`), and is 0 under the
paper's. The Gauss-Newton curvature of Q in one block, with J = d eta / du and
C = diag(sigma (1 - sigma)), is

    diag(V) + R'R,   V = p + t + lam^2 sigmoid(lam u) sigmoid(-lam u),   R = C^1/2 J.

It is always exact in w, and in theta for the linear kernel. For the other kernels it omits

    E_kl = sum_i (y_i - sigma_i) d2 eta_i / d theta_k d theta_l,

as the paper does, and is positive definite everywhere. No array is D x D.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from scipy import special

from ardvark.common.declared import Settings, option
from ardvark.models import Problem, pcvm, pfcvm
from ardvark.models.pcvm import fixed_theta
from ardvark.models.sparse import KernelHypers

from ...target.backend import Dims, only_for
from ..path import PATH
from .curvature import NAMES, Block, Curvature, prior_mode

NO_WEIGHTS = "no weights, the bias alone"
SMOOTHING = 5.0
"""lambda of the sigmoids that replace w, theta >= 0, as in the paper."""
RVM_THRESHOLD = 1e9
"""The precision above which the RVM's samples are pruned."""
ROUNDS = 2
"""Alternations of Newton steps in w and theta per iteration."""
FAILED = "a matrix is too ill-conditioned for a Cholesky factor; standardise X"


@dataclass(frozen=True, kw_only=True)
class EngineOptions(Settings):
    """Options of both methods; `pfcvm_lp` explains them."""

    hyperprior: Literal["paper", "model"] = option(
        "paper", "c = d = 0, or the problem's own c, d and slab"
    )
    initial_sample_precision: float = option(1.0, "where alpha starts", above=0.0)
    initial_feature_precision: float = option(1.0, "where beta starts", above=0.0)
    feature_threshold: float = option(
        1e3,
        "prune features whose precision exceeds this, and samples (the RVM's: 1e9, as no sigmoid "
        "bounds their precisions); inf: never",
        above=0.0,
        at_most=np.inf,
    )
    feature_floor: float | None = option(
        None, "set a theta below this to 0 (footnote 3); None: only precisions prune", at_least=0.0
    )
    path: bool = option(False, f"{PATH} (one state per iteration)")
    tolerance: float = option(
        1e-4, "relative change of the objective that counts as a change", above=0.0
    )
    max_iterations: int = option(500, "updates of the precisions", above=0)


applies = only_for(
    ("pfcvm", "pcvm", "rvm"), "the algorithm of pfcvm, pcvm and rvm", fixed_scale=True
)


@dataclass
class Engine:
    """The modes of one problem at given precisions, and what was pruned.

    X (N, D), y (N,) in {0, 1}, Z (B, D), basis_sign (B,) the basis labels, -1 or 1 (ones if the
    model has none: `signed`). After pruning, X and Z hold the kept features, Z and basis_sign the
    kept samples. `sizes` is the original (D, B). `thresholds` apply to the precisions of (samples,
    features), `floor` to theta. `history` records what `prune` removed. `bounded` tells whether
    theta >= 0 is enforced (see `_newton`).
    """

    X: np.ndarray
    y: np.ndarray
    Z: np.ndarray
    basis_sign: np.ndarray
    hypers: KernelHypers
    sample: Block
    feature: Block
    signed: bool
    free_theta: bool
    thresholds: tuple[float, float]
    floor: float
    sizes: tuple[int, int]
    bounded: bool = False
    rejected: int = 0
    history: tuple[tuple[Any, ...], ...] = ()

    @classmethod
    def start(cls, problem: Problem, options: EngineOptions, update_bias: bool) -> "Engine":
        """Return the first state: precisions as given, theta at the mode of its smoothed prior.

        Smoothing, initial precisions and thresholds are in units of a weight. With the paper's flat
        hyperprior the unit is 1. With the model's it is the scale of the prior, or the slab if that
        is narrower.
        """
        h, B, D = problem.hypers, len(problem.Z), problem.X.shape[1]
        assert isinstance(h, KernelHypers)  # as `supports` says
        labels = problem.basis_labels
        signs = labels is not None
        threshold = options.feature_threshold if signs else RVM_THRESHOLD

        def block(p: float, prior: Any, size: int, smooth: bool) -> tuple[Block, float]:
            unit, c, d, t = 1.0, 0.0, 0.0, 0.0
            if options.hyperprior == "model":
                unit = min(float(prior.scale), prior.slab)
                c, d, t = prior.shape, prior.rate, prior.slab**-2.0
            p, lam = p / unit**2, SMOOTHING / unit if smooth else 0.0
            at = np.ones(size)
            no = np.zeros(size, dtype=bool)
            return Block(
                prior_mode(p + t, lam) * at, p * at, lam * at, c * at, d * at, np.arange(size),
                no, no, t * at,
            ), unit  # fmt: skip

        sample, unit_w = block(options.initial_sample_precision, h.sample_prior, B, signs)
        zero, yes = np.zeros(1), np.array([True])
        bias = Block(
            zero, zero + h.bias_sd**-2.0, zero, zero, zero, np.array([-1]), yes & (not update_bias),
            yes, zero,
        )  # fmt: skip
        sample = Block(**{n: np.concatenate([getattr(bias, n), getattr(sample, n)]) for n in NAMES})
        unit_theta = 1.0
        if isinstance(h, pfcvm.Hypers):
            first = options.initial_feature_precision
            feature, unit_theta = block(first, h.feature_prior, D, True)
        else:
            assert isinstance(h, pcvm.Hypers)
            fixed, zero = np.ones(D, dtype=bool), np.zeros(D)
            feature = Block(
                fixed_theta(h, D), np.ones(D), zero, zero, zero, np.arange(D), fixed, fixed, zero
            )
        return cls(
            X=problem.X,
            y=problem.y.astype(np.float64),
            Z=problem.Z,
            basis_sign=np.ones(B) if labels is None else labels,
            hypers=h,
            sample=sample,
            feature=feature,
            signed=signs,
            free_theta=problem.spec.learns_theta,
            thresholds=(threshold / unit_w**2, options.feature_threshold / unit_theta**2),
            floor=-np.inf if options.feature_floor is None else options.feature_floor * unit_theta,
            sizes=(D, B),
        )

    def copy(self) -> "Engine":
        """Return a snapshot; arrays are replaced and never changed in place, so they are shared."""
        return replace(self, sample=replace(self.sample), feature=replace(self.feature))

    @property
    def label_sign(self) -> np.ndarray:
        """Labels as -1 and +1 (N,)."""
        return 2.0 * self.y - 1.0

    # --- eta and its derivatives ---

    def kernel(self, theta: np.ndarray) -> np.ndarray | None:
        """Return K (N, B); None if a negative theta makes an rbf kernel exceed 1."""
        return self.hypers.kernel_of().signed_gram(self.X, self.Z, theta)

    def design(self, theta: np.ndarray) -> np.ndarray:
        """Return Phi (N, 1 + B): a column of ones, then s_j K(x_i, z_j)."""
        K = self.kernel(theta)
        assert K is not None
        return np.column_stack([np.ones(len(self.y)), K * self.basis_sign])

    def eta(self, theta: np.ndarray) -> np.ndarray | None:
        """Return eta (N,) at the current sample weights; None if `kernel` returns None."""
        b, a = self.sample.u[0], self.basis_sign * self.sample.u[1:]
        kernel = self.hypers.kernel_of()
        if kernel.is_primal:
            return kernel.decision(self.X, self.Z, theta, a, b)
        K = self.kernel(theta)
        return None if K is None else b + K @ a

    def jacobian(self, theta: np.ndarray) -> np.ndarray:
        """Return D_ik = d eta_i / d theta_k (N, D)."""
        a = self.basis_sign * self.sample.u[1:]
        return self.hypers.kernel_of().gradient(self.X, self.Z, theta, a)

    def log_likelihood(self, eta: np.ndarray) -> float:
        """Return sum_i ln P(y_i | eta_i)."""
        return float(-np.logaddexp(0.0, -self.label_sign * eta).sum())

    # --- modes ---

    def Q(self) -> float:
        """Return Q at the current weights (plus ln 2 for each sigmoid): the log of PFCVM (9)."""
        eta = self.design(self.feature.u) @ self.sample.u
        value = self.log_likelihood(eta) + self.sample.log_prior(self.sample.u)
        return value + (self.feature.log_prior(self.feature.u) if self.moves_theta else 0.0)

    def gradients(self) -> tuple[np.ndarray, np.ndarray]:
        """Return dQ / d(b, w) and dQ / d theta (zeros if theta is fixed)."""
        Phi = self.design(self.feature.u)
        residual = self.residual(Phi @ self.sample.u)
        of_w = Phi.T @ residual + self.sample.gradient(self.sample.u)
        if not self.moves_theta:
            return of_w, np.zeros_like(self.feature.u)
        of_theta = self.jacobian(self.feature.u).T @ residual
        return of_w, of_theta + self.feature.gradient(self.feature.u)

    def residual(self, eta: np.ndarray) -> np.ndarray:
        """Return y - sigmoid(eta), computed from the smaller tail."""
        return self.label_sign * special.expit(-self.label_sign * eta)

    def curvatures(self) -> tuple[Curvature, Curvature | None]:
        """Return the curvature of w, PFCVM (13), and of theta if it is free, PFCVM (21)."""
        Phi = self.design(self.feature.u)
        root = _root_C(Phi @ self.sample.u)
        of_w = Curvature(self.sample.total + self.sample.bend(self.sample.u), root * Phi)
        if not self.moves_theta:
            return of_w, None
        R = self.jacobian(self.feature.u)
        R *= root
        return of_w, Curvature(self.feature.total + self.feature.bend(self.feature.u), R)

    def climb(self, rounds: int, tolerance: float) -> float:
        """Increase Q by Newton steps in w and theta in turn; return the sum of last decrements.

        PFCVM (10) and PFCVM (12) are fixed-point equations for the modes; Newton's method with a
        line search solves them. A decrement g' Sigma g is twice the expected remaining gain in Q.
        """
        left = np.inf
        for _ in range(rounds):
            Phi = self.design(self.feature.u)
            eta, jacobian = partial(np.matmul, Phi), partial(_copy, Phi)
            left = self._newton(self.sample, eta, jacobian, 20, tolerance)
            if not self.moves_theta:
                break
            left += self._newton(self.feature, self.eta, self.jacobian, 5, tolerance)
            if left < tolerance:
                break
        return left

    def _newton(
        self,
        block: Block,
        eta_of: Callable[[np.ndarray], np.ndarray | None],
        jacobian_of: Callable[[np.ndarray], np.ndarray],
        steps: int,
        tolerance: float,
    ) -> float:
        """Take up to `steps` damped Newton steps in one block; return the decrement at the start.

        Once a negative theta has been rejected for an rbf kernel, theta >= 0 is enforced: entries
        at 0 with a negative gradient stay there, and the step of the others is cut at 0.
        """
        first = None
        for _ in range(steps):
            if self.bounded and block is self.feature:
                block.u = np.maximum(block.u, 0.0)
            u = block.u
            eta = eta_of(u)
            assert eta is not None
            R, V = jacobian_of(u), block.total + block.bend(u)
            g = R.T @ self.residual(eta) + block.gradient(u)
            R *= _root_C(eta)
            free = ~self.held(block, g)
            step = np.zeros_like(u)
            if free.all():
                step = Curvature(V, R).solve(g)
            elif free.any():
                step[free] = Curvature(V[free], R[:, free]).solve(g[free])
            decrement = float(g @ step)
            first = decrement if first is None else first
            if decrement < tolerance:
                break
            refused = self.rejected
            if not self._line_search(block, eta_of, g, step, eta) and self.rejected == refused:
                break
        return 0.0 if first is None else first

    def held(self, block: Block, g: np.ndarray) -> np.ndarray:
        """Return which weights (K,) sit at the bound 0 with a gradient that points below it."""
        if not self.bounded or block is not self.feature:
            return np.zeros(len(g), dtype=bool)
        return (block.u <= 0.0) & (g < 0.0)

    def _line_search(
        self,
        block: Block,
        eta_of: Callable[[np.ndarray], np.ndarray | None],
        g: np.ndarray,
        step: np.ndarray,
        eta: np.ndarray,
    ) -> bool:
        """Halve the step until Q increases enough, and take it; return whether one was found."""
        value = self.log_likelihood(eta) + block.log_prior(block.u)
        clip, t = self.bounded and block is self.feature, 1.0
        while t > 1e-10:
            trial = block.u + t * step
            if clip:
                trial = np.maximum(trial, 0.0)
            new = eta_of(trial)
            if new is None:
                self.rejected += 1
                self.bounded = True
                return False
            gain = self.log_likelihood(new) + block.log_prior(trial) - value
            if gain > 0.0 and gain >= 1e-4 * float(g @ (trial - block.u)):
                block.u = trial
                return True
            t *= 0.5
        return False

    def evidence(self, of_w: Curvature, of_theta: Curvature | None) -> float:
        """Return the log of the Laplace evidence PFCVM (14): `pfcvm_lp` stops by it."""
        value = self.log_likelihood(self.design(self.feature.u) @ self.sample.u)
        value += self.sample.evidence(of_w)
        return value + (self.feature.evidence(of_theta) if of_theta is not None else 0.0)

    # --- pruning ---

    def prune(self, iteration: int) -> None:
        """Remove weights whose precision is above its threshold, or theta below its floor."""
        sample, feature = self.sample, self.feature
        keep_s = (sample.p <= self.thresholds[0]) | sample.never_prune
        keep_f = (feature.p <= self.thresholds[1]) & (feature.u >= self.floor)
        keep_f |= feature.never_prune
        if keep_s.all() and keep_f.all():
            return
        self._take(keep_s, keep_f, iteration)
        if not self.collapsed and self.kernel(self.feature.u) is None:
            # the positive thetas that kept distances above 0 despite a negative one are gone
            self.bounded = True
            self.feature.u = np.maximum(self.feature.u, 0.0)

    def drop_all(self, iteration: int) -> None:
        """Remove all weights except the bias; a fixed theta stays."""
        self._take(self.sample.index < 0, self.feature.never_prune, iteration)

    def _take(self, keep_s: np.ndarray, keep_f: np.ndarray, iteration: int) -> None:
        lost = []
        for block, keep in ((self.sample, keep_s), (self.feature, keep_f)):
            lost += [block.index[~keep], block.p[~keep]]
        self.history = (*self.history, (iteration, *lost))
        if not keep_f.all():
            same = self.Z is self.X
            self.X = np.ascontiguousarray(self.X[:, keep_f])
            self.Z = self.X if same else np.ascontiguousarray(self.Z[:, keep_f])
            self.feature.take(keep_f)
        if not keep_s.all():
            self.Z, self.basis_sign = self.Z[keep_s[1:]], self.basis_sign[keep_s[1:]]
            self.sample.take(keep_s)

    @property
    def collapsed(self) -> bool:
        """Whether no sample, or no feature, is left."""
        return len(self.sample.u) == 1 or len(self.feature.u) == 0

    @property
    def moves_theta(self) -> bool:
        """Whether there is a theta to estimate."""
        return self.free_theta and len(self.feature.u) > 0

    def weights(self) -> tuple[np.ndarray, np.ndarray, float]:
        """Return theta (D,), the signed sample weights (B,) and the bias; pruned ones are 0."""
        (D, B), sample = self.sizes, self.sample
        signed = full(self.basis_sign * sample.u[1:], sample.index[1:], B)
        return full(self.feature.u, self.feature.index, D), signed, float(sample.u[0])

    def details(self) -> tuple[dict[str, np.ndarray], Dims]:
        """Return modes, precisions and pruning at full size, with their dims.

        A pruned weight has mode 0 and the precision at which it was pruned. `*_pruned_at` holds the
        iteration in which that happened, or 0 for weights that were kept.
        """
        (D, B), out = self.sizes, {}
        for name, block, size, at in (
            ("sample", self.sample, B, 1), ("feature", self.feature, D, 3),
        ):  # fmt: skip
            own = block.index >= 0
            index = block.index[own]
            precision, pruned = full(block.p[own], index, size), np.zeros(size, dtype=np.int64)
            for gone in self.history:
                precision[gone[at]], pruned[gone[at]] = gone[at + 1], gone[0]
            selected = np.zeros(size, dtype=bool)
            selected[index] = True
            out[f"{name}_mode"] = full(block.u[own], index, size)
            out[f"selected_{name}"] = selected
            if name == "sample" or self.free_theta:
                out |= {f"{name}_precision": precision, f"{name}_pruned_at": pruned}
        dims: Dims = {k: ("basis",) if "sample" in k else ("feature",) for k in out}
        bias = {"bias_mode": self.sample.u[0], "bias_precision": self.sample.p[0]}
        return out | {k: np.asarray(x) for k, x in bias.items()}, dims


def predictive_moments(
    problem: Problem, state: Mapping[str, Any], X_new: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance (M,) of eta at standardised inputs: phi'u and phi' Sigma_w phi.

    phi = [1, s_j K(x, z_j)] at the mode of theta, whose own uncertainty the paper ignores.
    `state` is the `fit` group of a fit, or `Result.details`.
    """
    s = {k: np.asarray(state[k]) for k in ("feature_mode", "sample_mode", "bias_mode")}
    kept = s["feature_mode"] != 0.0
    used = np.flatnonzero(np.asarray(state["selected_sample"]))
    signs = np.ones(len(problem.Z)) if problem.basis_labels is None else problem.basis_labels
    Z, kernel = problem.Z[np.ix_(used, kept)], problem.kernel
    assert kernel is not None  # as `supports` says
    K = kernel.gram(X_new[:, kept], Z, s["feature_mode"][kept])
    phi = np.column_stack([np.ones(len(X_new)), K * signs[used]])  # (M, 1 + kept samples)
    mean = phi @ np.concatenate([[s["bias_mode"]], s["sample_mode"][used]])
    if "sample_factor" not in state:
        return mean, np.zeros(len(X_new))
    rows = np.concatenate([[0], used + 1])
    return mean, np.sum((phi @ np.asarray(state["sample_factor"])[rows]) ** 2, axis=1)


def full(values: np.ndarray, index: np.ndarray, size: int) -> np.ndarray:
    """Return an array of full `size` on the last axis, with zeros for removed entries."""
    out = np.zeros((*values.shape[:-1], size))
    out[..., index] = values
    return out


def _copy(Phi: np.ndarray, _: np.ndarray) -> np.ndarray:
    """Return the Jacobian of eta = Phi u, to be overwritten."""
    return Phi.copy()


def _root_C(eta: np.ndarray) -> np.ndarray:
    """Return (sigma (1 - sigma))^1/2 as a column (N, 1)."""
    return np.sqrt(special.expit(eta) * special.expit(-eta))[:, None]
