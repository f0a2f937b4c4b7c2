"""PFCVM's own algorithm: Laplace approximation and type-II maximum likelihood, with pruning.

Jiang, Li, De Rijke, Yao, Chen (2019), "Probabilistic Feature Selection and Classification Vector
Machine", ACM TKDD 13(2), doi 10.1145/3309541, section 3, algorithm 1, appendix A. Equation numbers
are the paper's. With theta fixed it fits PCVM; if also the weights may have either sign, it fits
the RVM, as in Tipping (2001).

What it computes
----------------
At given precisions alpha (samples) and beta (features), it finds the mode u of

    Q(w, theta) = ln p(y | w, theta) - sum_j alpha_j w_j^2 / 2 - sum_k beta_k theta_k^2 / 2
                  + sum_j ln sigmoid(lam w_j) + sum_k ln sigmoid(lam theta_k),    lam = 5

(the bias w_0 has no sigmoid term), and two independent normals there, with O the curvature of the
sigmoid terms:

    q(b, w) = N(u_w, Sigma_w),             Sigma_w = (Phi'C Phi + A + O_w)^-1            (13)
    q(theta) = N(u_theta, Sigma_theta),    Sigma_theta = (D'CD + B + O_theta)^-1         (21)

Then alpha and beta are updated by fixed-point equations of the evidence (`update`), with
gamma_k = 1 - beta_k Sigma_kk:

    "mackay"   beta_k = (gamma_k + 2c) / (u_k^2 + 2d)                    (15), (29): the paper's
    "em"       beta_k = (1 + 2c) / (u_k^2 + Sigma_kk + 2d)               (28): same points, slower

A weight whose precision exceeds its threshold is removed. The trace records the log of the Laplace
evidence p(y | alpha, beta), with a separate Gaussian integral for each block:

    ln p(y | u) + sum_j [ln alpha_j - alpha_j u_j^2] / 2 + sum_k [ln beta_k - beta_k u_k^2] / 2
    + sum_{j >= 1} ln 2 sigmoid(lam u_j) + sum_k ln 2 sigmoid(lam u_k)
    + ln det Sigma_w / 2 + ln det Sigma_theta / 2 + sum (c ln precision - d precision).

It is continuous as a precision goes to infinity. Neither update is guaranteed to increase it.

How good it is
--------------
It is never exact in this model. There are three biases. Precisions are point estimates, whose
uncertainty is ignored (a pruned weight has no spread at all). The curvature between w and theta is
dropped, although only their products are identified. A mode and a curvature say little about a
positive weight near 0.

Each weight is drawn independently from its marginal normal truncated to >= 0, as section 5.1
assumes. The bias is normal; the RVM's weights are drawn jointly.

`hyperprior="paper"` (default) is c = d = 0, and alpha_0, which starts at bias_sd^-2, is
re-estimated too. The posterior that it approximates is improper, so a comparison with an exact
posterior also measures the change of prior. With `hyperprior="model"`, c
and d are the problem's own shape and rate and the bias keeps its prior, so only the approximation
differs from an exact posterior. lam, initial precisions and thresholds are then in units of
the weight's prior scale (of its slab, if that is narrower). So lam is 5 / scale there, and
no longer the paper's 5: in this too it is not the printed algorithm. A proper hyperprior keeps
precisions below (1 + 2c) / 2d, so nothing is pruned. In that case, if the model is in its marginal
form, q covers every free variable, and `lp` and `log_q` are given.

With a slab in the problem's own prior, the last term of ln p(alpha_j, w_j) is
-(alpha_j + slab^-2) w_j^2 / 2, while the power alpha_j^1/2 stays. With t = slab^-2, alpha therefore
becomes alpha + t in the modes, in A and B and in -alpha_j u_j^2 / 2 above. The rest, including
gamma and both updates, does not change: there alpha comes from the derivative of
ln alpha_j / 2 - alpha_j <w_j^2> / 2, in which t does not occur.

Collapse
--------
lam has the units of 1 / weight, and its sigmoid pushes every weight away from zero. If the data are
not informative, the MacKay precision grows by lam^2 / 4 = 6.25 per iteration, that of (28) only
like the square root of the iteration number. Under a linear kernel (theta / r, r w) leaves eta
unchanged and nothing determines r. In a long run theta or w therefore shrinks until most of a block
has passed its threshold, informative weights included, and the objective falls far below its
maximum. Such a run is `not_converged` and gives this reason, as does a run that pruned a whole
block.

`stopping="rise"` is algorithm 1 as printed, lines 12-16: stop when the objective no longer
increases (here for 10 iterations) and return the state before (here the best). It need not
be a fixed point of (15). `"change"` is the paper's text, step 8: stop when the objective changes
little, and return the last state. The default is "rise" under the paper's hyperprior and "change"
under the model's. There (29) has a proper fixed point, which is not the maximum of the objective:
(29) ignores that the modes, and O with them, depend on the precisions.

The paper chose initial precisions by validation and gives no thresholds. The defaults do not
reproduce its 2 to 5 genes; `lab/algorithms/ALGORITHMS.md` prints what they give. Three settings
determine how many features are left when the objective stops increasing, and the paper specifies
none of them:

    initial_feature_precision   beta_0; fig. 10 has 0.5 in an example of section 5.1
    feature_threshold           an uninformative beta grows towards it by 6.25 per iteration
    feature_floor               footnote 3 sets a theta below some threshold to 0; here it is then
                                removed, because its own mode would bring it back

`path=True` keeps the weights of every iteration. So one can see what another stopping rule would
have returned, also on held-out rows, without running again.

Corrections
-----------
Obvious misprints are not reproduced: beta (1 - sigmoid) in (12) for lam (1 - sigmoid); the power
(P - 1) / P of a polynomial kernel value in D, which loses the sign of 1 + S; kappa called a
variance. (10) and (12) are fixed-point equations; Newton's method with a line search on Q solves
them. Modes may be negative during the iterations, as in the paper, and are counted. A step to a
negative theta that would make an rbf kernel exceed 1 is rejected, and from then on the bound
theta >= 0 is enforced. E in (11) is dropped, as in (21): this is exact for the linear kernel and
Gauss-Newton for the others.

Cost
----
With R = C^1/2 D, V = beta + O: Sigma_theta = V^-1 - V^-1 R'(I + R V^-1 R')^-1 R V^-1. So an
iteration takes O(N^2 D) time and O(N D) memory, including a few kernel matrices; the paper's takes
O(D^3) and O(D^2). `lab/algorithms/ALGORITHMS.md` measures it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy import linalg, special

from ardvark.common.declared import option
from ardvark.common.progress import Update
from ardvark.models import Problem

from ...target.backend import About, Dims, FitFailed, Job, Kind, Result, Status
from ...target.reasons import Reason
from ...target.target import Target
from .curvature import Curvature
from .draws import draw
from .engine import (
    FAILED,
    NO_WEIGHTS,
    ROUNDS,
    Engine,
    EngineOptions,
    applies,
    full,
    predictive_moments,
)
from .traces import Traces

NAME = "pfcvm_lp"
KIND: Kind = "approximation"
ABOUT = About(
    approximates=(
        "The posterior by two normals at the mode, one for (b, w) and one for theta. Precisions "
        "maximise the evidence."
    ),
    exact=(
        "Never in this model: precisions are points, and the curvature between w and theta is "
        "ignored."
    ),
    cost="O(N^2 D) time and O(N D) memory per iteration.",
)
_FAR = 1e-3  # a state with a larger gradient, in posterior sd, is not a mode
_FALL = 10.0  # a larger fall of the log evidence means drift (flat hyperprior only)
_ADVICE = 'Raise the thresholds, change the initial precisions, or use hyperprior="model"'
_PATIENCE = 10  # iterations without a rise
_POLISH = 1e-12  # Newton decrement at the returned state, in units of log density


@dataclass(frozen=True, kw_only=True)
class Options(EngineOptions):
    """Options of `pfcvm_lp`; the module docstring has the formulas."""

    update: Literal["mackay", "em"] = option("mackay", "how precisions are re-estimated")
    stopping: Literal["rise", "change"] | None = option(
        None,
        "stop when the objective no longer rises, or when it no longer changes. None: rise with "
        "the paper's hyperprior, change with the model's",
    )


supports = applies


# --- the iterations -------------------------------------------------------------------------------


@dataclass
class Run(Traces):
    """A fit: the returned state, its curvature, and traces with one entry per iteration."""

    negative: list[int] = field(default_factory=list)
    best: int = 0
    collapsed: dict[str, int | str] = field(default_factory=dict)
    stop: str = ""
    of_w: Curvature = field(init=False)
    of_theta: Curvature | None = field(init=False)
    kkt: float = 0.0


def update_precisions(
    engine: Engine, of_w: Curvature, of_theta: Curvature | None, update: str
) -> None:
    """Re-estimate alpha and beta: PFCVM (29), PFCVM (15) if c = d = 0, or PFCVM (28)."""
    for block, curvature in ((engine.sample, of_w), (engine.feature, of_theta)):
        if curvature is None:
            continue
        variance, share = curvature.moments()
        square = block.u**2 + 2.0 * block.d
        if update == "mackay":
            new = (block.gamma(share) + 2.0 * block.c) / np.maximum(square, 1e-300)
        else:
            new = (1.0 + 2.0 * block.c) / (square + variance)
        block.set_precisions(new)


def iterate(engine: Engine, options: Options, update: Update | None = None) -> Run:
    """Run algorithm 1 from the engine's state."""
    run = Run(engine)
    best, high, level, waited = engine.copy(), -np.inf, -np.inf, 0
    by_paper = options.hyperprior == "paper"
    stopping = options.stopping or ("rise" if by_paper else "change")
    for t in range(1, options.max_iterations + 1):
        try:
            engine.climb(ROUNDS, 1e-8)
            of_w, of_theta = engine.curvatures()
            objective = engine.evidence(of_w, of_theta)
        except (linalg.LinAlgError, ValueError) as error:
            run.reason = f"iteration {t} failed: {FAILED} ({error})"
            break
        if not np.isfinite(objective):
            run.reason = f"the objective is not finite in iteration {t}"
            break
        run.note(t, objective, "objective", options, update)
        weights = np.concatenate([engine.sample.u[1:], engine.feature.u])
        run.negative.append(int(np.sum(weights < 0.0)) if engine.signed else 0)
        if stopping == "change":
            if abs(objective - level) <= options.tolerance * (1.0 + abs(objective)):
                run.stop = "the objective changes by less than the tolerance"
                best, run.best = engine.copy(), t
                break
            best, run.best, level = engine.copy(), t, objective
        else:
            if objective > high:
                best, run.best, high = engine.copy(), t, objective
            rose = objective - level > options.tolerance * (1.0 + abs(objective))
            level, waited = (objective, 0) if rose else (level, waited + 1)
            if waited >= _PATIENCE:
                run.stop = f"the objective has not risen for {_PATIENCE} iterations"
                break
        if engine.collapsed:
            break
        update_precisions(engine, of_w, of_theta, options.update)
        engine.prune(t)
        if engine.collapsed:
            what = "features" if len(engine.feature.u) == 0 else "samples"
            run.collapsed = {"iteration": t, "what": what}
            engine.drop_all(t)
    else:
        text = f"after {options.max_iterations} iterations the objective still changes"
        run.reason = Reason("unfinished", {"text": text, "options": "max_iterations or tolerance"})
    if not run.objective:
        raise FitFailed(str(run.reason))
    best.climb(500, _POLISH)
    run.engine = best
    run.of_w, run.of_theta = best.curvatures()
    run.kkt = kkt(run)
    return run


