"""What eta loses when one feature or one sample is taken out of it, for each kernel.

eta_i = b + sum_j a_j K_theta(x_i, z_j). Taking feature k out sets theta_k = 0, taking sample j out
sets a_j = 0, and everything else stays. An effect is the standard deviation over the training rows
x_i of the change of eta, in its units (logits, or standard deviations of a probit). The mean of the
change over the rows is left out: the bias can absorb it. A model without a bias (FS-SKLR, SKLR,
FS-SKR) has the same definition: what all rows share tells no two of them apart. With
u = theta_k (x_ik - z_jk)^2 and S_ij = sum_k theta_k x_ik z_jk the changes are

    a sample                 a_j K_ij
    a feature, linear        theta_k x_ik sum_j a_j z_jk = w_k x_ik, w the primal weights
    a feature, polynomial    sum_j a_j [(1 + S_ij)^P - (1 + S_ij - theta_k x_ik z_jk)^P]
    a feature, rbf           sum_j a_j K_ij (1 - exp(u))

An effect has no sign. The direction of a sample's is that of a_j. The direction of a feature's, per
standard deviation sd(x_k) of the feature, is sd(x_k) times the mean over rows of d eta_i / d x_ik
(`Kernel.partial_effects`): w_k sd(x_k) under a linear kernel, whose absolute value is the effect.
Under other kernels slopes of unequal sign cancel in it, so a feature with a large effect may have
no direction.

At degree P = 1 the polynomial's is the linear one. For P > 1 the binomial theorem gives, exactly,

    -sum_{p=1..P} C(P, p) (-theta_k x_ik)^p sum_j a_j (1 + S_ij)^(P-p) z_jk^p

P products of (N, B) and (B, D) matrices. No such sum exists for rbf, and its N B D exponentials a
draw are the expensive case; `rbf_effects` says what is saved. No (N, B, D) array and no
stack of kernel matrices is ever held.
"""

from math import comb
from typing import Any

import numba
import numpy as np

from .distance import decayed, square_distance

VISIBLE = 0.1
"""Effect on eta, in logits (probit: in standard deviations), above which a weight is active."""
_SLACK = 1e-3  # of the threshold: the error allowed to an rbf effect that is not near it
_FAR = 16.0  # the largest u for which K exp(u) is formed: it cannot overflow
EXPONENTIAL = 12.0
"""Cost of one term of an rbf feature effect, in multiply-adds of a matrix product."""


