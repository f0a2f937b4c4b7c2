"""How an approximation can fail: posteriors of one or two weights, small enough for quadrature.

`MATRIX.md` says what each of them shows. The exact posterior is a sum over a grid. `Laplace` is the
Gaussian at the highest mode found, with the curvature there. `mean field` is the Gaussian with
independent components that minimises KL(q || p), its expectations by Gauss-Hermite quadrature. Both
start from several points, and the best end is taken.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import optimize

from ardvark.inference.comparison.report import look
from ardvark.inference.comparison.report.look import Picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray
SPIKE, SLAB, VISIBLE = 0.01, 3.0, 0.1
"""Scale of the Cauchy, sd of the slab, and the size above which a weight is active."""
NODES = 48
"""Of the Gauss-Hermite rule, in each dimension."""


@dataclass(frozen=True, eq=False)
class Toy:
    """A posterior on one or two coordinates.

    Attributes
    ----------
    name : str
    log_density : callable
        Of points (..., d), without its constant.
    eta : callable
        The decision value at points (..., d).
    weights : callable
        The weights (..., K) that are active where they exceed `VISIBLE`.
    axes : tuple of array
        The grid of each coordinate; finer where the density is.
    starts : tuple of tuple
        Where optimisers begin.
    """

    name: str
    log_density: Callable[[Array], Array]
    eta: Callable[[Array], Array]
    weights: Callable[[Array], Array]
    axes: tuple[Array, ...]
    starts: tuple[tuple[float, ...], ...]


class Summary(NamedTuple):
    """What a reader takes from a posterior.

    Mean and sd of eta, sd of each coordinate, P(active) of each weight, P(any is active).
    """

    mean: float
    sd: float
    sds: tuple[float, ...]
    active: tuple[float, ...]
    any_active: float


class Gaussian(NamedTuple):
    """An approximation, N(mean, covariance)."""

    mean: Array
    covariance: Array


def _spike(w: Array) -> Array:
    """Return the log density of a Cauchy of scale `SPIKE` times a normal of sd `SLAB`."""
    return -np.log1p((w / SPIKE) ** 2) - 0.5 * (w / SLAB) ** 2


def _fine(low: float, high: float) -> Array:
    """Return a grid that is dense near 0, where the spike is."""
    near = np.geomspace(1e-5, 0.5, 250)
    return np.unique(np.concatenate([np.linspace(low, high, 700), -near, near, [0.0]]))


THE_SPIKE = Toy(
    "the spike",
    lambda x: _spike(x[..., 0]) - 0.5 * (x[..., 0] - 3.0) ** 2,
    lambda x: x[..., 0],
    lambda x: x,
    (_fine(-4.0, 9.0),),
    ((0.0,), (3.0,)),
)
THE_LOGARITHM = Toy(
    "the spike in logarithms",
    lambda x: _spike(np.exp(x[..., 0])) + x[..., 0] - 0.5 * (np.exp(x[..., 0]) - 3.0) ** 2,
    lambda x: np.exp(x[..., 0]),
    np.exp,
    (np.linspace(-22.0, 2.5, 4000),),
    ((-4.5,), (1.0,)),
)
THE_COPIES = Toy(
    "the copies",
    lambda x: _spike(x).sum(axis=-1) - 0.5 * ((x.sum(axis=-1) - 3.0) / 0.6) ** 2,
    lambda x: x.sum(axis=-1),
    lambda x: x,
    (_fine(-4.0, 7.0), _fine(-4.0, 7.0)),
    ((0.0, 0.0), (3.0, 0.0), (0.0, 3.0), (1.5, 1.5)),
)
THE_RIDGE = Toy(
    "the ridge",
    # v is half-normal, of sd 1, and log v has the Jacobian v
    lambda x: x[..., 0] - 0.5 * np.exp(2.0 * x[..., 0]) - 0.5 * (x[..., 1] / 10.0) ** 2
    - 0.5 * ((np.exp(x[..., 0]) * x[..., 1] - 2.0) / 0.5) ** 2,
    lambda x: np.exp(x[..., 0]) * x[..., 1],
    lambda x: np.exp(x[..., :1]) * x[..., 1:],
    (np.linspace(-7.0, 2.0, 900), np.linspace(-40.0, 60.0, 2500)),
    ((0.0, 2.0), (-1.0, 5.0), (0.0, 0.0)),
)  # fmt: skip
TOYS = {toy.name: toy for toy in (THE_SPIKE, THE_LOGARITHM, THE_COPIES, THE_RIDGE)}
"""Every example, by name."""


# --- the exact posterior, and two approximations --------------------------------------------------


def exact(toy: Toy) -> tuple[Array, Array]:
    """Return the grid's points (G, d) and their probabilities (G,), by the trapezoidal rule."""
    points = np.stack(np.meshgrid(*toy.axes, indexing="ij"), axis=-1).reshape(-1, len(toy.axes))
    steps = [np.gradient(axis) for axis in toy.axes]
    volume = np.ones(1)
    for step in steps:
        volume = np.multiply.outer(volume, step)
    log = toy.log_density(points)
    p = np.exp(log - log.max()) * volume.ravel()
    return points, p / p.sum()


