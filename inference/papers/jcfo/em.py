"""JCFO's own algorithm: expectation-maximisation for the mode of (beta, theta).

Krishnapuram, Carin, Hartemink (2004), J. Comput. Biol. 11, sections 3.1, 3.2 and 4. Equation
numbers are the paper's; the two steps are in `em_steps.py`. The same engine serves `sparse_probit`,
whose basis functions are [1, x]: it has no theta, and its M-step is (29) alone.

What it computes
----------------
One point: a maximum of the log posterior of the paper's variables with tau, rho and z integrated
out,

    log p(beta, theta | y) = sum_i log Phi(s_i eta_i) - gamma1^1/2 |beta|_1 - gamma2^1/2 |theta|_1
                             + constant,    theta >= 0,    s = 2y - 1.

It needs `scale="fixed"`. Under a learned scale g there is no maximum to find: with theta = g t, the
density grows like g^-D as g falls to 0.

E-step: the expected latent values (23) and inverse variances (24), (25). M-step: beta and theta
jointly, with beta profiled out and theta by L-BFGS-B with the gradient (28). No step decreases the
log posterior. The point is the only draw of the fit; nothing is averaged and no spread is given.

When it is exact, and its bias
------------------------------
For `sparse_probit` the problem is convex and the result is the mode. For `jcfo` it is a local
maximum at best, and there are many:

- theta = 0, beta_1..B = 0 is a local maximum whatever the data, as each slope is a product with the
  other weight. So the paper's claim of a single maximum does not hold. (With polynomial and rbf
  kernels K = 1 there, and the intercept may be spread over beta at no cost.) On colon and golub, at
  the default gammas, every start ends there: choose gammas (`select`), or filter first. A run that
  ends without any feature has status "not_converged" and gives this reason.
- A weight at exactly 0 never returns, because its expected inverse variance is infinite. The M-step
  can put a theta there although the log posterior still increases with it. `kkt_violations` counts
  such coordinates.

The intercept has the prior of every beta (11), so gamma1 plays two roles. For the slopes of a
linear kernel only the product of gamma1 and gamma2 matters: at the best scale of (theta / c,
c beta) the two penalties together are 2 (gamma1 gamma2)^1/4 (|beta_1..B|_1 |theta|_1)^1/2. For the
intercept gamma1 alone gives the rate, gamma1^1/2 |beta_0|. If no slope is left, beta_0 itself is 0
whenever gamma1 >= (2 / pi) (N_1 - N_0)^2, the squared slope of the log-likelihood at 0 (colon,
22 against 40: 206), and the base rate of the classes is lost. A grid over gamma1 at a fixed
product, or `printed_rates`, thus changes only the intercept. With the 1 in the polynomial kernel,
sum_j beta_j is a second intercept with the same penalty.

A mode is not a typical draw: most weights are exactly 0. P(y = 1) = Phi(eta) at the mode ignores
all uncertainty, so probabilities are too close to 0 and 1 on separable data.

Faithful and corrected
----------------------
The algorithm as printed is `printed_rates=True, starts=1`; `prefilter=50, select="holdout"` is its
protocol. The defaults are corrected, and use more starting points than the paper.

printed_rates = False    inverse variances with the roots of gamma1, gamma2, as (11), (12) imply.
              = True     as printed in (24), (25), (29), without the roots. This is the same
                         algorithm at gamma^2, which does not find a maximum of the paper's own
                         posterior (12), (15).
starts                   the first is the paper's seed, theta = 1 and a ridge regression (with H'y,
                         erratum: H y in print). The others are random, at the scale where both
                         penalties are equal: theta is the square of a standard exponential draw, in
                         every second start times the squared covariance of the feature with y. The
                         start that ends highest is kept.
prune                    a weight whose penalty (rate times absolute value, a term of the log
                         posterior) is below this is set to 0 if that increases the log posterior;
                         at convergence the limit is 0.01. The paper waits for underflow, which
                         takes thousands of iterations.
prefilter = None         all features. A number: sparse probit on [1, x] first, its penalty halved
                         until that many features remain, then JCFO on them (the paper: about 50).
                         gamma1 and gamma2 that were filled from D are filled again from the number
                         of features kept; given values stay.
select = "problem"       the problem's gamma1, gamma2. "holdout": the gamma2 with the highest log
                         score on 10 % of the rows (two starts each), then a fit to all rows. It
                         tries 1, 0.1, ..., 0.0001 times the default for min(N, D) features, of
                         gamma1 for sparse_probit. (Under the linear kernel, eta depends only on the
                         product of both gammas.) Features are filtered and standardised again
                         without the held-out rows. "holdout_open": the grid goes on by factors of
                         10, at most 12 at an end, until the best is not at its end. Then gamma1
                         goes on likewise, with gamma1 gamma2 fixed.

Cost
----
O(N B D) for an evaluation of the kernel and of its slope, and O(min(N, B)^3) for beta. Memory is
O((N + B) D), never D x D or N x B x D. Features at 0 are skipped, so all but the first iterations
are cheap. `lab/algorithms/ALGORITHMS.md` measures it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import special

from ardvark.common.declared import option
from ardvark.common.progress import Reporter
from ardvark.common.validate import InputError
from ardvark.models import Problem, jcfo, sparse_probit
from ardvark.models.parts.probit import probit_logp

from ...target.backend import About, Dims, Job, Kind, Result, Status, only_for
from ...target.reasons import Reason
from ...target.target import Target
from ..optimality import kkt
from .em_steps import (
    VIOLATION,
    Basis,
    EngineOptions,
    Run,
    State,
    iterate,
    log_posterior,
    ridge_seed,
    score,
    solve,
)
from .holdout import Gammas, go_on, holdout_rows

NAME = "jcfo_em"
KIND: Kind = "point"
ABOUT = About(
    approximates=(
        "The posterior of a fixed scale by a single point: a maximum over (beta, theta), with tau, "
        "rho and z integrated out."
    ),
    exact=(
        "For sparse_probit the point is the mode, because the problem is convex. For jcfo it is a "
        "local maximum at best."
    ),
    cost=(
        "O(N B D) per evaluation of the kernel and O(min(N, B)^3) for beta. Features at 0 cost "
        "nothing."
    ),
)
MODELS = ("jcfo", "sparse_probit")
Priors = jcfo.Hypers | sparse_probit.Hypers
DIMS: Dims = {
    "beta": ("feature",),
    "kkt_feature": ("feature",),
    "kkt_sample": ("basis",),
    "filtered": ("feature",),
    "objective": ("iteration",),
    "features_kept": ("iteration",),
    "samples_kept": ("iteration",),
    "objective_start": ("start",),
    "holdout_gamma": ("candidate", "prior"),
    "holdout_score": ("candidate",),
}
FACTORS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
FAR = 0.1  # no converged fit has a KKT residual above this
LOOSE = 1e-4  # tolerance of the fits that only filter or choose gammas


@dataclass(frozen=True, kw_only=True)
class Options(EngineOptions):
    """Options of `jcfo_em`; the module docstring lists departures from the paper."""

    printed_rates: bool = option(False, "inverse variances as printed, without the roots of gamma")
    prefilter: int | None = option(
        None, "first reduce to about this many features by sparse probit; None: all", above=0
    )
    select: Literal["problem", "holdout", "holdout_open"] = option(
        "problem", "where gamma1 and gamma2 come from; holdout_open: the grid goes on at its ends"
    )


supports = only_for(MODELS, "the algorithm of the paper on 'jcfo'", fixed_scale=True)


# --- the paper's protocol: filter, and gammas by hold-out -----------------------------------------


def basis_of(problem: Problem, X: np.ndarray, Z: np.ndarray) -> Basis:
    """Return the basis functions of the problem's model at X, with centres Z if it has any."""
    if problem.kernel is None:
        return Basis(X)
    return Basis(X, Z, problem.kernel)


