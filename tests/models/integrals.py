"""Variables integrated out of a model's own `log_joint` by quadrature, one entry at a time."""

import numpy as np
from scipy import special

from tests.models.forms import log_joint_at


def integrated_out(problem, point, name, values, weight):
    """Return log of the integral of exp log_joint over every entry of one variable.

    The entries do not meet in any factor: the integral is a product of one-dimensional ones, each
    the sum over `values` (S,) + the entry's shape, with `weight` of that shape, step included.
    """
    top = log_joint_at(problem, point, point["y"])
    total = top
    for index in np.ndindex(np.shape(point[name])):
        entry = (slice(None), *index)
        many = {k: np.broadcast_to(v, (len(values), *np.shape(v))) for k, v in point.items()}
        x = many[name].copy()
        x[entry] = values[entry]
        log_density = log_joint_at(problem, many | {name: x}, point["y"])
        w = np.broadcast_to(weight, x.shape)[entry]
        total = total + special.logsumexp(log_density, b=w) - top
    return total


def over_the_positive(problem, point, name):
    """Integrate over x > 0 in log x, where the integrand falls at least exponentially.

    The trapezoidal rule converges geometrically for a smooth integrand on the whole line; halving
    the step changes nothing.
    """
    step = 0.05
    x = np.exp(np.arange(-80.0, 80.0, step))
    x = np.multiply.outer(x, np.abs(np.asarray(point[name])))  # around the drawn values
    return integrated_out(problem, point, name, x, step * x)


def over_the_line(problem, point, name):
    """Integrate noise of precision tau around eta."""
    step, sd = 0.05, np.asarray(point["tau"]) ** -0.5
    x = point["eta"] + sd * np.arange(-40.0, 40.0, step)[:, None]
    return integrated_out(problem, point, name, x, sd * step)


def over_the_side_of_y(problem, point, name):
    """z has the sign of y: integrate over |z| in log |z|."""
    step = 0.02
    size = np.exp(np.arange(-45.0, 6.0, step))
    z = (2.0 * point["y"] - 1.0) * size[:, None]
    return integrated_out(problem, point, name, z, step * size[:, None])


def without(problem, point, names, integrate):
    """Return log_joint with several variables integrated out, which share no factor."""
    top = log_joint_at(problem, point, point["y"])
    return float(top + sum(integrate(problem, point, name) - top for name in names))