def kkt(run: Run) -> float:
    """Return the largest abs(dQ/du_k) Sigma_kk^1/2, the distance from the maximum of Q in sds.

    A theta held at the bound 0 (rbf), with a gradient that points below it, counts as 0.
    """
    worst, e = 0.0, run.engine
    blocks = ((e.sample, run.of_w), (e.feature, run.of_theta))
    for g, (block, curvature) in zip(e.gradients(), blocks, strict=True):
        if curvature is not None:
            scaled = np.abs(g) * curvature.moments()[0] ** 0.5
            worst = max(worst, float(np.max(scaled[~e.held(block, g)], initial=0.0)))
    return worst


def _verdict(run: Run, options: Options) -> tuple[Status, str | Reason]:
    """Return the status and its reason."""
    reason = run.reason
    if run.collapsed:
        state = NO_WEIGHTS if run.engine.collapsed else f"iteration {run.best}'s state"
        reason = Reason("collapsed", {**run.collapsed, "returned": state, "advice": _ADVICE})
    fall = max(run.objective) - run.objective[run.best - 1]
    if options.hyperprior == "paper" and fall > _FALL and not reason:
        reason = (
            f"the objective fell by {fall:.3g} from iteration {int(np.argmax(run.objective)) + 1} "
            "to the returned state, because the scale of the weights drifted (see the docstring "
            'of the method). Use stopping="rise"'
        )
    if run.kkt > _FAR and not reason:
        reason = f"the state does not maximise Q: its gradient is {run.kkt:.1g} per posterior sd"
    return ("not_converged" if reason else "finished"), reason