def prefilter(X: np.ndarray, y: np.ndarray, count: int, options: Options) -> np.ndarray:
    """Return the indices of about `count` features with weight in sparse probit on [1, x].

    The rate of the prior starts where all weights are 0 and is halved until `count` are not 0; the
    largest are kept. The result may be shorter (at most about N weights can be nonzero).
    """
    D = X.shape[1]
    constant = np.full(len(y), special.ndtri(y.mean()))
    rate = float(np.abs(score(y, constant) @ X).max())
    if count >= D or rate == 0.0:
        return np.arange(D)
    loose = replace(options, tolerance=max(LOOSE, options.tolerance))
    basis, none = Basis(X), np.zeros(0)
    beta = ridge_seed(basis.evaluate(none)[0], y)
    size = np.zeros(D)
    for _ in range(12):
        rate *= 0.5
        run = iterate(State(basis, y, beta, none, (rate, 1.0)), loose)
        found = np.abs(run.state.beta[1:])
        if np.count_nonzero(found) >= np.count_nonzero(size):
            size = found
        if np.count_nonzero(size) >= count:
            break
    kept = min(count, int(np.count_nonzero(size)))
    return np.sort(np.argsort(-size, kind="stable")[:kept]) if kept else np.arange(D)


def rates_of(gammas: Gammas, options: Options) -> tuple[float, float]:
    """Return the rates of the two priors; `printed_rates` omits the roots."""
    power = 1.0 if options.printed_rates else 0.5
    return gammas[0] ** power, gammas[1] ** power


