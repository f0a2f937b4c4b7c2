"""Exact Gibbs sampler of JCFO, in its latent form.

It covers every kernel of `models/jcfo.py`. The posterior is the same in its three forms, so `point`
returns the variables of the problem's own form. It uses no gradient and no step size, and adapts
nothing. So it is a check of NUTS that shares no code with it.

Notation: N samples, B basis centres, D features, H = [1, K] (N, B + 1), beta = (beta_0 ... beta_B)
with the bias first, T = diag(tau); covariates are more columns of H, whose weights f come last in
beta and have the fixed variance covariate_sd^2 in T; root1 = gamma1^1/2, root2 = gamma2^1/2, which
with a learned scale g is gamma2^1/2 / g.
Equation numbers are the paper's (Krishnapuram, Carin, Hartemink 2004).

One sweep
---------
Variables in brackets are integrated out of the step, and drawn again before anything uses them;
that is why the order matters (van Dyk, Park 2008, doi 10.1198/016214508000000409).

1. theta_k | beta [rho], one k after the other, in one of two ways.
   Given z too (`linear` and degree 1, when D >= N): with rho integrated out the prior is
   exponential (15), and eta is linear in theta_k. With g_ik = x_ik (Z'beta)_k the conditional is a
   normal truncated to theta_k > 0, with precision G = sum_i g_ik^2 and mean
   (sum_i g_ik (z_i - eta_i + g_ik theta_k) - root2) / G.
   Given y but not z (every other case): slice sampling (Neal 2003, doi 10.1214/aos/1056562461) of
   v = exp(-root2 theta_k), whose prior is uniform on (0, 1). The first interval is all of (0, 1),
   so there is no width to choose, and shrinking it is enough. Then z | eta, y. These steps are
   larger than those given z, most of all if many observations are far on their side of 0.
2. Two scale moves [tau, rho]: generalised Gibbs steps along a group of scalings (Liu, Sabatti 2000,
   doi 10.1093/biomet/87.2.353), a slice step in u each, with the density of u exact.
   `linear` and degree 1: (theta, beta_j) -> (e^u theta, e^-u beta_j), j >= 1, and for degree 1
   beta_0 -> beta_0 + (1 - e^-u) sum_{j>=1} beta_j, so that eta stays. Every kernel:
   (z, beta) -> e^u (z, beta).
   With a learned scale of theta, then g [tau, rho] by the steps of `laplace_scale.py`.
3. tau_j | beta_j and rho_k | theta_k: 1 / tau_j ~ InverseGaussian(mean root1 / abs(beta_j), shape
   gamma1), and likewise for rho.
4. z_i | z_-i, theta, tau, y [beta], one i after the other, a few times (Holmes, Held 2006, doi
   10.1214/06-BA105): with P = (I + H T H')^-1, z_i ~ Normal(z_i - (P z)_i / P_ii, P_ii^-1/2) on its
   side of 0. Then the scale of z [beta]: z -> g z, g^2 z'P z ~ chi-squared(N) (Liu, Wu 1999, doi
   10.1080/01621459.1999.10473879). Then beta | z, theta, tau ~ Normal(V H'z, V),
   V = (H'H + T^-1)^-1, through its N x N dual (Bhattacharya, Chakraborty, Mallick 2016, doi
   10.1093/biomet/asw042).
5. beta | theta, tau, y [z] by elliptical slice sampling (Murray, Adams, MacKay 2010, PMLR 9), a few
   times, then z | eta, y. Beta mixes slowly given z if N is large and the classes are well
   separated; this step avoids that.

Cost
----
A sweep takes O(N B D + N^2 B + N^3) time. If K is not linear in theta, each evaluation of the slice
sampler costs O(N B). A feature mostly needs one or two: the first proposal is a draw from the
prior, and most features follow the prior. Memory is O(N D + N B + N^2), never D x D or N x B x D.

Difficulties
------------
The posterior of theta and beta has several modes (`models/jcfo.py`), and coordinate updates leave a
mode slowly: check R-hat of `eta` over dispersed chains. Mixing is slowest if N is well above D and
the classes are well separated.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ardvark.common.validate import InputError
from ardvark.models import Problem, jcfo
from ardvark.models.jcfo import SCALE
from ardvark.models.parts.covariates import NAME as COVARIATES

from . import laplace_scale, probit
from .jcfo_steps import linear_scan, slice_scan
from .probit_steps import draw_latent, draw_variances, log_scale
from .products import by_features, distances, weighted_products

_NOTHING = np.empty(0)


@dataclass
class State:
    """The state of one chain.

    Attributes
    ----------
    theta, rho : array (D,)
        Feature weights and their variances.
    beta, tau : array (B + 1 + K,)
        Sample weights and their variances, those of the bias first and those of covariates last.
    z, eta : array (N,)
        Latent decision values, and decision values.
    H : array (N, B + 1 + K)
        [1, K_theta, C].
    inner : array (N, B)
        What K is a function of, if it is not linear in theta: the weighted inner product
        (polynomial) or squared distance (rbf). Otherwise empty, of shape (0, 0).
    scale : float
        The learned scale g of theta; 1 where it is fixed.
    """

    theta: np.ndarray
    rho: np.ndarray
    beta: np.ndarray
    tau: np.ndarray
    z: np.ndarray
    eta: np.ndarray
    H: np.ndarray
    inner: np.ndarray
    scale: float = 1.0


class Sampler(probit.ProbitSampler):
    """The sampler of one problem. Chains share it; each has its own State and Generator.

    Parameters
    ----------
    problem : Problem
        A problem of the model "jcfo", with any kernel and any parametrization.
    """

    STEPS = (
        "complete", "features", "apart", "scale", "learn_alone", "learn_apart",
        "learn_with_weights", "variances", "kernel", "weights", "elliptical",
    )  # fmt: skip

    def __init__(self, problem: Problem) -> None:
        h, weights = problem.hypers, len(problem.Z) + 1
        assert isinstance(h, jcfo.Hypers)  # as `supports` says
        super().__init__(problem, weights, learned=h.learned_scale is not None)
        self.form = h.parametrization
        self.gamma1, self.gamma2 = (float(h.gamma1), float(h.gamma2))
        self.root1, self.root2 = math.sqrt(self.gamma1), math.sqrt(self.gamma2)
        self.kernel_function = h.kernel_of()
        self.degree, self.linear = self.kernel_function.degree, self.kernel_function.is_primal
        self.left_out |= set() if self.linear else {"apart", "learn_apart"}
        self.Xt, self.Zt = by_features(problem)
        self.square = np.einsum("dn,dn->d", self.Xt, self.Xt)  # sum_i x_ik^2
        self.samples = slice(1, len(problem.Z) + 1)  # of beta, after the bias

    @property
    def truncated(self) -> bool:
        """Whether step 1 draws truncated normals; if not, it makes slice steps."""
        D, N = self.Xt.shape
        return self.linear and D >= N

    # --- states -------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator, chain: int) -> State:
        """Return a dispersed start: theta and beta from the prior, the rest given them and y.

        Chains differ only by their rng.
        """
        drawn = self.problem.simulate(rng)
        names = ("feature_weight", "sample_weight", "bias", COVARIATES, SCALE)
        state = self.state({name: drawn[name] for name in names if name in drawn})
        self.complete(state, rng)
        return state

    def state(self, point: Mapping[str, np.ndarray]) -> State:
        """Return the state at a point of the paper's variables, in any form.

        `feature_weight`, `sample_weight` and `bias` are required. If `tau` (with `tau_bias`), `rho`
        or `z` is missing, it is NaN until `complete` or the next sweep draws it.
        """
        (D, N), B = self.Xt.shape, self.Zt.shape[1]
        state = State(
            theta=np.array(point["feature_weight"], dtype=np.float64),
            rho=np.full(D, np.nan),
            beta=np.concatenate(
                [[point["bias"]], point["sample_weight"], self.covariates.at(point)]
            ).astype(np.float64),
            tau=np.append(np.full(B + 1, np.nan), self.covariates.sd**2),
            z=np.full(N, np.nan),
            eta=np.empty(N),
            H=np.hstack([np.ones((N, B + 1)), self.covariates.C]),
            inner=np.empty((0, 0) if self.linear else (N, B)),
        )
        if self.learned:
            state.scale = float(point[SCALE])
        self.kernel(state)
        state.eta[:] = state.H @ state.beta
        if "tau" in point:
            state.tau[self.own] = np.append(point["tau_bias"], point["tau"])
        if "rho" in point:
            state.rho[:] = point["rho"]
        if "z" in point:
            state.z[:] = point["z"]
            if not np.array_equal(state.z > 0.0, self.label_sign > 0.0):
                raise InputError(
                    "z of the point must be positive where y = 1 and negative or 0 elsewhere. Omit "
                    "z to draw it for the current labels."
                )
        return state

    def complete(self, state: State, rng: np.random.Generator) -> None:
        """Draw each of tau, rho and z that is NaN from its conditional."""
        if np.isnan(state.tau[0]):
            draw_variances(rng, state.beta[self.own], self.gamma1, state.tau[self.own])
        if np.isnan(state.rho[0]):
            draw_variances(rng, state.theta, self.gamma2 / state.scale**2, state.rho)
        if np.isnan(state.z[0]):
            draw_latent(rng, self.label_sign, state.eta, state.z)

    def design(self, state: State) -> np.ndarray:
        """Return [1, K_theta, C]."""
        return state.H

    def point(self, state: State) -> dict[str, np.ndarray]:
        """Return copies of the variables of the problem's form, and of `eta`."""
        form = self.form
        out = {
            "bias": np.array(state.beta[0]),
            "sample_weight": state.beta[self.samples].copy(),
            "feature_weight": state.theta.copy(),
            "eta": state.eta.copy(),
            **self.covariates.named(state.beta[self.own.stop :]),
        }
        if self.learned:
            out[SCALE] = np.array(state.scale)
        if form != "marginal":
            out |= {
                "tau_bias": np.array(state.tau[0]),
                "tau": state.tau[self.samples].copy(),
                "rho": state.rho.copy(),
            }
        if form == "latent":
            out["z"] = state.z.copy()
        return self.completed(out)

    # --- one sweep ----------------------------------------------------------------------------

    def features(self, state: State, rng: np.random.Generator) -> None:
        """Step 1: theta, and z after it if it was integrated out."""
        slope = self.Zt @ state.beta[self.samples]  # (Z'beta)_k
        rate = self.root2 / state.scale
        if self.truncated:
            residual = state.z - state.eta
            linear_scan(rng, self.Xt, slope, self.square, rate, residual, state.theta)
            np.subtract(state.z, residual, out=state.eta)
            return
        added = self.covariates.C @ state.beta[self.own.stop :] if self.covariates else _NOTHING
        slice_scan(
            rng, self.kernel_function.code, self.degree, self.Xt, self.Zt, self.label_sign, rate,
            slope, state.beta, added, state.inner, state.eta, state.theta,
        )  # fmt: skip
        draw_latent(rng, self.label_sign, state.eta, state.z)

    def apart(self, state: State, rng: np.random.Generator) -> None:
        """Step 2: the scale of theta against beta, under a linear kernel."""
        self.move_apart(state, self.opposite_scale(state, rng))

    def scale(self, state: State, rng: np.random.Generator) -> None:
        """Step 2: the scale of z and beta."""
        beta = state.beta
        size = self.root1 * np.abs(beta[self.own]).sum()
        u = self.common_scale(state, rng, size)
        for array in (beta, state.z, state.eta):
            array *= math.exp(u)

    def move_apart(self, state: State, u: float) -> None:
        """(theta, beta_j) -> (e^u theta, e^-u beta_j), eta as it is; under a linear kernel."""
        theta, beta = state.theta, state.beta
        theta *= math.exp(u)
        if self.degree == 1:
            beta[0] -= math.expm1(-u) * beta[self.samples].sum()
        beta[self.samples] *= math.exp(-u)

    def opposite_scale(self, state: State, rng: np.random.Generator) -> float:
        """Draw u of (theta, beta) -> (e^u theta, e^-u beta).

        ln density = (D - B) u - root2 e^u sum theta - root1 e^-u sum abs(beta)
                     - root1 abs(beta_0 + S - S e^-u),   S = sum_j beta_j for degree 1, else 0.
        """
        theta, beta = state.theta, state.beta[self.own]
        power = float(len(theta) - len(beta) + 1)
        up = self.root2 / state.scale * theta.sum()
        down, offset, tilt = self.held_back(beta)
        # close to the width of the mode, and the same at both ends of a move, as up * down is
        width = 3.0 * (power * power + 4.0 * up * down) ** -0.25
        return log_scale(rng, width, power, 0.0, up, down, offset, tilt)

    def held_back(self, beta: np.ndarray) -> tuple[float, float, float]:
        """Return the terms of the prior of beta in the density of a move apart."""
        tilt = self.root1 * beta[1:].sum() if self.degree == 1 else 0.0
        return self.root1 * np.abs(beta[1:]).sum(), self.root1 * beta[0] + tilt, tilt

    def learn_alone(self, state: State, rng: np.random.Generator) -> None:
        """Step a of a learned scale: g by itself."""
        down = self.root2 / state.scale * float(state.theta.sum())
        state.scale *= laplace_scale.alone(rng, state.scale, len(state.theta), down, 0.0, 0.0)

    def learn_apart(self, state: State, rng: np.random.Generator) -> None:
        """Step c: g with theta, and against beta."""
        beta = state.beta[self.own]
        growth = laplace_scale.alone(rng, state.scale, len(beta) - 1, *self.held_back(beta))
        state.scale *= growth
        self.move_apart(state, math.log(growth))

    def learn_with_weights(self, state: State, rng: np.random.Generator) -> None:
        """Step b: g with theta; then z."""
        beta = state.beta[self.own]
        fixed = beta[0] + self.covariates.C @ state.beta[self.own.stop :]
        if self.linear:  # degree is 1 where the kernel has a 1, and else 0
            fixed += self.degree * beta[1:].sum()
        kernel = self.kernel_function.code, self.degree, state.inner, beta[1:]
        line = laplace_scale.Line(fixed, state.eta - fixed, *kernel)
        growth = laplace_scale.with_weights(rng, state.scale, self.label_sign, line)
        state.eta[:] = laplace_scale.grown(growth, line)
        state.scale *= growth
        state.theta *= growth
        draw_latent(rng, self.label_sign, state.eta, state.z)

    def variances(self, state: State, rng: np.random.Generator) -> None:
        """Step 3: tau and rho."""
        draw_variances(rng, state.beta[self.own], self.gamma1, state.tau[self.own])
        draw_variances(rng, state.theta, self.gamma2 / state.scale**2, state.rho)

    def kernel(self, state: State, rng: np.random.Generator | None = None) -> None:
        """Recompute H and its components from theta."""
        function = distances if self.kernel_function.by_distance else weighted_products
        inner = function(self.Xt, state.theta, self.Zt)
        if not self.linear:
            state.inner[:] = inner
        self.kernel_function.of_inner(inner, out=state.H[:, self.samples])