def laplace(toy: Toy) -> Gaussian:
    """Return the Gaussian at the highest mode found, its covariance by second differences."""
    found = [
        optimize.minimize(lambda x: -toy.log_density(x), start, method="Nelder-Mead",
                          options={"xatol": 1e-8, "fatol": 1e-12, "maxiter": 4000})
        for start in toy.starts
    ]  # fmt: skip
    mode = min(found, key=lambda end: float(end.fun)).x
    return Gaussian(mode, np.linalg.inv(_hessian(lambda x: -toy.log_density(x), mode)))


def _hessian(f: Callable[[Array], Array], x: Array, step: float = 1e-4) -> Array:
    d = len(x)
    e = np.eye(d) * step
    return np.array(
        [
            [
                (f(x + e[i] + e[j]) - f(x + e[i] - e[j]) - f(x - e[i] + e[j]) + f(x - e[i] - e[j]))
                / (4.0 * step**2)
                for j in range(d)
            ]
            for i in range(d)
        ]
    )


@cache
def mean_field(toy: Toy) -> Gaussian:
    """Return the Gaussian with independent components that minimises KL(q || p)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    d = len(toy.axes)
    z = np.stack(np.meshgrid(*[nodes] * d, indexing="ij"), axis=-1).reshape(-1, d)
    w = np.ones(1)
    for _ in range(d):
        w = np.multiply.outer(w, weights / weights.sum())
    w = w.ravel()

    def loss(q: Array) -> float:
        return -float(w @ toy.log_density(q[:d] + np.exp(q[d:]) * z)) - float(q[d:].sum())

    found = [
        optimize.minimize(loss, [*start, *[log_sd] * d], method="Nelder-Mead",
                          options={"xatol": 1e-6, "fatol": 1e-10, "maxiter": 8000,
                                   "maxfev": 8000})
        for start in toy.starts
        for log_sd in (-3.0, -0.5)
    ]  # fmt: skip
    best = min(found, key=lambda end: float(end.fun)).x
    return Gaussian(best[:d], np.diag(np.exp(2.0 * best[d:])))


def summary(toy: Toy, points: Array, p: Array) -> Summary:
    """Return what a reader takes from points (G, d) with probabilities (G,)."""
    eta, on = toy.eta(points), np.abs(toy.weights(points)) > VISIBLE
    mean = float(p @ eta)
    return Summary(
        mean,
        float(np.sqrt(p @ (eta - mean) ** 2)),
        tuple(float(x) for x in np.sqrt(p @ (points - p @ points) ** 2)),
        tuple(float(x) for x in p @ on),
        float(p @ on.any(axis=-1)),
    )


def of_gaussian(toy: Toy, q: Gaussian, draws: int = 200_000) -> Summary:
    """Return the same of a Gaussian approximation, from draws with a fixed seed."""
    root = np.linalg.cholesky(q.covariance)
    z = np.random.default_rng(0).normal(size=(draws, len(q.mean)))
    return summary(toy, q.mean + z @ root.T, np.full(draws, 1.0 / draws))


@cache
def summaries(toy: Toy) -> dict[str, Summary]:
    """Return the exact posterior's summary and those of the two approximations.

    Examples
    --------
    >>> from lab.matrix.mechanisms import THE_COPIES, summaries
    >>> found = summaries(THE_COPIES)
    >>> [round(p, 2) for p in found["exact"].active], round(found["exact"].any_active, 2)
    ([0.53, 0.53], 1.0)
    >>> sorted(round(p) for p in found["mean field"].active)
    [0, 1]
    """
    return {
        "exact": summary(toy, *exact(toy)),
        "mean field": of_gaussian(toy, mean_field(toy)),
        "Laplace": of_gaussian(toy, laplace(toy)),
    }


# --- drawn ----------------------------------------------------------------------------------------


def draw() -> Picture:
    """Draw the posteriors, with the two approximations over them."""
    colours = look.colours(["exact", "mean field", "Laplace"], "exact")
    with look.style():
        figure, axes = look.blank(len(TOYS), 5.4, rows=2)
        for axis, toy in zip(axes, TOYS.values(), strict=True):
            axis.set_title(toy.name)
            (_line if len(toy.axes) == 1 else _contours)(axis, toy, colours)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return Picture(figure, "Four small posteriors and two approximations of each.")


_DASHES = {"mean field": "-", "Laplace": "--"}


def _line(axis: "Axes", toy: Toy, colours: dict[str, str]) -> None:
    """Draw densities of one coordinate, and the exact masses within and beyond `VISIBLE`."""
    (x,) = toy.axes
    _, p = exact(toy)
    axis.plot(x, p / np.gradient(x), color="black", label="exact")
    for name, g in (("mean field", mean_field(toy)), ("Laplace", laplace(toy))):
        sd = np.sqrt(g.covariance[0, 0])
        density = np.exp(-0.5 * ((x - g.mean[0]) / sd) ** 2) / (sd * np.sqrt(2 * np.pi))
        axis.plot(x, density, color=colours[name], ls=_DASHES[name], label=name)
    active = float(p @ (np.abs(toy.weights(x[:, None]))[:, 0] > VISIBLE))
    if toy is THE_SPIKE:
        axis.set(yscale="log", ylim=(1e-4, 1e2), xlim=(-1.0, 6.0), xlabel="w")
        marks, places = [-VISIBLE, VISIBLE], (0.32, 0.75)
    else:
        axis.set(ylim=(0.0, 0.6), xlim=(-9.0, 2.5), xlabel="log w")
        marks, places = [float(np.log(VISIBLE))], (0.15, 0.85)
    for mark in marks:
        axis.axvline(mark, color="0.75", lw=0.8, zorder=0)
    for place, told in zip(
        places, (f"{1.0 - active:.2f} within", f"{active:.2f} beyond"), strict=True
    ):
        axis.text(place, 0.9, told, ha="center", transform=axis.transAxes, fontsize=9)
    axis.set_ylabel("density")


def _contours(axis: "Axes", toy: Toy, colours: dict[str, str]) -> None:
    """Draw contours of a density of two coordinates, and ellipses of two sds."""
    from matplotlib.patches import Ellipse

    x, y = (a[:: max(1, len(a) // 400)] for a in toy.axes)
    log = toy.log_density(np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1))
    # the spikes of the copies are far higher than the rest
    drops = (13.0, 11.0, 9.0, 5.0, 2.0) if toy is THE_COPIES else (8.0, 4.0, 2.0, 1.0, 0.5)
    levels = [log.max() - drop for drop in drops]
    axis.contour(x, y, log.T, levels=levels, colors="black", linewidths=0.7, linestyles="solid")
    for name, g in (("mean field", mean_field(toy)), ("Laplace", laplace(toy))):
        width, vectors = np.linalg.eigh(g.covariance)
        angle = float(np.degrees(np.arctan2(vectors[1, 1], vectors[0, 1])))
        axis.add_patch(
            Ellipse(tuple(g.mean), *(4.0 * np.sqrt(width[::-1])), angle=angle, fill=False,
                    color=colours[name], ls=_DASHES[name], lw=1.6)
        )  # fmt: skip
    if toy is THE_COPIES:
        axis.set(xlabel="first copy's weight", ylabel="second copy's weight")
        axis.set(xlim=(-1.0, 5.0), ylim=(-1.0, 5.0))
    else:
        axis.set(xlabel="log v", ylabel="a", xlim=(-4.0, 2.0), ylim=(-5.0, 25.0))