def filled_gammas(problem: Problem, D: int) -> Gammas:
    """Return the gammas as filled for D features."""
    asked = problem.asked
    assert isinstance(asked, Priors)  # as `supports` says
    none: dict[str, Any] = dict.fromkeys(asked.gammas)
    return _gammas(replace(asked, **none).fill(len(problem.X), len(problem.Z), D))


def own_gammas(problem: Problem, D: int) -> Gammas:
    """Return the problem's gammas; those that were filled are filled again for D features.

    A given value that equals the filled one is treated as filled.
    """
    own, D_all = _gammas(_priors(problem)), problem.X.shape[1]
    before, after = filled_gammas(problem, D_all), filled_gammas(problem, D)
    return (
        after[0] if own[0] == before[0] else own[0],
        after[1] if own[1] == before[1] else own[1],
    )


def _priors(problem: Problem) -> Priors:
    assert isinstance(problem.hypers, Priors)  # as `supports` says
    return problem.hypers


def _gammas(priors: Priors) -> Gammas:
    first, second = (*priors.gammas.values(), 1.0)[:2]  # without theta there is one
    return float(first), float(second)


def grid(problem: Problem, D: int) -> list[Gammas]:
    """Return the gammas that the hold-out tries, the strongest penalty first."""
    own, few = own_gammas(problem, D), filled_gammas(problem, min(len(problem.X), D))
    if not problem.spec.has_basis:
        return [(few[0] * factor, 1.0) for factor in FACTORS]
    return [(own[0], few[1] * factor) for factor in FACTORS]


@dataclass
class Tuned:
    """What the final fit uses: the filtered features, the gammas, and the scores of others."""

    features: np.ndarray
    gammas: Gammas
    tried: list[Gammas]
    scores: np.ndarray


def tune(
    problem: Problem, y: np.ndarray, options: Options, rng: np.random.Generator, report: Reporter
) -> Tuned:
    """Filter the features and choose the gammas."""

    def filtered(X: np.ndarray, y: np.ndarray) -> np.ndarray:
        if options.prefilter is None:
            return np.arange(X.shape[1])
        with report.stage("filter"):
            return prefilter(X, y, options.prefilter, options)

    features = filtered(problem.X, y)
    if options.select == "problem":
        return Tuned(features, own_gammas(problem, len(features)), [], np.zeros(0))

    held = holdout_rows(y, rng)
    fold = problem.take(~held)
    left_out = fold.standardized(problem.data.X[held])
    columns = filtered(fold.X, y[~held])
    training = basis_of(problem, fold.X[:, columns], fold.Z[:, columns])
    test = basis_of(problem, left_out[:, columns], fold.Z[:, columns])
    loose = replace(options, tolerance=max(LOOSE, options.tolerance), starts=min(2, options.starts))
    starts = rng.integers(2**63)

    def score_of(gammas: Gammas) -> float:
        same = np.random.default_rng(starts)  # the same starts for all gammas
        run, _ = solve(training, y[~held], rates_of(gammas, options), loose, same)
        eta = test.evaluate(run.state.theta)[0] @ run.state.beta
        return float(probit_logp(y[held], eta).mean())

    tried, scores = grid(problem, len(columns)), list[float]()
    with report.stage("hold-out", total=len(tried)) as update:
        for gammas in tried:
            scores.append(score_of(gammas))
            update(len(scores))
        if options.select == "holdout_open":
            basis = problem.spec.has_basis
            go_on(tried, scores, score_of, (0.0, 1.0) if basis else (1.0, 0.0))
            if basis:
                best = int(np.argmax(scores))
                line, along = [tried[best]], [scores[best]]
                go_on(line, along, score_of, (1.0, -1.0))
                tried, scores = tried + line, scores + along
    return Tuned(features, tried[int(np.argmax(scores))], tried, np.array(scores))


