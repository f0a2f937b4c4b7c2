"""Draws from `pfcvm_lp`'s q, and the densities of q and of the posterior at them.

q is two independent normals, of (b, w) and of theta, each replaced by the product of its marginal
normals truncated to >= 0 (the bias and the RVM's weights stay normal). Densities are those of the
unconstrained vector, Jacobian included. They exist if q covers every free variable.
"""

import numpy as np

from ardvark.common.progress import Update
from ardvark.models import Problem
from ardvark.models.spec import Point

from ...target.backend import Job
from ...target.draws import Draws, draw_in_chunks
from ..truncated_normal import truncated_draws, truncated_logpdf
from .curvature import Block, Curvature
from .engine import Engine, full

Curvatures = tuple[Curvature, Curvature | None]
_CHUNK = 500_000  # N + D + B times the draws of one chunk: a few dozen MB at once


def draw(problem: Problem, e: Engine, curvatures: Curvatures, job: Job, update: Update) -> Draws:
    """Return draws of q at a state with its curvatures, and both densities where they exist."""
    (N, D), B, (of_w, of_theta) = problem.X.shape, len(problem.Z), curvatures
    whole = len(e.sample.u) == B + 1 and len(e.feature.u) == D
    covered = whole and e.hypers.parametrization == "marginal"

    def some(rng: np.random.Generator, S: int) -> tuple[Point, Point]:
        bw = _block_draws(rng, e.sample, of_w, S)
        theta = np.broadcast_to(e.feature.u, (S, len(e.feature.u)))
        if of_theta is not None:
            theta = _block_draws(rng, e.feature, of_theta, S)
        a = e.basis_sign * bw[:, 1:]
        point = {
            "bias": bw[:, 0],
            "sample_weight": full(a, e.sample.index[1:], B),
            "feature_weight": full(theta, e.feature.index, D),
            "eta": bw[:, :1] + _kernel_sum(e, theta, a),
        }
        if e.signed:
            point["w"] = full(bw[:, 1:], e.sample.index[1:], B)
        stats = {}
        if covered:
            log_q = _log_q(bw, e.sample, of_w)
            if of_theta is not None:
                log_q = log_q + _log_q(theta, e.feature, of_theta)
            stats["lp"] = problem.log_density(point)
            stats["log_q"] = log_q + problem.spec.log_jacobian(point, problem.hypers)
        return point, stats

    return draw_in_chunks(job, job.generators(), max(1, _CHUNK // (N + D + B)), some, update)


def _kernel_sum(e: Engine, theta: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Return K_theta a (S, N) from kept features and samples; a single K if theta is fixed."""
    if a.shape[1] == 0:
        return np.zeros((len(a), len(e.X)))
    if e.free_theta:
        return e.hypers.kernel_of().decision(e.X, e.Z, theta, a)
    return a @ e.hypers.kernel_of().gram(e.X, e.Z, e.feature.u).T


def _block_draws(
    rng: np.random.Generator, block: Block, curvature: Curvature, S: int
) -> np.ndarray:
    """Return S draws (S, K) of one block's q."""
    if not block.lam.any():
        return block.u + curvature.draws(rng, S)
    sd = curvature.moments()[0] ** 0.5
    out, real = np.empty((S, len(block.u))), block.lam == 0.0  # the bias
    truncated = np.empty((S, int((~real).sum())))
    truncated_draws(rng, block.u[~real], sd[~real], truncated)
    out[:, ~real] = truncated
    out[:, real] = block.u[real] + sd[real] * rng.standard_normal((S, int(real.sum())))
    return out


def _log_q(x: np.ndarray, block: Block, curvature: Curvature) -> np.ndarray:
    real = block.lam == 0.0
    if real.all():
        noise = (x - block.u) @ curvature.inverse_factor()
        log_det = curvature.log_det()
        return -0.5 * (np.sum(noise**2, axis=1) + log_det + x.shape[1] * np.log(2.0 * np.pi))
    sd = curvature.moments()[0] ** 0.5
    total = truncated_logpdf(x[:, ~real], block.u[~real], sd[~real]).sum(axis=1)
    z = (x[:, real] - block.u[real]) / sd[real]
    return total - np.sum(0.5 * z**2 + np.log(sd[real]) + 0.5 * np.log(2.0 * np.pi), axis=1)
