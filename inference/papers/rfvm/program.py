"""RFVM as the released program has it, iterate by iterate: the option `program` of `rfvm_vb`.

Belenguer-Llorens, Sevilla-Salcedo, Parrado-Hernandez, Gomez-Verdejo (2024); the program is
github.com/albello1/RFVM at commit 83cb0cb. Nothing of it is copied. What it computes was read from
it and is written here in the terms of `factors.py`.

An iteration updates q(a), q(v), the precisions, q(b), q(tau), xi and q(u), in this order, with all
v_d at once. Then comes the program's bound, then pruning, from the seventh iteration on, then its
rule to stop. Four things differ from a mean field's:

the rate of tau      has Var(v_d) against every pair of features, so that it can become negative.
                     In the first iteration it has N |u|^2 in place of |u|^2, because that start
                     has the inner product where the outer one is meant.
the bound            is none of the evidence. With the rates r of the precisions,

                         - (N/2 + a_tau - 2) ln r_tau - (a_v - 3/2) sum ln r_d
                         - (a_a - 3/2) sum ln r_j - ln|Sigma| / 2 - (D/2) sum ln Var(v_d)
                         - <b^2> / 2 - Var(b) / 2.

                     The entropies have a minus sign, and that of v is counted D times, D being the
                     number of features before any was pruned. So it rises by about D/2 for each
                     nat that a feature's variance falls: it follows the sparsity, not the fit.
                     The expected log likelihood is not in it.
what was pruned      returns for the bound alone: as the constant 0.1 x threshold x largest mean, in
                     the place of every Var(v_d), rate and shape that was removed, and of all
                     entries of their rows and columns in Sigma. It is below the threshold, so it is
                     pruned again before the next update. With two samples removed Sigma is then
                     singular: ln|Sigma| is rounding error, and minus infinity is replaced by the
                     value before it.
the stop             compares that bound with its mean over 199 iterations (`stopping.averaged`).

Where the rate of tau is negative, the program's bound is no number, and it reports convergence.
Here the fit has then failed. Where its q(a) cannot be factored, the program goes on with the one
before; here the fit has failed too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from .factors import Factors

IMPLIED: dict[str, Any] = {
    "start": "released",
    "order": "tau_xi_u",
    "v_factor": "folded",
    "v_update": "simultaneous",
    "prune": True,
    "stopping": "moving_average",
}
"""Options of `rfvm_vb` that the option `program` sets."""
RETURNS = 0.1
"""What is pruned returns at this share of the threshold."""


class Program(Factors):
    """q with the released program's rate of tau, its bound and its pruning.

    Attributes
    ----------
    bounds : list of float
        The program's bound after each iteration.
    """

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.all_features, self.all_samples = len(self.m), len(self.a)
        self.bounds: list[float] = []
        self._entropy_a = 0.0

    def start_from(self, v: np.ndarray, a: np.ndarray, bias: float) -> None:
        """Start at these means (D,), (B,) of v and a and of the bias, before the first sweep."""
        self.m, self.v, self.a, self.b = v.copy(), v.copy(), a.copy(), bias
        self._set_M()
        self.u = self.M @ self.a + self.b
        self.update_xi()

    def update_tau(self) -> None:
        """Update q(tau) by the released rate.

        Raises
        ------
        scipy.linalg.LinAlgError
            The rate is not positive.
        """
        # sum_e G_de P_de = x_d' (X Z' A) z_d over all e, of which R has e = d
        pairs = np.einsum("dj,dj->d", self.Xt @ (self.Xt.T @ self.Zt), self.W) - self.G * self.P
        R = self.R() + float(self.var_v @ pairs)
        if not self.bounds:
            R += (len(self.y) - 1.0) * float(self.u @ self.u)
        self.tau_rate = self.h.noise_rate + 0.5 * R
        if self.tau_rate <= 0.0:
            raise linalg.LinAlgError(
                f"the released rate of tau is {self.tau_rate:.2g}, where the released program stops"
            )

    def add_bound(self) -> None:
        """Add the program's bound of the current q."""
        h, N = self.h, len(self.y)
        feature, sample = self._constants()
        var_v, r_v, a_v = (
            _padded(x, self.all_features, feature)
            for x in (self.var_v, self.delta_rate, np.full(len(self.v), h.feature_shape))
        )
        r_a, a_a = (
            _padded(x, self.all_samples, sample)
            for x in (self.psi_rate, np.full(len(self.a), h.sample_shape))
        )
        Sigma = np.full((self.all_samples, self.all_samples), sample)
        Sigma[: len(self.a), : len(self.a)] = self.Sigma
        entropy_a = 0.5 * float(np.linalg.slogdet(Sigma)[1])
        if np.isfinite(entropy_a):
            self._entropy_a = entropy_a
        bound = (
            -(0.5 * N + h.noise_shape - 2.0) * np.log(self.tau_rate)
            - (a_v.mean() - 1.5) * np.log(r_v).sum()
            - (a_a.mean() - 1.5) * np.log(r_a).sum()
            - self._entropy_a
            - 0.5 * self.all_features * np.log(var_v).sum()
            - 0.5 * self.b**2 - self.var_b
        )  # fmt: skip
        self.bounds.append(float(bound))

    def _constants(self) -> tuple[float, float]:
        """Return what a feature, and a sample, returns with for the bound."""
        feature, sample = self.shares
        largest = float(self.v.max()), float(np.abs(self.a).max())
        return RETURNS * feature * largest[0], RETURNS * sample * largest[1]

    def prune(self) -> bool:
        """Remove what is not selected, from the moments of q(a) too; return whether anything was.

        The sweep that follows recomputes these moments. The last pruning of a run has no such
        sweep, and then q(a) is the marginal of what is left.
        """
        kept = self.selected()[1]
        if not super().prune():
            return False
        # rows of a factor of Sigma: F F' = R'R with F' = QR
        self.factor = np.linalg.qr(self.factor[kept].T)[1].T
        self.Sigma, self.A = (x[np.ix_(kept, kept)] for x in (self.Sigma, self.A))
        return True


def _padded(values: np.ndarray, size: int, constant: float) -> np.ndarray:
    """Return values with a constant for each that is missing."""
    return np.concatenate([values, np.full(size - len(values), constant)])
