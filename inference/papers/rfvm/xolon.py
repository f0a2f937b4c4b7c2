"""XOLON, the deterministic counterpart of the RFVM: a penalised fit of its decision function.

Belenguer-Llorens, Sevilla-Salcedo, Parrado-Hernandez, Gomez-Verdejo (2024), arXiv 2402.07079,
section 4.2, eqs. (31), (32): "Cross-Optimized LOsses Network", a baseline of the RFVM paper.

What it computes
----------------
One point: the minimum over a (B,), v >= 0 (D,) and b of

    F = sum_n softplus(-s_n eta_n) + c1 |a|_1 + c2 |v|_1,   eta = X diag(v) Z'a + b,   s = 2y - 1:

binary cross-entropy with a penalty on each group of weights. The formula (32) of the penalty is
missing from the text available to us. **L1 on both is our interpretation, and unverified**; so is
v >= 0, taken from the RFVM. The point is the only draw of the fit; nothing is averaged, and no
spread is given.

Only c1 c2 matters to eta: (v / r, r a) gives the same eta, and over r the sum of both penalties is
smallest when they are equal, 2 (c1 c2 |a|_1 |v|_1)^1/2. So the fit uses c = (c1 c2)^1/2 for both,
and c1 / c2 then determines how the scale is divided between a and v. By default it is divided as in
the problem's prior, whose scales are 1 / c1 and 1 / c2.

When it is exact, and its bias
------------------------------
Given v, and given a, F is an L1-penalised logistic regression, which is convex; jointly it is not:

- The origin a = 0, v = 0 is a local minimum whatever the data, because there the penalty is linear
  in the weights and eta is bilinear. A start can end there, and if c is large it is the best point.
  A fit that ends there has status "not_converged" and gives this reason.
- Other local minima differ in the sample on which the decision depends most. There are several
  `starts`; the lowest is kept.

Many a give the same w = v * Z'a, and L1 selects sparse ones: every minimum found on colon and
ALLAML, at c from 0.3 to 8, keeps one or two samples, different ones each time. P(y = 1) =
sigmoid(eta) at the point ignores all uncertainty.

F has no noise: it is the RFVM with u = eta, that is, tau = infinity. If the problem's model has
tau, the draw holds tau = 1e12. The pointwise log-likelihood and `predict`, which integrate over the
noise, then give sigmoid(eta) to 12 digits. This tau is a constant, not an estimate. `lp` is NaN,
because log v is undefined at v = 0.

Faithful and corrected
----------------------
select = "cv"        c by 3-fold cross-validation, as in the paper, but on one grid of c instead of
                     two of 7 values each (only c1 c2 matters), and by the log score (accuracy has
                     ties). Features are standardised again in each fold.
       = "problem"   c1, c2 from the problem: a Laplace and an exponential prior whose mean absolute
                     weights are the prior scales, and a flat prior on b. F is then a negative log
                     posterior. The scales of a sparse prior are those of its spike at zero, so c is
                     large. This is not useful for D >> N: on colon (62 x 2000) and ALLAML
                     (72 x 7129) the best point found is the origin, even with the dense prior.
c1, c2               given values are used as they are, without selection if both are given.
optimiser            L-BFGS-B on (a+, a-, v, b), a = a+ - a-, all but b >= 0, where F is smooth;
                     weights end at exact zeros. The paper uses Adam with a tuned learning rate,
                     which does not reach zeros, and prunes as the RFVM does; neither is needed
                     here. Its table 4 has over 80 % of samples kept on average.

Cost
----
An evaluation of F and its gradient takes O((N + B) D) time, and O(D) memory apart from X and Z. The
starts need Z Z', O(B^2 D).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from scipy import linalg, optimize, special

from ardvark.common.declared import Settings, option
from ardvark.common.progress import Reporter, Update
from ardvark.models import Problem, rfvm
from ardvark.models.parts.distributions import logistic_logp

from ...target.backend import About, Dims, FitFailed, Job, Kind, Result, Status, only_for
from ...target.reasons import Reason
from ...target.target import Target
from ..optimality import kkt

NAME = "xolon"
KIND: Kind = "point"
ABOUT = About(
    approximates=(
        "The posterior by a single point: the minimum of an L1-penalised fit of the RFVM's "
        "decision function."
    ),
    exact=(
        "Given v, or given a, because the problem is then convex. Jointly it is the best of "
        "several local minima."
    ),
    cost="O((N + B) D) per evaluation of the objective and its gradient.",
)
NO_NOISE = 1e12  # a precision of the latent noise that stands for infinity
FAR = 1e-3  # no converged fit has a KKT residual above this
_GRID = np.geomspace(0.3, 1e-3, 7)  # of N: values of c that `select="cv"` tries
_SPREAD = 6.0  # sd of eta at a start, so that it is far from the origin
_MEMORY = 20  # corrections that L-BFGS-B keeps
DIMS: Dims = {
    "kkt_feature": ("feature",),
    "kkt_sample": ("basis",),
    "objective": ("iteration",),
    "objective_start": ("start",),
    "cv_c": ("candidate",),
    "cv_score": ("candidate",),
}


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `xolon`; the module docstring lists departures from the paper."""

    c1: float | None = option(None, "penalty on a; None: chosen by select", above=0.0)
    c2: float | None = option(None, "penalty on v; None: chosen by select", above=0.0)
    select: Literal["cv", "problem"] = option("cv", "how penalties that are not given are chosen")
    grid: tuple[float, ...] | None = option(
        None,
        'values of c = (c1 c2)^1/2 that select="cv" tries; None: seven, from 0.001 N to 0.3 N',
        above=0.0,
    )
    folds: int = option(3, "folds of the cross-validation", at_least=2)
    starts: int = option(
        12,
        "starts of each descent, the first one not random; cross-validation uses at most 2",
        above=0,
    )
    tolerance: float = option(
        1e-6,
        "converged when no KKT residual exceeds this share of c, or F no longer falls",
        above=0.0,
    )
    max_iterations: int = option(20_000, "iterations per start", above=0)


