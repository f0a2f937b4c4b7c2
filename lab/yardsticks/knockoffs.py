"""Model-X knockoffs: features chosen with a bounded false discovery rate.

Candes, Fan, Janson, Lv (2018), Panning for gold: model-X knockoffs for high dimensional controlled
variable selection, J. R. Statist. Soc. B 80(3). The features are taken as Gaussian, with the
correlation of the training rows, shrunk by Ledoit and Wolf (2004). The false discovery rate is
bounded where that law is right; with fewer rows than features it is an estimate.

Written here for two reasons. The libraries form D x D matrices and their factors, which genes do
not allow. And the sampler of HiDimStat 0.4.0 multiplies by the Cholesky factor from the wrong side:
its copies of three features with variance 1 have the variances 1.24, 1.28 and 0.49.
"""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.linear_model import LassoCV
from sklearn.model_selection import StratifiedKFold

from lab.yardsticks.contract import INNER, Yardstick
from lab.yardsticks.controlled import AfterSelection, chosen

RATE = 0.2


class Knockoffs(BaseEstimator):
    """Features whose lasso weight beats that of their knockoff, at a false discovery rate.

    Parameters
    ----------
    rate : float
        Bound on the false discovery rate (knockoff+).
    random_state : int
        Seed of the knockoffs and of the folds that choose the lasso's penalty.
    """

    def __init__(self, rate: float = RATE, random_state: int = 0):
        self.rate = rate
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> "Knockoffs":
        """Choose among the features of X (N, D), by labels y (N,)."""
        rng = np.random.default_rng(self.random_state)
        Z = X - X.mean(axis=0)
        Z = Z / np.maximum(Z.std(axis=0), 1e-12)
        self.statistic_ = statistic(Z, knockoffs(Z, rng), y, self.random_state)
        self.selected_ = np.flatnonzero(self.statistic_ >= cut(self.statistic_, self.rate))
        return self


def knockoffs(Z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return Gaussian knockoffs (N, D) of standardised features Z (N, D).

    With correlation S and the equicorrelated s = min(2 least eigenvalue of S, 1), a copy is
    Z - s Z S^-1 + E, where the rows of E have the covariance 2 s I - s^2 S^-1 (section 3.1.1).
    S = (1 - rho) Z'Z / N + rho I, so that all of it is known from the singular values of Z.
    """
    N, D = Z.shape
    rho = max(float(ledoit_wolf_shrinkage(Z, assume_centered=True)), 1e-6)
    U, singular, V = np.linalg.svd(Z, full_matrices=False)
    eigen = (1.0 - rho) * singular**2 / N + rho  # the others, if D > N, are rho
    s = min(2.0 * min(float(eigen.min()), rho if D > N else np.inf), 1.0)
    inside = np.sqrt(np.maximum(2.0 * s - s**2 / eigen, 0.0))
    outside = max(2.0 * s - s**2 / rho, 0.0) ** 0.5 if D > N else 0.0
    noise = rng.standard_normal((N, D))
    along = noise @ V.T
    E = outside * (noise - along @ V) + (along * inside) @ V
    return Z - s * (U * (singular / eigen)) @ V + E


def statistic(Z: np.ndarray, copies: np.ndarray, y: np.ndarray, seed: int) -> np.ndarray:
    """Return |weight of a feature| - |weight of its knockoff| (D,), by a cross-validated lasso.

    A feature and its knockoff enter in random order, so that no tie favours one of them.
    """
    D = Z.shape[1]
    swap = np.random.default_rng([seed, 1]).random(D) < 0.5
    both = np.hstack([np.where(swap, copies, Z), np.where(swap, Z, copies)])
    folds = StratifiedKFold(INNER, shuffle=True, random_state=seed)
    model = LassoCV(alphas=30, eps=0.02, cv=list(folds.split(both, y)), max_iter=10_000).fit(
        both, y - y.mean()
    )
    size = np.abs(model.coef_)
    return np.where(swap, -1.0, 1.0) * (size[:D] - size[D:])


def cut(statistic: np.ndarray, rate: float) -> float:
    """Return the least t > 0 with (1 + #{W <= -t}) / #{W >= t} at most `rate`, else infinity."""
    for t in np.unique(np.abs(statistic[statistic != 0.0])):
        if (1 + (statistic <= -t).sum()) <= rate * max(int((statistic >= t).sum()), 1):
            return float(t)
    return float("inf")


KNOCKOFFS = Yardstick(
    name="knockoffs",
    steps=lambda D, seed: [("model", AfterSelection(Knockoffs(random_state=seed)))],
    features=chosen,
    fixed={"rate": RATE},
)
"""Gaussian model-X knockoffs (Candes et al. 2018), false discovery rate 0.2, then logistic
regression, L2, C = 1; with none chosen, the share of the classes."""
