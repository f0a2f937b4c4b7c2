"""Laplace approximation: a Gaussian at the mode of the unconstrained density.

With x the unconstrained vector and g(x) its log density, Jacobian of the transforms included,

    x* = argmax g(x),      H = -d2 g / dx dx' at x*,      q(x) = N(x*, H^-1).

The Jacobian matters twice. Without it the mode of an ARD prior sits at zero weights, which is minus
infinity on the log scale; and a Gaussian on x must approximate the density of x.

Exact for a Gaussian density. Biased wherever the density is skewed or has several modes: it sees
one point and its curvature. The curvature is the true one, by central differences of the exact
gradient (relative error about 1e-9), not an optimiser's running guess.
Cost: 2 P gradients and one P x P Cholesky factor for P unconstrained parameters, hence the limit.

A fit is `not_converged`, and is returned as the one point it found, when the optimiser stops short,
when a parameter has run off to a boundary, or when the curvature is not positive definite: then no
Gaussian sits there.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg, optimize

from ..backend import About, Dims, FitFailed, Job, Kind, Result, continuous_only
from ..options import BaseOptions, option
from ..progress import Update
from ..target import Target

if TYPE_CHECKING:
    from ..density import Density

NAME = "laplace"
KIND: Kind = "approximation"
ABOUT = About(
    approximates="The unconstrained density, by a Gaussian at its mode with the curvature there.",
    exact=(
        "For a Gaussian density; it sees one point, so not where the density is skewed or has "
        "several modes."
    ),
    cost=(
        "2 P gradients and one P x P Cholesky factor for P unconstrained parameters, hence at "
        "most 5000."
    ),
)
LARGEST = 5000
_BOUNDARY = 30.0  # on a log scale: a factor of 1e13 from where it started


@dataclass(frozen=True, kw_only=True)
class Options(BaseOptions):
    """Options of `laplace`."""

    starts: int = option(4, "starting points; the first is PyMC's own, others around it", above=0)
    jitter: float = option(1.0, "standard deviation of the other starts around it", above=0.0)
    max_iterations: int = option(5000, "of the optimiser, a start", above=0)
    tolerance: float = option(
        1e-6,
        "largest Newton decrement g'H^-1 g / 2, in units of log density, accepted as a mode",
        above=0.0,
    )


def supports(target: Target) -> str | None:
    """Return why the model has no Laplace approximation here, or None."""
    why_not = continuous_only("Laplace")(target)
    if why_not is None and (size := target.free_size) > LARGEST:
        return (
            f"its dense {size} x {size} curvature matrix is too large "
            f"(limit: {LARGEST} unconstrained parameters)"
        )
    return why_not


def fit(target: Target, options: Options, job: Job) -> Result:
    """Find the best mode over several starts, take its curvature, draw from the Gaussian."""
    rng = np.random.default_rng(job.seed)
    with job.report.stage("compiling"):
        seconds_compile = target.compile_density()
    density = target.density
    started = time.perf_counter()

    with job.report.stage("searching the mode", total=options.starts) as update:
        mode, values = _best_mode(density, options, rng, update)
    with job.report.stage("curvature", total=density.size) as update:
        mode, precision, decrement = _newton(density, mode, update)
    reason = _why_not(density, mode, precision, decrement, options)

    details = {"location": mode, "log_density": np.asarray(values)}
    dims: Dims = {
        "location": ("unconstrained",),
        "log_density": ("start",),
    }
    factor = None
    if not reason:
        # x = x* + L^-T e with H = L L', so that Cov x = H^-1 and log q(x) has no inverse in it
        factor = linalg.cholesky(precision, lower=True)
        noise = rng.standard_normal((job.chains * job.draws, density.size))
        x = mode + linalg.solve_triangular(factor, noise.T, lower=True, trans="T").T
        log_q = (
            -0.5 * (noise**2).sum(axis=1)
            + np.log(np.diag(factor)).sum()
            - 0.5 * density.size * np.log(2.0 * np.pi)
        )
        details["sd"] = np.sqrt(_inverse_diagonal(factor))
        dims["sd"] = ("unconstrained",)
        shape = (job.chains, job.draws)
    else:
        x, shape = mode[None, :], (1, 1)
    with job.report.stage("drawing"):
        posterior = density.constrain(x, job.keep)
        stats = {"lp": density.logp(x).reshape(shape)}
        if factor is not None:
            stats["log_q"] = log_q.reshape(shape)
    return Result(
        posterior={k: v.reshape(*shape, *v.shape[1:]) for k, v in posterior.items()},
        sample_stats=stats,
        details=details,
        dims=dims,
        status="not_converged" if reason else "finished",
        reason=reason,
        seconds_compile=seconds_compile,
        seconds_run=time.perf_counter() - started,
        attrs={"newton_decrement": float(decrement)},
    )


def _best_mode(
    density: Density, options: Options, rng: np.random.Generator, update: Update
) -> tuple[np.ndarray, list[float]]:
    """Return the best of several local maxima, and the log density at each."""

    def negative(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = density.logp_grad(x)
        if not np.isfinite(value) or not np.isfinite(gradient).all():
            return np.inf, np.zeros_like(x)
        return -value, -gradient

    best, values = None, []
    for start in range(options.starts):
        x = density.start.copy()
        if start:
            x += options.jitter * rng.standard_normal(density.size)
        found = optimize.minimize(
            negative,
            x,
            jac=True,
            method="L-BFGS-B",
            options={"maxiter": options.max_iterations, "maxcor": 50, "ftol": 1e-13, "gtol": 1e-7},
        )
        values.append(-float(found.fun))
        if np.isfinite(found.fun) and (best is None or found.fun < best.fun):
            best = found
        update(start + 1, f"log density {values[-1]:.2f}")
    if best is None:
        raise FitFailed("no start reached a point with a finite density and gradient")
    return np.asarray(best.x), values


def curvature(density: Density, x: np.ndarray, update: Update | None = None) -> np.ndarray:
    """Return -d2 g / dx dx' (P, P) by central differences of the exact gradient."""
    H = np.empty((density.size, density.size))
    for i in range(density.size):
        step = np.cbrt(np.finfo(float).eps) * max(1.0, abs(x[i]))
        ahead, behind = x.copy(), x.copy()
        ahead[i] += step
        behind[i] -= step
        difference = density.logp_grad(ahead)[1] - density.logp_grad(behind)[1]
        H[i] = -difference / (ahead[i] - behind[i])
        if update is not None and i % 100 == 0:
            update(i)
    return 0.5 * (H + H.T)