def _details(problem: Problem, run: Run) -> tuple[dict[str, np.ndarray], Dims]:
    """Return the state, what q is made of, and the traces, with their dims."""
    (D, B), engine = (problem.X.shape[1], len(problem.Z)), run.engine
    details, dims = run.details()
    variance, _ = run.of_w.moments()
    details |= {
        "sample_sd": full(variance[1:] ** 0.5, engine.sample.index[1:], B),
        "bias_sd": np.asarray(variance[0] ** 0.5),
        "sample_factor": _factor(run, B),
    }
    dims |= {"sample_sd": ("basis",), "sample_factor": ("weight", "factor")}
    if run.of_theta is not None:
        variance, _ = run.of_theta.moments()
        details |= {
            "feature_sd": full(variance**0.5, engine.feature.index, D),
            # Sigma_theta = (diag(feature_diagonal) + feature_root' feature_root)^-1, kept features
            "kept_feature": engine.feature.index,
            "feature_diagonal": run.of_theta.V,
            "feature_root": run.of_theta.R,
        }
        dims |= {
            "feature_sd": ("feature",),
            "kept_feature": ("kept",),
            "feature_diagonal": ("kept",),
            "feature_root": ("obs", "kept"),
        }
    details["negative_modes"] = np.asarray(run.negative)
    details["best_iteration"] = np.asarray(run.best)
    return details, dims | {"negative_modes": ("iteration",)}