# --- the fit --------------------------------------------------------------------------------------


@dataclass
class Optimality:
    """How far the point is from a maximum of the stated posterior, (12), (15).

    `beta` (1 + B,) and `theta` (D,) are KKT residuals. `worst` is the largest one of a nonzero
    weight, `at_zero` are those of weights at 0 that were in use, and `log_posterior` is the value
    at the point.
    """

    beta: np.ndarray
    theta: np.ndarray
    worst: float
    at_zero: np.ndarray
    log_posterior: float

    @property
    def violations(self) -> int:
        """Return how many weights at 0 would increase the log posterior."""
        return int(np.sum(self.at_zero > VIOLATION))


def optimality(problem: Problem, tuned: Tuned, run: Run, theta: np.ndarray) -> Optimality:
    """Check the point against the stated posterior, also where `printed_rates` found it."""
    y, beta = problem.y.astype(np.float64), run.state.beta
    rates = tuned.gammas[0] ** 0.5, tuned.gammas[1] ** 0.5
    whole = basis_of(problem, problem.X, problem.Z)
    slope_beta, slope_theta = State(whole, y, beta, theta, rates).full_slopes()
    of_beta = kkt(slope_beta, beta, rates[0], signed=True)
    of_theta = kkt(slope_theta, theta, rates[1], signed=False)
    used = tuned.features if len(theta) else slice(0)
    weight, residual = np.r_[beta, theta[used]], np.r_[of_beta, of_theta[used]]
    return Optimality(
        of_beta,
        of_theta,
        float(residual[weight != 0.0].max(initial=0.0)),
        residual[weight == 0.0],
        log_posterior(y, run.state.eta, beta, theta, rates),
    )


def _verdict(
    problem: Problem, run: Run, options: Options, found: Optimality
) -> tuple[Status, str | Reason]:
    """Return the status and its reason."""
    if run.reason:
        return "not_converged", run.reason
    if found.worst > FAR and not options.printed_rates:
        return "not_converged", (
            f"the log posterior no longer rises, but the slope at a nonzero weight differs from "
            f"the rate of its prior by {found.worst:.0%} (kkt_nonzero); lower the tolerance"
        )
    if not problem.spec.has_basis:
        empty = not run.state.beta[1:].any()
        return "finished", "every weight is 0: gamma1 is too large for these data" if empty else ""
    if not run.state.theta.any():
        return "not_converged", (
            f"the best of {options.starts} start(s) ended at the origin (every feature weight 0, a "
            "constant decision), which is a local maximum whatever the data; use smaller gamma1 or "
            'gamma2, select="holdout", a prefilter or more starts'
        )
    if found.violations:
        return "finished", (
            f"{found.violations} weight(s) stayed at exactly 0, although leaving 0 would raise the "
            "log posterior (kkt_violations)"
        )
    return "finished", ""