def _newton(
    density: Density, x: np.ndarray, update: Update
) -> tuple[np.ndarray, np.ndarray, float]:
    """Polish the mode by Newton steps; return it, its curvature and the last decrement.

    L-BFGS stops where the log density no longer changes in its last digits; a step or two with the
    curvature that is needed anyway brings the gradient to zero.
    """
    for _ in range(3):
        H = curvature(density, x, update)
        value, gradient = density.logp_grad(x)
        try:
            step = linalg.cho_solve(linalg.cho_factor(H), gradient)
        except (linalg.LinAlgError, ValueError):
            return x, H, np.inf
        decrement = 0.5 * float(gradient @ step)
        if decrement < 1e-9 or density.logp_grad(x + step)[0] < value:
            break
        x = x + step
    return x, H, decrement


def _why_not(
    density: Density, x: np.ndarray, H: np.ndarray, decrement: float, options: Options
) -> str:
    """Return why no Gaussian can be placed at x, or an empty string."""
    far = np.abs(x - density.start)
    if far.max() > _BOUNDARY:
        i = int(far.argmax())
        return f"the mode ran to a boundary: {density.label(i)} = {x[i]:.3g}"
    if not np.isfinite(H).all():
        return "the curvature at the mode is not finite"
    if not np.isfinite(decrement):
        lowest = float(linalg.eigvalsh(H, subset_by_index=(0, 0))[0])
        return (
            f"the curvature at the mode is not positive definite (smallest eigenvalue {lowest:.3g})"
        )
    if decrement > options.tolerance:
        return f"the optimiser stopped short of a mode (Newton decrement {decrement:.3g})"
    return ""


def _inverse_diagonal(factor: np.ndarray) -> np.ndarray:
    """Return diag((L L')^-1), in one triangular inverse."""
    inverse, _ = linalg.lapack.dtrtri(factor, lower=1)
    return (inverse**2).sum(axis=0)
