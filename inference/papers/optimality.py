"""The conditions of a maximum if weights have exponential or Laplace priors."""

import numpy as np


def kkt(gradient: np.ndarray, weight: np.ndarray, rate: float, *, signed: bool) -> np.ndarray:
    """Return how far each weight is from optimality, in units of the rate; 0 at a maximum.

    With g = dl/dweight, l the log-likelihood: abs(g - rate sign(weight)) where it is not 0, and
    at 0 the excess of abs(g) (of g, for a weight that is not signed) over the rate (Karush, Kuhn,
    Tucker).

    Parameters
    ----------
    gradient, weight : array (K,)
        g, and the weights.
    rate : float
        Of the prior, the penalty of one unit of weight.
    signed : bool
        Whether a weight may be negative.
    """
    size = np.abs(gradient) if signed else gradient
    at_zero = np.maximum(size - rate, 0.0)
    return np.where(weight == 0.0, at_zero, np.abs(gradient - rate * np.sign(weight))) / rate
