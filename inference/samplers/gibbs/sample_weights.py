"""Steps of the sample weights x, the bias and the covariates, given a kernel matrix.

They are the half of the sampler of PFCVM under another kernel than the linear one (`ard_kernel.py`)
in which eta is linear.

Notation: a = s x (B,) sample weights, with x >= 0 and s the basis labels (`basis_sign`), or x real
and s = 1; K (N, B) the kernel matrix, k_j its columns; eta = b + K a, and C f of the covariates.

1. omega_n ~ PG(1, eta_n) (Polson, Scott, Windle 2013, doi 10.1080/01621459.2013.829001). Given
   omega the likelihood of eta is normal, exp(r'eta - eta'diag(omega)eta / 2), r = y - 1/2.
2. x | c, omega: every x_j by an independence Metropolis step, then pairs (`ard_steps.py`), where

       c = b + sum_j m_j a_j,    m_j = omega'k_j / sum(omega),
       eta = c + sum_j a_j (k_j - m_j),    b = c - sum_j m_j a_j.

   So a change of a_j moves b too, and eta keeps its weighted mean. Without this the bias and the
   weights, whose columns of an rbf kernel are all positive, would hold each other. (x, b) -> (x, c)
   has the Jacobian 1. The prior of b is one more normal term, of a row N + 1 whose entry in column
   j is -m_j and whose precision is bias_sd^-2. m depends on omega, which this step holds fixed.
3. b | x, omega, which is normal; with covariates (b, their weights) | x, omega, as one block
   (`covariates.py`). Steps 1 and 2 hold these weights fixed.
4. The precisions, which are integrated out of every other step.

A scan takes O(N B) time, and the pairs O(N) each.
"""

from typing import Any

import numpy as np

from ardvark.models import Problem
from ardvark.models.sparse import KernelHypers

from .ard_steps import Group, Pairs, Prior, pair_scan, weight_scan
from .covariates import Covariates
from .sampler import draw_omega

PARTNERS = 16  # most correlated columns that a weight is paired with


class SampleWeights:
    """Steps 1 to 4 for a given kernel matrix, and what they need of a problem.

    Parameters
    ----------
    problem : Problem
        A problem whose decision value is b + K a, with a logistic link.
    pairs : Pairs
        Which sample weights move in pairs.
    tries : int
        Pairs tried in each pass.
    """

    def __init__(self, problem: Problem, pairs: Pairs, tries: int) -> None:
        h = problem.hypers
        assert isinstance(h, KernelHypers)  # as `supports` says
        self.bias_sd = h.bias_sd
        self.covariates = Covariates(problem, h.bias_sd)
        self.signed = not problem.spec.labels_in_basis
        self.precise = h.parametrization == "hierarchical"
        self.prior = Prior.of(h.sample_prior, positive=not self.signed)
        self.pairs, self.tries = pairs, tries
        self.basis_sign = np.ones(len(problem.Z))
        self.set_labels(problem.y, problem.basis_labels)

    def set_labels(self, y: np.ndarray, basis_labels: np.ndarray | None = None) -> None:
        """Bind other labels y (N,), 0 or 1, and other basis labels (B,); None leaves those."""
        self.label_sign = 2.0 * np.asarray(y, dtype=np.float64) - 1.0
        if basis_labels is not None:
            self.basis_sign = np.asarray(basis_labels, dtype=np.float64)

    def point(self, state: Any) -> dict[str, np.ndarray]:
        """Return sample weights, bias, weights of covariates and eta of a state, as copies."""
        point = {
            "sample_weight": self.basis_sign * state.x,
            "bias": np.asarray(state.bias),
            "eta": state.eta.copy(),
            **self.covariates.named(state.covariate),
        }
        if not self.signed:
            point["w"] = state.x.copy()
        if self.precise:
            point["alpha"] = state.sample_precision.copy()
        return point

    def augment(self, eta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Step 1: draw omega (N,)."""
        return draw_omega(rng, eta)

    def scan(self, state: Any, Kt: np.ndarray, rng: np.random.Generator) -> None:
        """Steps 1 to 3, for a state with x, bias and eta; Kt (B, N) is K transposed."""
        omega = self.augment(state.eta, rng)
        rows, W = centred(Kt, omega, self.bias_sd)
        score = np.append(0.5 * self.label_sign - omega * state.eta, -W[-1] * state.bias)
        group = Group(rows, self.basis_sign, W, self.prior, score, state.x)
        weight_scan(rng, group)
        pair_scan(rng, self.tries, group, self.pairs)
        bias = -score[-1] / W[-1]
        if self.covariates:
            beta = np.append(bias, state.covariate)
            beta, _ = self.covariates.draw(rng, omega, score[:-1], beta)
            state.bias, state.covariate = float(beta[0]), beta[1:]
            self.decide(state, Kt)
            return
        total = W.sum()
        # the slope of the log density of the bias: of the likelihood, and of its prior
        state.bias = float(rng.normal(bias + score.sum() / total, total**-0.5))
        self.decide(state, Kt)

    def decide(self, state: Any, Kt: np.ndarray) -> None:
        """Set eta = b + K a + C f."""
        eta = state.bias + (self.basis_sign * state.x) @ Kt
        state.eta = self.covariates.added(eta, state.covariate)

    def precisions(self, state: Any, rng: np.random.Generator) -> None:
        """Step 4."""
        rate = self.prior.rate + 0.5 * state.x**2
        state.sample_precision = rng.gamma(self.prior.shape + 0.5, 1.0 / rate)


def centred(Kt: np.ndarray, omega: np.ndarray, bias_sd: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows (B, N + 1) of step 2, and the precisions (N + 1,) of their normal terms."""
    m = (Kt @ omega) / omega.sum()
    rows = np.empty((Kt.shape[0], Kt.shape[1] + 1))
    np.subtract(Kt, m[:, None], out=rows[:, :-1])
    np.negative(m, out=rows[:, -1])
    return rows, np.append(omega, bias_sd**-2.0)
