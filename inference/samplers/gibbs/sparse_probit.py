"""Exact Gibbs sampler of sparse probit regression: that of JCFO with X in the place of K.

It covers both parametrisations. The posterior is the same, so `point` returns the variables of the
problem's own form. It uses no gradient and no step size, and adapts nothing.

Notation: N samples, D features, H = [1, X] (N, D + 1), beta = (beta_0 ... beta_D) with the bias
first, T = diag(tau); covariates are more columns of H, whose weights f come last in beta and
have the fixed variance covariate_sd^2 in T; z_i ~ Normal(eta_i, 1) with y_i = 1(z_i > 0) (Albert,
Chib 1993, doi 10.1080/01621459.1993.10476321).

One sweep
---------
Variables in brackets are integrated out of the step, and drawn again before anything uses them.

1. A scale move [tau]: (z, beta) -> e^u (z, beta), a generalised Gibbs step (Liu, Sabatti 2000, doi
   10.1093/biomet/87.2.353), a slice step in u with its exact density.
2. tau_k | beta_k: 1 / tau_k is inverse Gaussian.
3. z | tau, y [beta], one z_i after the other (Holmes, Held 2006, doi 10.1214/06-BA105), then the
   scale of z [beta]; then beta | z, tau, as one block, through its N x N dual (Bhattacharya,
   Chakraborty, Mallick 2016, doi 10.1093/biomet/asw042), or its own D x D system if that is
   smaller.
4. beta | tau, y [z] by elliptical slice sampling (Murray, Adams, MacKay 2010), then z | eta, y.

A learned scale g moves in step 3, with z [beta], by `collapsed_scale.py`, and step 4 is left out.
Where rows outnumber columns it moves before the variances instead, by steps a and b of
`laplace_scale.py`.

`probit_steps.py` has the steps, `jcfo.py` their formulas. All weights move as one block, so
correlated features do not slow the chain; the weights and their variances tau do hold each other.

Cost
----
A sweep takes O(N^2 D + N^3) time, and memory O(N D + N^2), never D x D. Where N > D + K + 1 it
takes O(N D^2) time and O(N D) memory, never N x N (`probit_columns.py`), and step 4 is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ardvark.models import Problem, sparse_probit
from ardvark.models.jcfo import SCALE
from ardvark.models.parts.kernels import LINEAR

from . import collapsed_scale, laplace_scale
from .probit import ProbitSampler
from .probit_steps import draw_latent, draw_variances


@dataclass
class State:
    """The state of one chain.

    Attributes
    ----------
    beta, tau : array (D + 1 + K,)
        Weights and their variances, those of the bias first and those of covariates last.
    z, eta : array (N,)
        Latent decision values, and decision values.
    scale : float
        The learned scale g; 1 where it is fixed.
    """

    beta: np.ndarray
    tau: np.ndarray
    z: np.ndarray
    eta: np.ndarray
    scale: float = 1.0


class Sampler(ProbitSampler):
    """The sampler of one problem. Chains share it; each has its own State and Generator.

    Parameters
    ----------
    problem : Problem
        A problem of the model "sparse_probit", in any parametrization.
    """

    STEPS = (
        "complete", "scale", "learn_alone", "learn_with_weights", "variances", "weights",
        "elliptical",
    )  # fmt: skip

    def __init__(self, problem: Problem) -> None:
        N, D = problem.X.shape
        h = problem.hypers
        assert isinstance(h, sparse_probit.Hypers)  # as `supports` says
        super().__init__(problem, weights=D + 1, learned=h.learned_scale is not None)
        self.precise = h.parametrization == "hierarchical"
        self.gamma = float(h.gamma1)
        self.bias_gamma = float(sparse_probit.bias_gamma(self.gamma, h))
        if self.learned and not self.tall:
            self.left_out |= {"learn_alone", "learn_with_weights", "elliptical"}
        self.features = slice(1, D + 1)
        self.cycles = int(np.clip(D // N, collapsed_scale.FEWEST, collapsed_scale.MOST))
        self.H = np.hstack([np.ones((N, 1)), problem.X, self.covariates.C])
        self.products = self.H.T @ self.H if self.H.shape[1] < N else np.empty((0, 0))

    def state(self, point: Mapping[str, np.ndarray]) -> State:
        """Return the state at a point of the paper's variables, in either form.

        The next sweep draws z and tau, which are not in the paper's variables or need not be.
        """
        weights = np.append(point["bias"], point["beta"]).astype(np.float64)
        beta = np.append(weights, self.covariates.at(point))
        N, K = self.H.shape
        state = State(beta, np.full(K, np.nan), np.full(N, np.nan), self.H @ beta)
        state.tau[len(weights) :] = self.covariates.sd**2
        if self.learned:
            state.scale = float(point[SCALE])
        if "tau" in point:
            state.tau[self.own] = np.append(point["tau_bias"], point["tau"])
        return state

    def design(self, state: State) -> np.ndarray:
        """Return [1, X, C]."""
        return self.H

    def gram(self, H: np.ndarray) -> np.ndarray:
        """Return H'H, which no sweep changes."""
        return self.products

    def point(self, state: State) -> dict[str, np.ndarray]:
        """Return the variables of the problem's form and the shared quantities, as copies."""
        beta, tau = state.beta[self.own], state.tau[self.own]
        point = {
            "bias": np.array(beta[0]),
            "beta": beta[1:].copy(),
            "feature_weight": np.abs(beta[1:]),
            "eta": state.eta.copy(),
            **self.covariates.named(state.beta[len(beta) :]),
        }
        if self.learned:
            point[SCALE] = np.array(state.scale)
        if self.precise:
            point |= {"tau_bias": np.array(tau[0]), "tau": tau[1:].copy()}
        return self.completed(point)

    # --- one sweep --------------------------------------------------------------------------------

    def complete(self, state: State, rng: np.random.Generator) -> None:
        """Draw z if the point had none."""
        if np.isnan(state.z[0]):
            draw_latent(rng, self.label_sign, state.eta, state.z)

    def scale(self, state: State, rng: np.random.Generator) -> None:
        """Step 1, each weight and the bias with its own gamma."""
        rate = self.gamma**0.5 / state.scale
        size = rate * np.abs(state.beta[self.own]).sum()
        if self.learned:
            size += (self.bias_gamma**0.5 - rate) * abs(state.beta[0])
        u = self.common_scale(state, rng, size)
        for array in (state.beta, state.z, state.eta):
            array *= np.exp(u)

    def learn_alone(self, state: State, rng: np.random.Generator) -> None:
        """Step a of a learned scale: g by itself."""
        beta = state.beta[self.features]
        down = self.gamma**0.5 / state.scale * float(np.abs(beta).sum())
        state.scale *= laplace_scale.alone(rng, state.scale, len(beta), down, 0.0, 0.0)

    def learn_with_weights(self, state: State, rng: np.random.Generator) -> None:
        """Step b: g with the weights of the features; then z."""
        beta = state.beta[self.features]
        own = self.H[:, self.features] @ beta
        fixed = state.eta - own
        line = laplace_scale.Line(fixed, own, LINEAR, 1, laplace_scale.NONE, beta)
        growth = laplace_scale.with_weights(rng, state.scale, self.label_sign, line)
        state.scale *= growth
        beta *= growth
        state.eta[:] = fixed + growth * own
        draw_latent(rng, self.label_sign, state.eta, state.z)

    def latent(
        self, state: State, rng: np.random.Generator, H: np.ndarray, sd: np.ndarray
    ) -> np.ndarray:
        """Step 3 in the rows; a learned scale moves with z."""
        if not self.learned:
            return super().latent(state, rng, H, sd)
        own, others = self.features, [0, *range(self.features.stop, len(sd))]
        found = collapsed_scale.spectrum(
            H[:, own] * (sd[own] / state.scale), H[:, others] * sd[others]
        )
        g = collapsed_scale.move(rng, self.cycles, state.scale, found, self.label_sign, state.z)
        state.tau[own] *= (g / state.scale) ** 2
        state.scale = g
        return collapsed_scale.precision(found, g)

    def variances(self, state: State, rng: np.random.Generator) -> None:
        """Step 2."""
        kinds = (slice(0, 1), self.bias_gamma), (self.features, self.gamma / state.scale**2)
        for kind, gamma in kinds:
            draw_variances(rng, state.beta[kind], gamma, state.tau[kind])
