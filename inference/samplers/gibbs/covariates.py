"""The weights of covariates in a Gibbs sweep: one normal block, with the bias where there is one.

With A = [1, C] (N, K + 1), or A = C in a model without a bias, and beta = (b, f) the bias and the
weights of the covariates, eta = A beta + (the rest). Given Polya-Gamma variables, or the precision
of normal noise, the likelihood of eta is normal,

    exp(r'eta - eta'diag(W)eta / 2),

and so is beta | the rest, with P = diag(bias_sd^-2, covariate_sd^-2, ...) its prior precision:

    precision  Q = A'diag(W)A + P
    mean       Q^-1 (A'score + A'diag(W)A beta),   score = r - W eta at the present beta.

A draw costs O(N K^2). Where K is 0 nothing here is called: the samplers draw the bias alone.
"""

import numpy as np
from scipy import linalg

from ardvark.models import Problem
from ardvark.models.parts.covariates import NAME
from ardvark.models.spec import COVARIATE_SD, Point


class Covariates:
    """The covariates of a problem, false if it has none.

    Parameters
    ----------
    problem : Problem
    bias_sd : float, optional
        The prior standard deviation of the bias, which is drawn with them; None: there is none.
    """

    def __init__(self, problem: Problem, bias_sd: float | None = None) -> None:
        self.C = np.empty((len(problem.y), 0)) if problem.C is None else np.asarray(problem.C)
        sds = np.full(self.C.shape[1], vars(problem.hypers).get(COVARIATE_SD, 1.0), dtype=float)
        self.sd = sds
        ones = [] if bias_sd is None else [np.ones((len(self.C), 1))]
        self.A = np.hstack([*ones, self.C])
        self.prior = np.concatenate([[] if bias_sd is None else [bias_sd], sds]) ** -2.0

    def __bool__(self) -> bool:
        return self.C.shape[1] > 0

    def at(self, point: Point) -> np.ndarray:
        """Return the weights f (K,) of a point, as a copy."""
        return np.array(point[NAME], dtype=float) if self else np.empty(0)

    def named(self, f: np.ndarray) -> dict[str, np.ndarray]:
        """Return the weights by name, as a copy; nothing without any."""
        return {NAME: f.copy()} if self else {}

    def added(self, eta: np.ndarray, f: np.ndarray) -> np.ndarray:
        """Return eta (N,) with what the covariates add."""
        return eta + self.C @ f if self else eta

    def draw(
        self, rng: np.random.Generator, W: np.ndarray, score: np.ndarray, beta: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return a draw of beta, and the change A (new - beta) of eta (N,).

        Parameters
        ----------
        rng : Generator
        W, score : array (N,)
            Precisions of eta, and the slope of its log likelihood at the present beta.
        beta : array (K,) or (K + 1,)
            The present weights, after the bias if that is drawn with them.
        """
        information = (self.A.T * W) @ self.A
        factor = linalg.cholesky(information + np.diag(self.prior), lower=True)
        linear = self.A.T @ score + information @ beta
        mean = linalg.cho_solve((factor, True), linear)
        new = mean + linalg.solve_triangular(
            factor, rng.standard_normal(len(beta)), lower=True, trans="T"
        )
        return new, self.A @ (new - beta)
