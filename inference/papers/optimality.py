"""The conditions of a maximum if weights have exponential or Laplace priors."""

import numpy as np


def kkt(gradient: np.ndarray, weight: np.ndarray, rate: float, *, signed: bool) -> np.ndarray:
    """Return how far each weight is from optimality, in units of the rate; 0 at a maximum.

    With g the derivative of the log-likelihood by a weight, it is abs(g - rate sign(weight)) for a
    nonzero weight. For a weight at 0 it is the excess of abs(g) (of g, for a weight that is not
    signed) over the rate (Karush, Kuhn, Tucker).

    Parameters
    ----------
    gradient, weight : array (K,)
        g, and the weights.
    rate : float
        Rate of the prior: the penalty on one unit of weight.
    signed : bool
        Whether a weight may be negative.
    """
    size = np.abs(gradient) if signed else gradient
    at_zero = np.maximum(size - rate, 0.0)
    return np.where(weight == 0.0, at_zero, np.abs(gradient - rate * np.sign(weight))) / rate
