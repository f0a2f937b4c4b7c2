"""PFCVM's older algorithm: maximum a posteriori weights by expectation maximisation.

Li, Chen (2014), PFCVM_EM, as Jiang et al. (2019, doi 10.1145/3309541) describe and compare it. With
theta fixed it is PCVM's, with the logistic link of this zoo; with real weights, an RVM by MAP.

What it computes
----------------
A local maximum over b, w, theta, with the precisions integrated out, c and d their Gamma's shape
and rate, and Phi, D, lam and the sigmoids that stand for w, theta >= 0 as in `pfcvm_lp`:

    ln p(y | b, w, theta) - bias_sd^-2 b^2 / 2
    - (c + 1/2) sum_j ln(d + w_j^2 / 2) + sum_j ln sigmoid(lam w_j), and the same over theta_k;
    under the model's hyperprior with a slab also - sum_j w_j^2 / (2 slab^2), and of theta_k.

E-step: alpha_j = (2c + 1) / (w_j^2 + 2d), beta_k = (2c + 1) / (theta_k^2 + 2d). A slab does not
affect the precision given the weight. M-step: increase Q at these precisions, by Newton's method in
w and theta in turn. No covariance appears, so this is not (28), although the paper calls it the
same formula. The log posterior never decreases, except slightly when a weight is pruned; the terms
of pruned weights stay in it at their last value.

How good it is
--------------
It is a point, not a posterior: one draw, without spread. Under the paper's hyperprior (c = d = 0,
the default here as in `pfcvm_lp`) the log posterior is unbounded at every zero weight, so the
result depends on the start. Once a weight is small, each iteration replaces it by a multiple of its
square, until it is pruned. The bias keeps its prior. `hyperprior="model"` gives the MAP estimate of
the zoo's own model in its marginal form, up to lam; it prunes nothing.

Cost: as for `pfcvm_lp`, O(N^2 D) time and O(N D) memory per iteration.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, special

from ardvark.common.declared import option
from ardvark.common.progress import Update
from ardvark.models import Problem

from ...target.backend import About, FitFailed, Job, Kind, Result
from ...target.reasons import Reason
from ...target.target import Target
from .curvature import Block
from .engine import (
    FAILED,
    NO_WEIGHTS,
    ROUNDS,
    Engine,
    EngineOptions,
    applies,
    predictive_moments,
)
from .traces import Traces

NAME = "pfcvm_em"
KIND: Kind = "point"
ABOUT = About(
    approximates=(
        "The posterior by a single point: a local maximum over the weights, with their precisions "
        "integrated out."
    ),
    exact=(
        'With hyperprior="model", it is the MAP estimate of the model with its precisions '
        "integrated out, up to the smoothing. A point has no spread."
    ),
    cost="O(N^2 D) time and O(N D) memory per iteration.",
)


_ADVICE = (
    "The log posterior is unbounded at zero weights: change the initial precisions, or use "
    'hyperprior="model"'
)


@dataclass(frozen=True, kw_only=True)
class Options(EngineOptions):
    """Options of `pfcvm_em`; options shared with `pfcvm_lp` have the same meaning there."""

    feature_threshold: float = option(
        1e8,
        "prune features whose precision exceeds this (an absolute weight below 1e-4); inf: never",
        above=0.0,
        at_most=np.inf,
    )
    tolerance: float = option(
        1e-6, "relative change of the log posterior that counts as a change", above=0.0
    )
    max_iterations: int = option(1000, "E-steps", above=0)


supports = applies


def log_prior(block: Block) -> float:
    """Return the log prior of one block's weights, precisions integrated out, up to a constant."""
    free = ~block.keep_precision
    u, c, d = block.u[free], block.c[free], block.d[free]
    heavy = (c + 0.5) * np.log(np.maximum(d + 0.5 * u**2, 1e-300))
    smooth = np.log(2.0) - np.logaddexp(0.0, -block.lam * block.u)
    held = 0.5 * block.p * block.u**2 * block.keep_precision
    ended = 0.5 * block.slab_precision * block.u**2  # the slab, where there is one
    return float(smooth.sum() - heavy.sum() - held.sum() - ended.sum())