def primal_effects(X: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the effects |w_k| sd(x_k) (S, D) of primal weights w (S, D)."""
    return np.abs(w) * X.std(axis=0)


def live(
    X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return X, Z and theta of what is not 0 in a draw, and which samples that is."""
    on, live = a != 0.0, theta != 0.0
    if live.all():
        return X, Z if on.all() else Z[on], theta, on
    return X[:, live], Z[on][:, live], theta[live], on


def polynomial_effects(
    X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray, degree: int
) -> np.ndarray:
    """Return the effect of each feature under the polynomial kernel, (S, D)."""
    powers = range(1, degree + 1)
    Z_to = {p: Z**p for p in powers}
    out = np.empty(theta.shape)
    for s in range(len(theta)):
        inner = 1.0 + (X * theta[s]) @ Z.T  # (N, B)
        step = -theta[s] * X  # (N, D)
        change = np.zeros(X.shape)
        for p in powers:
            change += comb(degree, p) * step**p * ((inner ** (degree - p) * a[s]) @ Z_to[p])
        out[s] = change.std(axis=0)
    return out


# --- rbf ------------------------------------------------------------------------------------------


def rbf_effects_of_one_theta(
    X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray
) -> np.ndarray:
    """All draws at once: taking a feature out changes one kernel matrix by one matrix."""
    distance = square_distance(X, Z, theta)  # (N, B)
    K = decayed(distance)
    out = np.zeros((len(a), len(theta)))
    for k in np.flatnonzero(theta):
        change = a @ _change(distance, K, X[:, k], Z[:, k], theta[k]).T  # (S, N)
        out[:, k] = change.std(axis=1)
    return out


def _change(distance: np.ndarray, K: np.ndarray, x: np.ndarray, z: np.ndarray, t: Any) -> Any:
    """Return the kernel matrix without one feature minus the one with it, (N, B)."""
    without = distance - t * (x[:, None] - z) ** 2
    return decayed(without) - K


def rbf_effects(
    X: np.ndarray, Z: np.ndarray, theta: np.ndarray, a: np.ndarray, threshold: float
) -> np.ndarray:
    """Return the effect of each feature under the rbf kernel (S, D), each draw with its theta.

    exp(u) - 1 is u + r with 0 <= r <= u^2 exp(u) / 2. With r_k the largest u of feature k over all
    pairs of a row and a centre, the change of eta_i to first order is off by at most
    (r_k^2 exp(r_k) / 2) sum_j |a_j| K_ij. Centring shortens vectors and obeys the triangle
    inequality: |sd(f) - sd(g)| <= sd(f - g) <= rms(f - g). So the first-order effect, three matrix
    products for all features, is off by at most

        (r_k^2 exp(r_k) / 2) rms_i(sum_j |a_j| K_ij)

    It stands in where r_k is at most 1, that is below a thousandth of the threshold, and the
    effect is farther than that from it; so no feature is put on the wrong side. Other features are
    computed pair by pair (`_pairs`), to 1e-9 of the root mean square of the change. Where a u
    exceeds 16, or a theta is negative (draws of a Gaussian approximation may be), the difference of
    the two exponentials is taken as it is.
    """
    out = np.zeros(theta.shape)
    low, high = np.minimum(X.min(0), Z.min(0)), np.maximum(X.max(0), Z.max(0))
    widest = (high - low) ** 2  # (D,), of any pair
    for s in range(len(theta)):
        x, z, t, on = live(X, Z, theta[s], a[s])
        distance = square_distance(x, z, t)
        K = decayed(distance)
        weighted = K * a[s, on]
        reach = t * widest[theta[s] != 0.0]
        size = np.sqrt(np.mean(np.abs(weighted).sum(1) ** 2))
        error = 0.5 * reach**2 * np.exp(np.minimum(reach, 1.0)) * size
        effect = np.zeros(len(t))
        # beyond u = 1 a K that underflowed could hide what K exp(u) is
        easy = np.flatnonzero((error <= _SLACK * threshold) & (t > 0.0) & (reach <= 1.0))
        if len(easy):
            effect[easy] = _first_order(x[:, easy], z[:, easy], t[easy], weighted)
        settled = np.zeros(len(t), dtype=bool)
        settled[easy] = np.abs(effect[easy] - threshold) > error[easy]
        near = np.flatnonzero(~settled & (reach <= _FAR) & (t.min(initial=0.0) >= 0.0))
        if len(near):
            effect[near] = _pairs(
                weighted,
                np.ascontiguousarray(x[:, near].T),
                np.ascontiguousarray(z[:, near].T),
                t[near],
                np.ceil(np.log2(np.maximum(8.0 * reach[near], 1.0))).astype(np.int64),
            )
            settled[near] = True
        for k in np.flatnonzero(~settled):
            change = _change(distance, K, x[:, k], z[:, k], t[k])
            effect[k] = (change @ a[s, on]).std()
        out[s, theta[s] != 0.0] = effect
    return out


def _first_order(x: np.ndarray, z: np.ndarray, t: np.ndarray, weighted: np.ndarray) -> np.ndarray:
    """Return sd_i(sum_j a_j K_ij u_ij) of each feature, (x - z)^2 = x^2 - 2 x z + z^2."""
    change = x**2 * weighted.sum(1)[:, None] - 2.0 * x * (weighted @ z) + weighted @ z**2
    return t * change.std(axis=0)


@numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz", "arcp"}
)
def _pairs(
    weighted: np.ndarray, x: np.ndarray, z: np.ndarray, t: np.ndarray, doublings: np.ndarray
) -> np.ndarray:
    """Return sd_i(sum_j weighted_ij (exp(u_ij) - 1)) of each feature.

    weighted (N, B), x (D, N), z (D, B), t (D,). exp(u) - 1 by its Taylor polynomial at v = u /
    2^doublings <= 1/8, of which the next term is a relative 1e-11, and exp(2 v) - 1 = p (p + 2):
    plain arithmetic, several pairs at once, where a call of exp is one pair at a time.
    """
    N, B = weighted.shape
    out = np.empty(len(t))
    p, changes = np.empty(B), np.empty(N)
    for k in range(len(t)):
        scale = t[k] / 2.0 ** doublings[k]
        for i in range(N):
            xi = x[k, i]
            for j in range(B):
                gap = xi - z[k, j]
                v = scale * gap * gap
                tail = 1 / 6 + v * (1 / 24 + v * (1 / 120 + v * (1 / 720 + v * (1 / 5040))))
                p[j] = v * (1.0 + v * (0.5 + v * tail))
            for _ in range(doublings[k]):
                for j in range(B):
                    p[j] *= p[j] + 2.0
            change = 0.0
            for j in range(B):
                change += weighted[i, j] * p[j]
            changes[i] = change
        out[k] = changes.std()
    return out
