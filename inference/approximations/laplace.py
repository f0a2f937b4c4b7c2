"""Laplace approximation: a Gaussian at the mode of the unconstrained density.

With x the unconstrained vector and g(x) its log density, Jacobian of the transforms included,

    x* = argmax g(x),      H = -d2 g / dx dx' at x*,      q(x) = N(x*, H^-1).

The Jacobian matters for two reasons. Without it, the mode of an ARD prior is at zero weights, which
is minus infinity on the log scale. And a Gaussian on x must approximate the density of x.

The approximation is exact for a Gaussian density. It is biased if the density is skewed or has
several modes, because it uses only one point and the curvature there. The curvature is computed by
central differences of the exact gradient (relative error about 1e-9); it is not an optimiser's
running estimate. With a linear kernel, features interact only in eta. The cost is then 2 R
gradients and O(P R^2) for P unconstrained parameters, of which R do not belong to a feature; a draw
and its log q cost O(P R) (`curvature.py`). Otherwise it is 2 P gradients and a P x P Cholesky
factor, hence the limit.

A fit is `not_converged`, and is returned as the single point that it found, if the optimiser stops
short, if a parameter has run to a boundary, or if the curvature is not positive definite. In these
cases no Gaussian fits there.

`fit_laplace` of pymc-extras 0.15.1 leaves out the Jacobian, and takes its covariance from BFGS. Its
draws are useless on RFVM and PFCVM (1944 of 2000 not finite; means 10^54 sd off). Given the
Jacobian and an exact Hessian it has ELBOs of -180.7 and -22.0, and this one -178.3 and -25.0: four
starts find a higher mode, not a better one. It took 46 s of the processor, compilation included,
and this one 0.6 s (RFVM, 60 rows of digits38, 2026-11-28). It holds a P x P matrix for any kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import linalg, optimize

from ardvark.common.declared import Settings, option
from ardvark.common.progress import Update

from ..target.backend import About, Dims, FitFailed, Job, Kind, Result, continuous_only
from ..target.reasons import Reason
from ..target.target import Target
from .curvature import Curvature, Features, linear_kernel

if TYPE_CHECKING:
    from ..target.density import Density

NAME = "laplace"
KIND: Kind = "approximation"
ABOUT = About(
    approximates="The unconstrained density, by a Gaussian at its mode with the curvature there.",
    exact=(
        "If the density is Gaussian. It looks at one point only, so it is wrong where the density "
        "is skewed or has several modes."
    ),
    cost=(
        "With a linear kernel O(N^2 D), and O(N D) per draw. Otherwise 2 P gradients and one P x P "
        "Cholesky factor; P, the number of parameters, is at most 5000."
    ),
)
LARGEST = 5000
_AT_ONCE = 2_000_000  # numbers of draws held in memory
_JITTER = 1.0  # standard deviation of the other starting points
_DECREMENT = 1e-6  # largest Newton decrement g'H^-1 g / 2 at which a point counts as a mode
_BOUNDARY = 30.0  # on a log scale: a factor of 1e13 from where it started


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `laplace`."""

    starts: int = option(4, "number of starting points: PyMC's own, and others around it", above=0)
    max_iterations: int = option(5000, "iterations of the optimiser per start", above=0)


def supports(target: Target) -> str | None:
    """Return why the model has no Laplace approximation here, or None."""
    why_not = continuous_only("Laplace")(target)
    if why_not is not None:
        return why_not
    size, problem = target.free_size, target.problem
    if problem is not None and linear_kernel(problem):
        size -= problem.free_feature_size
    if size > LARGEST:
        return (
            f"its dense {size} x {size} curvature matrix is too large (the limit is {LARGEST} "
            "unconstrained parameters, not counting the features of a linear kernel)"
        )
    return None


