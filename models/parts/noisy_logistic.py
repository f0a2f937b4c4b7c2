"""log E[sigmoid(m + sd e)], e ~ N(0, 1), as one compiled operation with its derivatives.

For the normal density alone, the trapezoid rule in e with step h = 1/2 would be exact to rounding.
The sigmoid has poles at e = x + i y_k with x = -m / sd and y_k = (2k + 1) pi / sd, which are close
to the real line if sd is large. Their contribution to the rule is known (residues), and can be
subtracted. With the nodes e_n = x + n h aligned with the poles::

    sqrt(2 pi) I = h sum_n exp(-e_n^2 / 2) sigmoid(sd n h)
                   - (4 pi / sd) sum_k exp((y_k^2 - x^2) / 2) sin(x y_k) / (exp(2 pi y_k / h) - 1)

With 33 nodes around the integrand's peak and the poles below y = 2.8 (about 0.45 sd of them), the
error is below 1e-11 for every m and sd (up to `_LARGEST`). Below m = -sd^2 the integrand is
mirrored, so that nothing underflows::

    sigmoid(z) = e^z sigmoid(-z)      log I(m, sd) = m + sd^2 / 2 + log I(-m - sd^2, sd)

Derivatives are those of the rule with its nodes held fixed, because the integral does not depend on
them.
"""

import math
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytensor.tensor as pt
from pytensor.gradient import DisconnectedType, disconnected_grad
from pytensor.graph.basic import Apply

from .fused import Fused, gradients, weighed

_STEP = 0.5
_REACH = 16  # nodes on either side of the peak: 8 standard deviations
_HEIGHT = 2.8  # poles above it add less than exp(-2 pi 2.8 / h + 2.8^2 / 2) = 3e-14
_LARGEST = 2500.0  # above this sd only m / sd matters, up to (m / sd)^2 / 4e6
_GAUSS = np.exp(-0.5 * (_STEP * np.arange(_REACH + 1)) ** 2)
_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)

# nodes of the plain formula: c + t, t in [-9, 9]
_WINDOW = 9.0
_NODES = np.linspace(-_WINDOW, _WINDOW, 361)
_LOG_STEP = math.log(_NODES[1] - _NODES[0]) - _LOG_ROOT


@numba.njit(nogil=True)
def _rule(m: float, sd: float) -> tuple[float, float, float]:
    """Return log I and its derivatives by m and sd, for m >= -sd^2."""
    x = -m / sd
    peak = math.floor((max(x, 0.0) - x) / _STEP + 0.5)  # index of the node at the peak, >= 0
    e0 = x + peak * _STEP
    lowest = peak - _REACH
    total, by_m, by_sd = 0.0, 0.0, 0.0
    # exp((e0^2 - e^2) / 2) = gauss_j f^j at e = e0 + j h, and every power by a product
    f, ratio = math.exp(-e0 * _STEP), math.exp(-sd * _STEP)
    start = max(lowest, 0)
    q = math.exp(-sd * _STEP * start)  # exp(-|z|), z = sd n h
    power = math.exp(-e0 * _STEP * (start - peak))
    for n in range(start, peak + _REACH + 1):
        term = _GAUSS[abs(n - peak)] * power / (1.0 + q)
        slope = term * q / (1.0 + q)
        total, by_m = total + term, by_m + slope
        by_sd += (e0 + (n - peak) * _STEP) * slope
        q, power = q * ratio, power * f
    q, f = ratio, math.exp((e0 - sd) * _STEP)  # below zero sigmoid(z) = e^z / (1 + e^z)
    power = math.exp((e0 * (1 + peak) - sd) * _STEP)
    for n in range(-1, lowest - 1, -1):
        term = _GAUSS[peak - n] * power / (1.0 + q)
        slope = term / (1.0 + q)
        total, by_m = total + term, by_m + slope
        by_sd += (e0 + (n - peak) * _STEP) * slope
        q, power = q * ratio, power * f
    total, by_m, by_sd = total * _STEP, by_m * _STEP, by_sd * _STEP
    k = 0
    while (2 * k + 1) * math.pi < _HEIGHT * sd:
        y = (2 * k + 1) * math.pi / sd
        E = math.exp(2.0 * math.pi * y / _STEP)
        size = 4.0 * math.pi / sd * math.exp(0.5 * (y * y + e0 * e0 - x * x)) / (E - 1.0)
        sine, cosine = math.sin(x * y), math.cos(x * y)
        turn = 2.0 * math.pi / _STEP * E / (E - 1.0)  # derivative of the rule's own phase
        total -= size * sine
        by_m += size / sd * ((y - turn) * cosine - x * sine)
        by_sd += size / sd * (sine + x * (2.0 * y - turn) * cosine)
        by_sd += size / sd * (y * (y - turn) - x * x) * sine
        k += 1
    return math.log(total) - 0.5 * e0 * e0 - _LOG_ROOT, by_m / total, by_sd / total