def _details(
    tuned: Tuned, run: Run, theta: np.ndarray, found: Optimality
) -> tuple[dict[str, np.ndarray], Dims]:
    """Return the point, its residuals, the traces and what was tried, with their dims."""
    sparse, beta = not len(theta), run.state.beta
    weight = np.abs(beta[1:]) if sparse else theta
    details = {
        **_point(beta, theta),
        "selected_feature": weight > 0.0,
        "kkt_feature": found.beta[1:] if sparse else found.theta,
        "kkt_bias": found.beta[0],
        "filtered": np.isin(np.arange(len(weight)), tuned.features, invert=True),
        "objective": run.objective,
        "features_kept": run.samples if sparse else run.features,
        "gamma1": tuned.gammas[0],
    }
    if not sparse:
        details |= {
            "selected_sample": beta[1:] != 0.0,
            "kkt_sample": found.beta[1:],
            "samples_kept": run.samples,
            "gamma2": tuned.gammas[1],
        }
    path, path_dims = run.path.details()
    if not sparse and path:
        every = np.zeros((len(path["path_bias"]), len(theta)))
        every[:, tuned.features] = path["path_feature_weight"]
        details |= path | {"path_feature_weight": every}
    if tuned.tried:
        details |= {"holdout_gamma": tuned.tried, "holdout_score": tuned.scores}
    return {name: np.asarray(x) for name, x in details.items()}, DIMS | path_dims


def _point(beta: np.ndarray, theta: np.ndarray) -> dict[str, np.ndarray]:
    """Return the point under the model's names; without theta it is sparse probit's."""
    if not len(theta):
        return {"bias": beta[0], "beta": beta[1:]}
    return {"bias": beta[0], "sample_weight": beta[1:], "feature_weight": theta}


def fit(target: Target, options: Options, job: Job) -> Result:
    """Climb from several starts and return the highest point, with its optimality conditions.

    `draws` and `chains` are ignored: chain = draw = 1. `lp` is NaN if a feature weight is 0,
    because log theta is then undefined. `log_posterior` in attrs is the density of (beta, theta)
    with tau, rho and z integrated out, at the gammas used, whatever the form of the problem.
    """
    problem = target.zoo_problem
    sparse, priors = not problem.spec.has_basis, _priors(problem)
    if sparse and options.prefilter is not None:
        raise InputError("prefilter is for 'jcfo'; 'sparse_probit' is that filter itself.")
    y = problem.y.astype(np.float64)
    for_choice, for_starts = map(np.random.default_rng, np.random.SeedSequence(job.seed).spawn(2))
    tuned = tune(problem, y, options, for_choice, job.report)
    basis = basis_of(problem, problem.X, problem.Z)
    if not sparse:
        basis = basis.restrict(np.arange(len(problem.Z)), tuned.features)
    rates = rates_of(tuned.gammas, options)
    run, finals = solve(basis, y, rates, options, for_starts, job.report)
    theta = np.zeros(0 if sparse else problem.X.shape[1])
    if not sparse:
        theta[tuned.features] = run.state.theta
    found = optimality(problem, tuned, run, theta)
    status, reason = _verdict(problem, run, options, found)
    details, dims = _details(tuned, run, theta, found)
    details |= {"objective_start": finals, "converged": np.asarray(not run.reason)}

    point, lp = _point(run.state.beta, theta), np.nan
    if priors.parametrization == "marginal" and (sparse or theta.all()):
        lp = float(problem.log_density(point))
    weight = {"feature_weight": np.abs(point["beta"]) if sparse else theta}
    gammas = dict(zip(priors.gammas, tuned.gammas, strict=False))
    return Result(
        posterior=job.one_draw(point | weight | {"eta": problem.decision(point)}),
        sample_stats={"lp": np.full((1, 1), lp)},
        details=details,
        dims=dims,
        status=status,
        reason=reason,
        attrs={
            "iterations": len(run.objective) - 1,
            "log_posterior": found.log_posterior,
            "kkt_nonzero": found.worst,
            "kkt_zero": float(found.at_zero.max(initial=0.0)),
            "kkt_violations": found.violations,
            "features": int(np.sum(details["selected_feature"])),
            "samples": 0 if sparse else int(np.sum(details["selected_sample"])),
            **gammas,
        },
    )


def predict_paper(problem: Problem, state: Mapping[str, Any], X_new: np.ndarray) -> np.ndarray:
    """Return P(y = 1) at standardised inputs, (3): Phi(eta) at the mode."""
    names = [n for n in ("bias", "beta", "sample_weight", "feature_weight") if n in state]
    return special.ndtr(problem.decision({n: np.asarray(state[n]) for n in names}, X_new))
