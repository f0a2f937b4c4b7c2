"""One trajectory of microcanonical dynamics, compiled; `mams` explains what it is for.

The state is a position x and a velocity u of length 1 (both (P,), P >= 2). In coordinates divided
by `scale`, where the log density has the gradient g, the dynamics is

    dx/dt = u,    du/dt = (I - u u') g / (P - 1).

Its flow keeps the density times the uniform measure on the sphere. A velocity Verlet step
alternates the two parts, each of which has an exact solution (Robnik, Cohn-Gordon, Seljak 2025,
arXiv 2503.01707). For a time t at a fixed g = |g| e,

    u -> (u + (sinh d + c (cosh d - 1)) e) / (cosh d + c sinh d),    d = t |g| / (P - 1), c = u'e.

That map of the sphere has the Jacobian (cosh d + c sinh d)^-(P - 1). So a trajectory is accepted
with probability min(1, exp(-error)),

    error = (P - 1) sum log(cosh d + c sinh d) - (change of the log density),

the sum being over all updates of u. The map is reversible: with -u it retraces its way.
"""

import math
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_LOG_2 = math.log(2.0)
_compiled = numba.njit(cache=True, nogil=True, error_model="numpy")


@intrinsic
def _call(
    typing_context: Any, address: Any, size: Any, x: Any, gradient: Any, value: Any, data: Any
) -> Any:
    """Call nutpie's kind of density (`compiled.Function`) at an address, with addresses."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        whole, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        code = ir.FunctionType(whole, [whole, *[pointer] * 4])
        where = builder.inttoptr(arguments[0], code.as_pointer())
        pointers = [builder.inttoptr(a, pointer) for a in arguments[2:]]
        return builder.call(where, [arguments[1], *pointers])

    return types.int64(types.int64, types.int64, *[types.intp] * 4), generate


@_compiled
def log_density(address: int, data: int, x: np.ndarray, gradient: np.ndarray) -> float:
    """Return the log density at x (P,), and write its gradient (P,); -inf where there is none.

    `address` is that of a density's `function`, `data` that of its `data.addresses`.
    """
    value = np.empty(1)
    error = _call(
        address, x.size, x.ctypes.data, gradient.ctypes.data, value.ctypes.data, data
    )  # fmt: skip
    return value[0] if error == 0 else -np.inf


@_compiled
def fresh_velocity(u: np.ndarray, rng: np.random.Generator) -> None:
    """Draw u (P,) uniformly on the sphere."""
    for i in range(u.size):
        u[i] = rng.standard_normal()
    u /= math.sqrt(np.dot(u, u))


@_compiled
def turn(u: np.ndarray, gradient: np.ndarray, scale: np.ndarray, time: float) -> float:
    """Turn u (P,) towards the gradient for a time; return (P - 1) log(cosh d + c sinh d).

    Written with exp(-d), which does not overflow.
    """
    size = along = 0.0
    for i in range(u.size):
        g = gradient[i] * scale[i]
        size += g * g
        along += g * u[i]
    size = math.sqrt(size)
    if not size > 0.0:
        return 0.0
    c = along / size
    d = time * size / (u.size - 1)
    z = math.exp(-d)
    total = (1.0 + c) + (1.0 - c) * z * z  # 2 z (cosh d + c sinh d)
    kept = 2.0 * z / total
    added = ((1.0 - z * z) + c * (1.0 - z) * (1.0 - z)) / total / size
    for i in range(u.size):
        u[i] = kept * u[i] + added * gradient[i] * scale[i]
    u /= math.sqrt(np.dot(u, u))  # against rounding
    return (u.size - 1) * (d - _LOG_2 + math.log(total))


@_compiled
def trajectory(
    address: int,
    data: int,
    x: np.ndarray,
    u: np.ndarray,
    gradient: np.ndarray,
    value: float,
    scale: np.ndarray,
    step_size: float,
    steps: int,
) -> tuple[float, float]:
    """Follow the dynamics from x, u (P,) for some steps; return the log density and the error.

    Position, velocity and gradient are changed in place. `value` is the log density at the start.
    The error is infinite where the density or its gradient is not finite; the trajectory then ends.
    """
    start, kinetic = value, 0.0
    for _ in range(steps):
        kinetic += turn(u, gradient, scale, 0.5 * step_size)
        for i in range(x.size):
            x[i] += step_size * scale[i] * u[i]
        value = log_density(address, data, x, gradient)
        if not math.isfinite(value):
            return value, np.inf
        kinetic += turn(u, gradient, scale, 0.5 * step_size)
    error = kinetic - (value - start)
    return value, error if math.isfinite(error) else np.inf