def log_posterior(engine: Engine) -> float:
    """Return the log posterior of the remaining weights."""
    eta = engine.design(engine.feature.u) @ engine.sample.u
    value = engine.log_likelihood(eta) + log_prior(engine.sample)
    return value + (log_prior(engine.feature) if engine.moves_theta else 0.0)


def expect(block: Block) -> None:
    """E-step: E[precision | u] = (2c + 1) / (u^2 + 2d)."""
    square = np.maximum(block.u**2 + 2.0 * block.d, 1e-300)
    block.set_precisions((2.0 * block.c + 1.0) / square)


def iterate(engine: Engine, options: Options, update: Update | None = None) -> Traces:
    """Run EM from the engine's state."""
    run = Traces(engine)
    pruned, offset = False, 0.0
    for t in range(1, options.max_iterations + 1):
        try:
            engine.climb(ROUNDS, 1e-10)
            value = log_posterior(engine) + offset
        except (linalg.LinAlgError, ValueError) as error:
            run.reason = f"iteration {t} failed: {FAILED} ({error})"
            break
        if not np.isfinite(value):
            run.reason = f"the log posterior is not finite in iteration {t}"
            break
        run.note(t, value, "log posterior", options, update)
        if engine.collapsed:
            break
        if t > 1 and not pruned:
            change = abs(value - run.objective[-2])
            if change <= options.tolerance * (1.0 + abs(value)):
                break
        for block in (engine.sample, engine.feature):
            expect(block)
        terms = [log_prior(engine.sample), log_prior(engine.feature)]
        before = len(engine.sample.u) + len(engine.feature.u)
        engine.prune(t)
        pruned = len(engine.sample.u) + len(engine.feature.u) < before
        if engine.collapsed:
            what = "features" if len(engine.feature.u) == 0 else "samples"
            numbers = {"iteration": t, "what": what, "returned": NO_WEIGHTS, "advice": _ADVICE}
            run.reason = Reason("collapsed", numbers)
            engine.drop_all(t)
        offset += sum(terms) - log_prior(engine.sample) - log_prior(engine.feature)
    else:
        text = f"after {options.max_iterations} iterations the log posterior still changes"
        run.reason = Reason("unfinished", {"text": text, "options": "max_iterations or tolerance"})
    if not run.objective:
        raise FitFailed(str(run.reason))
    return run


def fit(target: Target, options: Options, job: Job) -> Result:
    """Iterate and return the final state: chain = draw = 1. The method is deterministic."""
    problem = target.zoo_problem
    with job.report.stage("iterating", total=options.max_iterations) as update:
        run = iterate(Engine.start(problem, options, update_bias=False), options, update)
    details, dims = run.details()
    details["converged"] = np.asarray(not run.reason)
    e, w = run.engine, details["sample_mode"]
    signs = 1.0 if problem.basis_labels is None else problem.basis_labels
    point = {
        "bias": details["bias_mode"],
        "feature_weight": details["feature_mode"],
        "sample_weight": signs * w,
        "eta": e.design(e.feature.u) @ e.sample.u,
    }
    if e.signed:
        point["w"] = w
    weights = np.concatenate([e.sample.u[1:], e.feature.u])
    return Result(
        posterior=job.one_draw(point),
        details=details,
        dims=dims,
        status="not_converged" if run.reason else "finished",
        reason=run.reason,
        attrs={
            "iterations": len(run.objective),
            "log_posterior": run.objective[-1],
            "features_kept": len(e.feature.u),
            "samples_kept": len(e.sample.u) - 1,
            "negative_modes": int(np.sum(weights < 0.0)) if e.signed else 0,
        },
    )


def predict_paper(problem: Problem, state: Mapping[str, Any], X_new: np.ndarray) -> np.ndarray:
    """Return P(y = 1) = sigmoid(eta) at the returned state."""
    return special.expit(predictive_moments(problem, state, X_new)[0])