def fit(target: Target, options: Options, job: Job) -> Result:
    """Find the best mode over several starts, compute its curvature, and draw from the Gaussian."""
    rng = np.random.default_rng(job.seed)
    with job.report.stage("compiling"):
        seconds_compile = target.compile_density()
    density = target.density
    features = Features(density) if linear_kernel(target.problem) else None

    with job.report.stage("searching for the mode", total=options.starts) as update:
        mode, values = best_mode(density, options, rng, update)
    with job.report.stage("curvature") as update:
        mode, curvature, decrement, reason = _newton(density, mode, features, update)
    why_not = _why_not(density, mode, decrement) or reason

    details = {"location": mode, "log_density": np.asarray(values)}
    dims: Dims = {"location": ("unconstrained",), "log_density": ("start",)}
    if curvature is None or why_not:
        posterior = {k: v[None] for k, v in density.constrain(mode[None, :], job.names).items()}
        stats = {"lp": density.logp(mode[None, :])[None]}
    else:
        details["sd"], dims["sd"] = curvature.sd, ("unconstrained",)
        with job.report.stage("drawing", total=job.chains * job.draws) as update:
            posterior, stats = _draw(density, mode, curvature, job, rng, update)
    return Result(
        posterior=posterior,
        sample_stats=stats,
        details=details,
        dims=dims,
        status="not_converged" if why_not else "finished",
        reason=why_not,
        seconds_compile=seconds_compile,
        attrs={"newton_decrement": float(decrement)},
    )


def _draw(
    density: Density,
    mode: np.ndarray,
    curvature: Curvature,
    job: Job,
    rng: np.random.Generator,
    update: Update,
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return draws of x = x* + R e, R R' = H^-1, as variables, with lp and log q.

    log q(x) = -e'e / 2 + log|H| / 2 - P log(2 pi) / 2 needs no inverse. A few draws are computed at
    a time; the vectors themselves are not kept.
    """
    count, P = job.chains * job.draws, density.size
    names = [n for n in density.names if job.keeps(n)]
    posterior = {k: np.empty((count, *shape)) for k, shape in density.shapes(names).items()}
    lp, log_q = np.empty(count), np.empty(count)
    step = max(1, _AT_ONCE // P)
    for at in range(0, count, step):
        some = slice(at, min(at + step, count))
        e = rng.standard_normal((some.stop - at, P))
        x = mode + curvature.sample(e)
        lp[some] = density.logp(x)
        log_q[some] = 0.5 * (curvature.log_det - (e**2).sum(1) - P * np.log(2.0 * np.pi))
        for name, values in density.constrain(x, names).items():
            posterior[name][some] = values
        update(some.stop)
    shape = (job.chains, job.draws)
    stats = {"lp": lp.reshape(shape), "log_q": log_q.reshape(shape)}
    return {k: v.reshape(*shape, *v.shape[1:]) for k, v in posterior.items()}, stats


def best_mode(
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
            x += _JITTER * rng.standard_normal(density.size)
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
        raise FitFailed("no starting point led to a finite density and gradient")
    return np.asarray(best.x), values


def _newton(
    density: Density, x: np.ndarray, features: Features | None, update: Update
) -> tuple[np.ndarray, Curvature | None, float, str]:
    """Polish the mode by Newton steps; return it, its curvature, the last decrement, a reason.

    L-BFGS stops when the log density no longer changes in its last digits. One or two steps with
    the curvature, which is needed anyway, then bring the gradient to zero.
    """
    for _ in range(3):
        try:
            curvature = Curvature(density, x, features, update)
        except linalg.LinAlgError as why:
            return x, None, np.inf, str(why)
        value, gradient = density.logp_grad(x)
        step = curvature.solve(gradient)
        decrement = 0.5 * float(gradient @ step)
        if decrement < 1e-9 or density.logp_grad(x + step)[0] < value:
            break
        x = x + step
    return x, curvature, decrement, ""


def _why_not(density: Density, x: np.ndarray, decrement: float) -> str | Reason:
    """Return why no Gaussian can be placed at x, or an empty string."""
    # what is not transformed may lie anywhere: its unit is the user's
    far = np.where(density.bounded, np.abs(x - density.start), 0.0)
    if far.max() > _BOUNDARY:
        i = int(far.argmax())
        return f"the mode ran to a boundary: {density.label(i)} = {x[i]:.3g}"
    if np.isfinite(decrement) and decrement > _DECREMENT:
        return Reason("short", {"decrement": decrement})
    return ""
