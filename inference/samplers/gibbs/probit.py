"""What the samplers of JCFO and of sparse probit share: both are linear in beta given H.

eta = H beta and y = 1 where z = eta + e is positive, e ~ Normal(0, I); beta has variances tau, so
that V = (H'H + T^-1)^-1, T = diag(tau), is its covariance given z. The weights of covariates are
the last ones of beta. Where rows outnumber the weights, z and beta are drawn in the columns of H
(`probit_columns.py`), else in its rows (`probit_steps.py`).
"""

from abc import abstractmethod
from typing import Any

import numpy as np

from ardvark.models import Problem

from .covariates import Covariates
from .probit_columns import draw_weights
from .probit_steps import (
    draw_block,
    draw_latent,
    elliptical,
    latent_scale,
    latent_scan,
    log_scale,
    precision_matrix,
)
from .sampler import GibbsSampler


class ProbitSampler(GibbsSampler):
    """The steps of z and beta; a state has `beta`, `tau`, `z` and `eta`.

    Parameters
    ----------
    problem : Problem
    weights : int
        How many weights beta has, the bias among them and those of covariates not.
    learned : bool
        Whether the scale of the features is learned.

    Attributes
    ----------
    latent_scans, elliptical_steps : int
        Passes over z before beta is drawn, and moves of beta without z.
    columns : bool
        Whether z and beta are drawn in columns where rows outnumber them, without these moves.
    """

    latent_scans = 3
    elliptical_steps = 5
    columns = True

    def __init__(self, problem: Problem, weights: int, *, learned: bool) -> None:
        super().__init__(problem)
        self.covariates, self.own = Covariates(problem), slice(0, weights)
        self.learned = learned
        self.tall = self.columns and len(problem.y) > weights + len(self.covariates.sd)
        # a step from the prior is short where rows are many, and costs as much as before
        if self.tall or not self.elliptical_steps:
            self.left_out.add("elliptical")
        if not learned:
            self.left_out |= {step for step in self.STEPS if step.startswith("learn")}

    def completed(self, point: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return a point with the free variables of the problem's form that it lacks."""
        free = self.problem.to_free(point)
        return point | {name: np.asarray(free[name]) for name in free if name not in point}

    def common_scale(self, state: Any, rng: np.random.Generator, size: float) -> float:
        """Draw u of (z, beta) -> e^u (z, beta).

        ln density = (N + M) u - e^2u sum_i (z_i - eta_i)^2 / 2 - size e^u, for M weights, the bias
        among them. `size` is the sum of abs(beta), each times the rate of its Laplace prior. K
        covariates add K u - e^2u |g|^2 / (2 covariate_sd^2).
        """
        power = float(len(state.z) + len(state.beta))
        error = state.z - state.eta
        half = 0.5 * (error @ error)
        if self.covariates:
            g = state.beta[self.own.stop :] / self.covariates.sd
            half += 0.5 * (g @ g)
        return log_scale(rng, 2.5 * power**-0.5, power, half, size, 0.0, 0.0, 0.0)

    @abstractmethod
    def design(self, state: Any) -> np.ndarray:
        """Return H (N, M + K)."""

    def gram(self, H: np.ndarray) -> np.ndarray:
        """Return H'H."""
        return H.T @ H

    def weights(self, state: Any, rng: np.random.Generator) -> None:
        """Draw z with beta integrated out, then beta."""
        H, sd = self.design(state), np.sqrt(state.tau)
        if self.tall:
            gram, scans = self.gram(H), self.latent_scans
            draw_weights(rng, H, gram, sd, self.label_sign, scans, state.z, state.beta)
        else:
            P = self.latent(state, rng, H, sd)
            draw_block(rng, P, H, state.tau, state.z, state.beta)
        state.eta[:] = H @ state.beta

    def latent(
        self, state: Any, rng: np.random.Generator, H: np.ndarray, sd: np.ndarray
    ) -> np.ndarray:
        """Draw z with beta integrated out, in the rows; return its precision (N, N)."""
        P = precision_matrix(H * sd)
        latent_scan(rng, P, self.label_sign, self.latent_scans, state.z)
        latent_scale(rng, P, state.z)
        return P

    def elliptical(self, state: Any, rng: np.random.Generator) -> None:
        """Move beta without z, and draw z again."""
        H, sd = self.design(state), np.sqrt(state.tau)
        steps = self.elliptical_steps
        elliptical(rng, steps, self.label_sign, H, sd, state.beta, state.eta)
        draw_latent(rng, self.label_sign, state.eta, state.z)