supports = only_for(("rfvm",), "the deterministic counterpart of the RFVM", fixed_scale=True)


# --- the objective, with one c ------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Objective:
    """F at c1 = c2 = c, as a smooth function of p = (a+, a-, v, b), a = a+ - a-.

    X (N, D), y (N,) in {0, 1}, Z (B, D).
    """

    X: np.ndarray
    y: np.ndarray
    Z: np.ndarray
    c: float

    def split(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return a (B,), v (D,), b."""
        B = len(self.Z)
        return p[:B] - p[B : 2 * B], p[2 * B : -1], float(p[-1])

    def join(self, a: np.ndarray, v: np.ndarray, b: float) -> np.ndarray:
        """Return p for a, v, b, with the smallest possible a+ and a-."""
        return np.concatenate([np.maximum(a, 0.0), np.maximum(-a, 0.0), v, [b]])

    def slopes(
        self, a: np.ndarray, v: np.ndarray, b: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Return eta (N,), and d log-likelihood / d a (B,), d v (D,) and d b.

        With r_n = d log P(y_n | eta_n) / d eta_n = s_n sigmoid(-s_n eta_n): Z (v * X'r),
        (Z'a) * X'r and sum_n r_n.
        """
        toward = a @ self.Z  # (D,)
        eta = self.X @ (v * toward) + b
        s = 2.0 * self.y - 1.0
        r = s * special.expit(-s * eta)
        back = r @ self.X  # (D,)
        return eta, self.Z @ (v * back), toward * back, float(r.sum())

    def __call__(self, p: np.ndarray) -> tuple[float, np.ndarray]:
        """Return F, RFVM (32), and its gradient at p."""
        eta, of_a, of_v, of_b = self.slopes(*self.split(p))
        value = self.c * p[:-1].sum() - logistic_logp(self.y, eta).sum()
        gradient = np.concatenate([self.c - of_a, self.c + of_a, self.c - of_v, [-of_b]])
        return float(value), gradient

    def residuals(self, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Return how far each a_j, each v_d and b is from its KKT condition, in units of c."""
        a, v, b = self.split(p)
        _, of_a, of_v, of_b = self.slopes(a, v, b)
        at_a, at_v = kkt(of_a, a, self.c, signed=True), kkt(of_v, v, self.c, signed=False)
        return at_a, at_v, float(abs(of_b)) / self.c

    def origin(self) -> np.ndarray:
        """Return the point with all weights 0, and b the log-odds of the class sizes."""
        return self.join(np.zeros(len(self.Z)), np.zeros(self.X.shape[1]), self.log_odds)

    @property
    def log_odds(self) -> float:
        """The best b for a constant decision."""
        return float(special.logit(self.y.mean()))

    @cached_property
    def toward_y(self) -> tuple[np.ndarray, np.ndarray]:
        """Covariance g (D,) of each feature with y, up to a factor, and a (B,) with Z'a near g."""
        g = (self.y - self.y.mean()) @ self.X
        g = g / max(np.abs(g).max(), np.finfo(float).tiny)
        return g, linalg.lstsq(self.Z @ self.Z.T, self.Z @ g, cond=1e-10)[0]

    def start(self, number: int, rng: np.random.Generator) -> np.ndarray:
        """Return start `number`, where eta has a large spread and both penalties are equal.

        With g_d the covariance of feature d and y, number 0 has v = g^2 and the a with Z'a nearest
        to g (y minus its mean, for Z = X). The others multiply a by exponential draws; their v is a
        squared exponential draw, in every second start times g^2.
        """
        B, D = len(self.Z), self.X.shape[1]
        g, a = self.toward_y
        v = g**2
        if number:
            a = a * rng.exponential(size=B)
            v = rng.exponential(size=D) ** 2 * (v if number % 2 else np.ones(D))
        size = float(np.std(self.X @ (v * (a @ self.Z))))
        if not 0.0 < size < np.inf:
            return self.origin()  # no feature varies with y
        a = a * (_SPREAD / size)
        ratio = np.sqrt(np.abs(a).sum() / v.sum())
        return self.join(a / ratio, v * ratio, self.log_odds)


@dataclass
class Run:
    """The run from one start: the point, the trace of F (entry 0 is the start), why it stopped."""

    p: np.ndarray
    objective: list[float] = field(default_factory=list)
    reason: str | Reason = ""


def iterate(
    objective: Objective,
    start: np.ndarray,
    options: Options,
    update: Update | None = None,
    held: np.ndarray | None = None,
) -> Run:
    """Minimise F from a start; entries of p marked in `held` stay where they are."""
    run = Run(start, [objective(start)[0]])
    low, high = np.zeros(len(start)), np.full(len(start), np.inf)
    low[-1] = -np.inf
    if held is not None:
        low[held] = high[held] = start[held]

    def note(intermediate_result: optimize.OptimizeResult) -> None:
        run.objective.append(float(intermediate_result.fun))
        if update is not None and len(run.objective) % 50 == 0:
            update(len(run.objective), f"objective {run.objective[-1]:.3f}")

    found = optimize.minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=optimize.Bounds(low, high),
        callback=note,
        options={
            "maxiter": options.max_iterations,
            "maxfun": 10 * options.max_iterations,
            "ftol": 4.0 * np.finfo(float).eps,
            "gtol": options.tolerance * objective.c,
            "maxcor": _MEMORY,
        },
    )
    run.p = objective.join(*objective.split(found.x))  # a+ or a- is 0, which lowers F if anything
    end = objective(run.p)[0]
    if end != run.objective[-1]:
        run.objective.append(end)
    if found.nit >= options.max_iterations:
        text = f"F still falls after {found.nit} iterations"
        run.reason = Reason("unfinished", {"text": text, "options": "max_iterations"})
    return run


def solve(
    objective: Objective,
    options: Options,
    rng: np.random.Generator,
    report: Reporter | None = None,
) -> tuple[Run, np.ndarray]:
    """Return the lowest of several starts and of the origin, and F at the end of each start."""
    best = Run(objective.origin())
    best.objective.append(objective(best.p)[0])
    ends = np.empty(options.starts)
    silent = Reporter(enabled=False) if report is None else report
    for number in range(options.starts):
        with silent.stage(f"start {number + 1}", total=options.max_iterations) as update:
            run = iterate(objective, objective.start(number, rng), options, update)
        ends[number] = run.objective[-1]
        if ends[number] < best.objective[-1]:
            best = run
    return best, ends


# --- the choice of c ------------------------------------------------------------------------------


def prior_rates(problem: Problem) -> tuple[float, float]:
    """Return c1, c2 as rates of Laplace priors at the problem's prior scales."""
    h = problem.hypers
    assert isinstance(h, rfvm.Hypers)  # as `supports` says
    return 1.0 / float(h.sample_prior.scale), 1.0 / float(h.feature_prior.scale)


def folds_of(y: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return the fold (N,) of each row, each class spread evenly over at most `count` folds."""
    count = min(count, int(y.sum()), int((1 - y).sum()))
    if count < 2:
        raise FitFailed(
            'select="cv" needs 2 samples of each class; give c1 and c2, or select="problem"'
        )
    fold = np.empty(len(y), dtype=int)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        fold[rows] = np.arange(len(rows)) % count
    return fold


def cross_validate(
    problem: Problem, options: Options, rng: np.random.Generator, report: Reporter
) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of c that were tried, the largest first, and their mean log scores."""
    y = problem.y.astype(np.float64)
    tried = np.sort(np.asarray(options.grid or _GRID * len(y), dtype=float))[::-1]
    fold, seed = folds_of(problem.y, options.folds, rng), rng.integers(2**63)
    few = replace(options, starts=min(2, options.starts))
    scores, total = np.zeros(len(tried)), len(tried) * (fold.max() + 1)
    with report.stage("cross-validation", total=total) as update:
        for k in range(fold.max() + 1):
            train, test = fold != k, fold == k
            part = problem.take(train)
            left_out = part.standardized(problem.data.X[test])
            for i, c in enumerate(tried):
                objective = Objective(part.X, y[train], part.Z, float(c))
                run, _ = solve(objective, few, np.random.default_rng(seed))  # same starts for all
                a, v, b = objective.split(run.p)
                eta = left_out @ (v * (a @ part.Z)) + b
                scores[i] += logistic_logp(y[test], eta).sum() / len(y)
                update(k * len(tried) + i + 1)
    return tried, scores


@dataclass
class Choice:
    """The penalties that the final fit uses, and the scores of others."""

    c1: float
    c2: float
    tried: np.ndarray | None = None
    scores: np.ndarray | None = None

    @property
    def c(self) -> float:
        """(c1 c2)^1/2, all that matters to eta."""
        return float(np.sqrt(self.c1 * self.c2))


def choose(
    problem: Problem, options: Options, rng: np.random.Generator, report: Reporter
) -> Choice:
    """Return the penalties: as given, by cross-validation, or those of the problem."""
    c1, c2 = prior_rates(problem)
    if options.select == "problem" or (options.c1 is not None and options.c2 is not None):
        return Choice(float(options.c1 or c1), float(options.c2 or c2))
    tried, scores = cross_validate(problem, options, rng, report)
    best, share = float(tried[scores.argmax()]), np.sqrt(c1 / c2)
    c1, c2 = best * share, best / share
    if options.c1 is not None:
        c2 = best**2 / options.c1
    elif options.c2 is not None:
        c1 = best**2 / options.c2
    return Choice(float(options.c1 or c1), float(options.c2 or c2), tried, scores)


# --- the fit --------------------------------------------------------------------------------------


def _verdict(run: Run, options: Options, worst: float, chosen: bool) -> tuple[Status, str | Reason]:
    """Return the status and its reason."""
    if run.reason:
        return "not_converged", run.reason
    if not run.p[:-1].any():
        advice = 'use smaller c1 or c2, or select="cv"'
        if chosen:
            advice = "cross-validation chose this c; give smaller c1 or c2 to get another fit"
        return "not_converged", (
            f"no start of {options.starts} ended below the origin (every weight 0, a constant "
            f"decision), which is a local minimum whatever the data; {advice}"
        )
    if worst > FAR:
        return "not_converged", (
            f"F no longer falls, but a KKT residual is {worst:.1e} of the penalty (kkt_residual); "
            "standardise X, or use larger c1 and c2"
        )
    return "finished", ""


def _details(objective: Objective, run: Run, choice: Choice) -> tuple[dict[str, np.ndarray], Dims]:
    """Return the point, its KKT residuals, the trace and what was tried, with their dims."""
    a, v, b = objective.split(run.p)
    kkt_a, kkt_v, kkt_b = objective.residuals(run.p)
    details = {
        "bias": b,
        "sample_weight": a * (choice.c / choice.c1),
        "feature_weight": v * (choice.c / choice.c2),
        "selected_feature": v > 0.0,
        "selected_sample": a != 0.0,
        "kkt_feature": kkt_v,
        "kkt_sample": kkt_a,
        "kkt_bias": kkt_b,
        "objective": run.objective,
        "c1": choice.c1,
        "c2": choice.c2,
    }
    if choice.tried is not None:
        details |= {"cv_c": choice.tried, "cv_score": choice.scores}
    return {name: np.asarray(x) for name, x in details.items()}, dict(DIMS)


def fit(target: Target, options: Options, job: Job) -> Result:
    """Choose c, descend from several starts and return the lowest point with its KKT residuals.

    `draws` and `chains` are ignored: chain = draw = 1. `selected_feature` and `selected_sample`
    mark the weights that are not 0.
    """
    problem = target.zoo_problem
    for_choice, for_starts = map(np.random.default_rng, np.random.SeedSequence(job.seed).spawn(2))
    choice = choose(problem, options, for_choice, job.report)
    objective = Objective(problem.X, problem.y.astype(np.float64), problem.Z, choice.c)
    run, ends = solve(objective, options, for_starts, job.report)
    details, dims = _details(objective, run, choice)
    worst = float(max(details[f"kkt_{of}"].max() for of in ("sample", "feature", "bias")))
    status, reason = _verdict(run, options, worst, choice.tried is not None)
    details |= {"objective_start": ends, "converged": np.asarray(status == "finished")}
    point = {name: details[name] for name in ("bias", "sample_weight", "feature_weight")}
    posterior = point | {"eta": problem.decision(point)}
    assert isinstance(problem.hypers, rfvm.Hypers)  # as `supports` says
    if problem.hypers.latent_noise != "none":
        posterior["tau"] = np.asarray(NO_NOISE)
    return Result(
        posterior=job.one_draw(posterior),
        sample_stats={"lp": np.full((1, 1), np.nan)},
        details=details,
        dims=dims,
        status=status,
        reason=reason,
        attrs={
            "iterations": len(run.objective) - 1,
            "objective": run.objective[-1],
            "objective_origin": objective(objective.origin())[0],
            "kkt_residual": worst,
            "features": int(details["selected_feature"].sum()),
            "samples": int(details["selected_sample"].sum()),
            "c1": choice.c1,
            "c2": choice.c2,
        },
    )


def predict_paper(problem: Problem, state: Mapping[str, Any], X_new: np.ndarray) -> np.ndarray:
    """Return P(y = 1), RFVM (31), at standardised inputs: sigmoid(eta)."""
    names = ("bias", "sample_weight", "feature_weight")
    return special.expit(problem.decision({n: np.asarray(state[n]) for n in names}, X_new))