def _factor(run: Run, B: int) -> np.ndarray:
    """Return F (1 + B, 1 + B) with Sigma_w = F F', bias first, zeros for pruned weights."""
    out, kept = np.zeros((1 + B, 1 + B)), run.engine.sample.index + 1
    out[np.ix_(kept, kept)] = run.of_w.factor()
    return out


def fit(target: Target, options: Options, job: Job) -> Result:
    """Iterate, return the state that the stopping rule selects, and draw from its q."""
    problem = target.zoo_problem
    update_bias = options.hyperprior == "paper"
    with job.report.stage("iterating", total=options.max_iterations) as update:
        run = iterate(Engine.start(problem, options, update_bias), options, update)
    with job.report.stage("drawing", total=job.chains * job.draws) as update:
        drawn = draw(problem, run.engine, (run.of_w, run.of_theta), job, update)
    status, reason = _verdict(run, options)
    details, dims = _details(problem, run)
    details["converged"] = np.asarray(status == "finished")
    return Result(
        posterior=drawn.posterior,
        sample_stats=drawn.sample_stats,
        details=details,
        dims=dims,
        status=status,
        reason=reason,
        attrs={
            "iterations": len(run.objective),
            "best_iteration": run.best,
            "objective": run.objective[run.best - 1],
            "stopped_because": run.stop or str(reason),
            "features_kept": len(run.engine.feature.u),
            "samples_kept": len(run.engine.sample.u) - 1,
            "negative_modes": run.negative[run.best - 1],
            "rejected_steps": run.engine.rejected,
            "kkt_residual": run.kkt,
        },
    )


def predict_paper(problem: Problem, state: Mapping[str, Any], X_new: np.ndarray) -> np.ndarray:
    """Return P(y = 1) = sigmoid(kappa(v) mean), kappa(v) = (1 + pi v / 8)^-1/2: PFCVM sec. 3.3."""
    mean, variance = predictive_moments(problem, state, X_new)
    return special.expit(mean / np.sqrt(1.0 + np.pi * variance / 8.0))