@numba.njit(nogil=True)
def _at(m: float, sd: float) -> tuple[float, float, float]:
    """Return log I and its derivatives by m and sd."""
    if sd > _LARGEST:
        shrunk = _LARGEST / sd
        value, by_m, _ = _at_most(m * shrunk, _LARGEST)
        return value, by_m * shrunk, -by_m * shrunk * m / sd
    return _at_most(m, sd)


@numba.njit(nogil=True)
def _at_most(m: float, sd: float) -> tuple[float, float, float]:
    if m >= -sd * sd:
        return _rule(m, sd)
    value, by_m, by_sd = _rule(-m - sd * sd, sd)
    return value + m + 0.5 * sd * sd, 1.0 - by_m, by_sd + sd - 2.0 * sd * by_m


@numba.njit(nogil=True, cache=True)
def log_mean_sigmoid(m: np.ndarray, sd: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return log E[sigmoid(m + sd e)] and its derivatives by m and by sd, each (n,).

    Parameters
    ----------
    m, sd : array (n,)
        sd > 0.
    """
    value, by_m, by_sd = np.empty(len(m)), np.empty(len(m)), np.empty(len(m))
    for i in range(len(m)):
        value[i], by_m[i], by_sd[i] = _at(m[i], sd[i])
    return value, by_m, by_sd


def label_logp(y: Any, eta: Any, sd: Any) -> np.ndarray:
    """Return log P(y | eta, sd) = log E[sigmoid(s (eta + sd e))], s = 2y - 1 (NumPy).

    The arguments broadcast; sd > 0.
    """
    m, sd = np.broadcast_arrays((2.0 * np.asarray(y) - 1.0) * eta, sd)
    value, *_ = log_mean_sigmoid(np.ravel(m).astype(float), np.ravel(sd).astype(float))
    return value.reshape(m.shape)


def plain_formula(m: Any, sd: Any) -> Any:
    """Return the same symbolically: a trapezoid rule with 361 nodes in log space, (n,).

    Its window follows the peak of the integrand. The error is below 4e-8 for sd from 0.1 to 10.
    """
    # the integral does not depend on the position of the window, so no gradient flows through it
    c = disconnected_grad(pt.clip(-m / sd, 0.0, sd))
    e = c[..., None] + _NODES  # (n, node)
    terms = -pt.softplus(-(m[..., None] + sd[..., None] * e)) - 0.5 * e**2
    return pt.logsumexp(terms, axis=-1) + _LOG_STEP


class LogMeanSigmoid(Fused):
    """log E[sigmoid(m + sd e)] and its derivatives by m and by sd, for m, sd (n,)."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply:
        """Return the node."""
        m, sd = (pt.as_tensor_variable(v, dtype="float64") for v in inputs)
        return Apply(self, [m, sd], [pt.dvector(), pt.dvector(), pt.dvector()])

    @property
    def code(self) -> Callable[..., Any]:
        """The compiled loop."""
        return log_mean_sigmoid

    def plain(self, *inputs: Any) -> list[Any]:
        """Return the formula with 361 nodes, and its derivatives."""

        def total(m: Any, sd: Any) -> Any:
            return plain_formula(m, sd).sum()

        return [plain_formula(*inputs), *gradients(total, *inputs)]

    def perform(self, node: Apply, inputs: Any, outputs: Any) -> None:
        """Run the compiled loop, for PyTensor's Python mode."""
        for output, values in zip(outputs, log_mean_sigmoid(*inputs), strict=True):
            output[0] = values

    def infer_shape(self, node: Apply, shapes: Any) -> Any:
        """Return the shapes of the outputs."""
        return [shapes[0]] * 3

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> Any:
        """Return the derivatives, which are computed already, and their own derivatives."""
        first, *second = cotangents
        found = [0.0 * v for v in inputs]
        if not isinstance(first.type, DisconnectedType):
            found = [first * d for d in outputs[1:]]
        if all(isinstance(c.type, DisconnectedType) for c in second):
            return found

        def of_derivatives(*at: Any) -> Any:
            return weighed(self.plain(*at)[1:], second)

        return [a + b for a, b in zip(found, gradients(of_derivatives, *inputs), strict=True)]


def noisy_log_sigmoid(m: Any, sd: Any) -> Any:
    """Return the symbolic log E[sigmoid(m + sd e)], e ~ N(0, 1), shape of m.

    Parameters
    ----------
    m : tensor
        Any shape.
    sd : tensor
        Positive, of a shape that broadcasts to that of m.
    """
    sd = sd + pt.zeros_like(m)
    value, *_ = LogMeanSigmoid()(m.ravel(), sd.ravel(), return_list=True)
    return value.reshape(m.shape, ndim=m.ndim)
