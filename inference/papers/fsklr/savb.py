"""FS-SKLR's own algorithm, SaVB: Gibbs sweeps over the masks, coefficients by variational Bayes.

Kojima, Tanaka (2017), "Doubly Sparse Bayesian Kernel Logistic Regression", APSIPA, section IV,
algorithms 1 and 2. Equation numbers are the paper's; algorithm 2 is in `variational.py`.

What it computes
----------------
One state (zeta, z, alpha): the one with the highest score among those that a random walk visited::

    zeta = z = 1, alpha from algorithm 2
    for t = 1 .. feature_sweeps:                    with every z_j = 1
        for k = 1 .. D:  zeta_k ~ p(zeta_k | zeta_-k, y, alpha)          (28)
        alpha ~ q(alpha), refitted at this zeta                          (31)-(35)
        score  ln p(y | zeta, alpha) + ln p(zeta)                        (16)
    take zeta and alpha of the highest score
    for t = 1 .. sample_sweeps:                     with this zeta
        for j = 1 .. B:  z_j ~ p(z_j | z_-j, y, alpha)                   (29)
        alpha ~ q(alpha), refitted at this z
        score  ln p(y | z, alpha) + ln p(z)                              (17)
    take z and alpha of the highest score

alpha does not change during a sweep. Algorithm 2 is run on the columns K[:, z] of the samples in
use, by (25) and (27). For a sample that is off, q of alpha_j is then its prior. alpha_j is drawn
from it, and that draw decides its bit in the next sweep. The printed (30) to (35) have the whole
kernel matrix in both loops: `gram="whole"`, below.

`posterior` holds the selected state as its one draw. For samples that are on, alpha is the draw
from q (which algorithm 1 returns); for the others it is 0. `alpha_mean` in the group `fit` is the
mean m of q. That group also holds every visited state (`visited_zeta`, `visited_z`) with its
`stage` and its score, `objective`: ln p(y | zeta, z, alpha) + ln p(zeta) + ln p(z). This equals
(16) or (17) up to a constant of the stage. Scores are not probabilities, and the visited states are
not a sample from the posterior.

What it is not
--------------
It is not an approximation of the posterior, but a stochastic search for a mode, and a biased one:

- The features are chosen for a model in which every sample is in use, and the feature mask is not
  revisited after the sample mask.
- The score compares states at different alpha and omits p(alpha), so it rewards a lucky draw.
- Under the independent prior a bit that is on costs about ln(n / a), so at D >> a the highest score
  belongs to a mask that is smaller than a typical one.
- P(y = 1) = sigmoid(eta) of one state ignores all uncertainty.

Faithful and corrected
----------------------
The closest to the printed algorithm that can run is `prior="printed", gram="whole"`: the prior of
the count, (21), (22), instead of the problem's, and (30) to (35) on the whole kernel matrix, with
the normalised comparison. That prior asks for sparse masks only where the problem's `a_z` and
`a_zeta` are below 1, because with S others on a bit's odds are (S + a) / (S + 1). The filled values
are far above. With `comparison="printed"` too, the search ends at once.

comparison = "normalised"  a bit is on if its conditional probability p(1) / (p(0) + p(1)) exceeds a
                         uniform number. This is Gibbs sampling, which the paper says it uses.
           = "printed"   p(1) itself, prior times the likelihood of all labels, as algorithm 1 says
                         (erratum: (28), (29) are known only up to a factor). With more than a few
                         labels this is close to 0 unless every label is fitted almost surely. The
                         first sweep then turns every bit off, and the run is "not_converged".
prior = "problem"        mask_prior of the problem, in the odds and in the score.
      = "printed"        (21), (22), which the paper's algorithm uses, whatever the problem's prior
                         (erratum: the prior of a count is used as the score of a mask).
gram = "masked"          algorithm 2 has the columns of the samples in use.
     = "whole"           it has all columns, as (30) to (35) are printed, so alpha_j of a sample
                         that is off is fitted to the labels as if it were in use, and that value
                         decides its bit. In the second loop q(alpha) is then the same after every
                         sweep, but for its start and the draw. Decisions and scores keep the mask.
alpha = "draw"           algorithm 2 ends with a draw from q.
      = "mean"           m instead, in sweeps, score and result. With `gram="masked"` a sample that
                         is off then has alpha_j = 0, and its bit follows the prior.

Three misprints are always corrected, because the printed S is not a covariance: (33) gives S for
S^-1, (34) has a minus, and (35) has one rho for all observations. The paper does not give the
initial masks (here all on) or the numbers of sweeps and iterations (algorithm 2 also stops when its
bound no longer changes). Nor does it define the sparsity of Table II. Here it is the share of bits
that are 0, `sample_sparsity` and `feature_sparsity` in attrs.

Ablations: `sklr` has the second loop only. `fs_skr` has squared errors on the signs of the labels.
Its original source was not available to us. Ours is the same algorithm, with mean field
q(alpha) q(tau) for q(alpha), tau drawn with alpha, and the normal density as the likelihood.

Cost
----
A feature sweep takes O(N B) per bit with the rbf kernel and O(N) with the linear one. (Masked
squared distances are stored, because a kernel that has underflowed cannot be updated.) A sample
sweep takes O(N) per bit. Algorithm 2 then takes O(N A^2) per iteration for A samples in use, or
O(N S^2) with the linear kernel, whose K has rank S, for S < A features in use. With most samples
in use an iteration of the logistic models is computed in eta, in O(N^3), about twice as fast.
Memory is O((N + B) D + N B), without N x B x D or D x D arrays. `lab/algorithms/ALGORITHMS.md`
measures it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special
from scipy.spatial.distance import cdist

from ardvark.common.declared import Settings, option
from ardvark.common.progress import Reporter
from ardvark.models import Problem, fs_skr, fsklr
from ardvark.models.parts.masks import MaskPrior, log_mask_prior, mask_log_odds

from ...target.backend import About, Dims, FitFailed, Job, Kind, Result, Status, only_for
from ...target.reasons import Reason
from ...target.target import Target
from ..path import PATH, Path
from .variational import (
    Coefficients,
    Labels,
    Rule,
    additive_sweep,
    check_kernel,
    distance_sweep,
    gaussian,
    log_likelihood,
    logistic,
)

NAME = "fsklr_savb"
KIND: Kind = "search"
ABOUT = About(
    approximates=(
        "Nothing: it is a stochastic search for a mode of the masks, which scores each state that "
        "it visits."
    ),
    exact="Never: the search is biased, and the visited states are not a posterior sample.",
    cost=(
        "O(N B D) per feature sweep and O(N B) per sample sweep; then O(N A^2) per iteration for A "
        "samples in use."
    ),
)
VB_TOLERANCE = 1e-3  # algorithm 2 stops if an iteration raises its bound by less than this
COVARIANCE = 100  # q's covariance is stored for up to this many samples in use
DIMS: Dims = {
    "visited_zeta": ("iteration", "feature"),
    "visited_z": ("iteration", "basis"),
    "stage": ("iteration",),
    "objective": ("iteration",),
    "visited_log_likelihood": ("iteration",),
    "elbo": ("iteration",),
    "features_kept": ("iteration",),
    "samples_kept": ("iteration",),
    "vb_iterations": ("iteration",),
    "alpha_mean": ("basis",),
    "active_sample": ("active",),
    "alpha_covariance": ("active", "active_other"),
}


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `fsklr_savb`; the module docstring lists departures from the paper."""

    comparison: Literal["normalised", "printed"] = option(
        "normalised", "what a uniform number is compared with to draw a bit"
    )
    prior: Literal["problem", "printed"] = option("problem", "prior of the masks in the search")
    path: bool = option(False, f"{PATH} (every visited state, in the order of `objective`)")
    gram: Literal["masked", "whole"] = option(
        "masked", "columns in algorithm 2: of the samples in use, or all as printed"
    )
    alpha: Literal["draw", "mean"] = option("draw", "coefficients from q: a draw or the mean")
    feature_sweeps: int = option(100, "T_gsfs of algorithm 1", above=0)
    sample_sweeps: int = option(100, "T_gsms of algorithm 1", above=0)
    vb_iterations: int = option(300, "largest number of iterations of algorithm 2 (T_vb)", above=0)


supports = only_for(("fsklr", "sklr", "fs_skr"), "the algorithm of the paper on 'fsklr'")


# --- the search -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class State:
    """A visited state, the q it was drawn from, and its score. tau is 0 in the logistic models."""

    stage: int
    zeta: np.ndarray
    z: np.ndarray
    alpha: np.ndarray
    tau: float
    q: Coefficients
    log_likelihood: float
    score: float


class Search:
    """The current masks and coefficients, with the kernel at the current feature mask.

    `K` (N, B) is the kernel matrix, `square` (rbf) the masked squared distances behind it, `alpha`
    (B,) the coefficients, `q` their distribution, `eta` (N,) the decision values.
    """

    def __init__(self, problem: Problem, options: Options, rng: np.random.Generator) -> None:
        assert isinstance(problem.hypers, fsklr.SampleMaskHypers)  # as `supports` says
        self.h, self.options, self.rng = problem.hypers, options, rng
        self.kernel = self.h.kernel_of()
        self.a = {variable: a for variable, _, a in self.h.masks()}
        self.X, self.Z = problem.X, problem.Z
        # feature-major copies: a sweep reads one feature after the other
        self.Xt = np.ascontiguousarray(self.X.T)  # (D, N)
        self.Zt = self.Xt if self.Z is self.X else np.ascontiguousarray(self.Z.T)  # (D, B)
        self.y = problem.y.astype(np.float64)
        self.noise = self.h if isinstance(self.h, fs_skr.Hypers) else None  # of squared errors
        self.mask_prior: MaskPrior = "printed" if options.prior == "printed" else self.h.mask_prior
        self.labels = Labels(2.0 * self.y - 1.0, 0.0)
        self.zeta = np.ones(self.X.shape[1], dtype=np.bool_)
        self.z = np.ones(len(self.Z), dtype=np.bool_)
        self.set_kernel()
        self.refit()

    def set_kernel(self) -> None:
        """Compute K at the current feature mask from scratch."""
        X, Z = self.X[:, self.zeta], self.Z[:, self.zeta]
        if not self.kernel.by_distance:
            with np.errstate(over="ignore", invalid="ignore"):  # `check_kernel` refuses them
                self.K = self.h.delta * (X @ Z.T)
            check_kernel(self.K)
            return
        self.square = cdist(X, Z, "sqeuclidean")
        if not np.isfinite(self.square).all():
            raise FitFailed("squared distances overflow; standardise X")
        self.K = np.exp(-self.h.delta * self.square)

    def sweep_features(self) -> np.ndarray:
        """Draw every zeta_k from (28); K is updated, alpha is not."""
        rule, eta = self._rule(len(self.zeta), self.a["zeta"]), self.eta.copy()
        weight = self.z * self.alpha
        if not self.kernel.by_distance:
            slope = self.h.delta * (weight @ self.Z)
            values = additive_sweep(self.zeta, self.Xt, slope, eta, self.labels, rule)
        else:
            values = distance_sweep(
                self.zeta, self.Xt, self.Zt, self.square, self.h.delta, weight, eta,
                self.labels, rule,
            )  # fmt: skip
        self.set_kernel()
        return values

    def sweep_samples(self) -> np.ndarray:
        """Draw every z_j from (29); alpha stays."""
        rule, columns = self._rule(len(self.z), self.a["z"]), np.ascontiguousarray(self.K.T)
        return additive_sweep(self.z, columns, self.alpha, self.eta.copy(), self.labels, rule)

    def _rule(self, n: int, a: float) -> Rule:
        odds = mask_log_odds(np.arange(n), n, a, self.mask_prior)
        u = self.rng.random(n)
        printed = self.options.comparison == "printed"
        with np.errstate(divide="ignore"):  # u = 0 is below everything
            return Rule(odds, np.log(u) if printed else special.logit(u), printed)

    def refit(self) -> None:
        """Run algorithm 2 at the current masks: q, then alpha (and tau) and eta."""
        h, o, rng = self.h, self.options, self.rng
        used = np.ones_like(self.z) if o.gram == "whole" else self.z
        K, limits = self.K[:, used], (o.vb_iterations, VB_TOLERANCE)
        reduced, basis = K, None
        if self.kernel.is_primal and self.zeta.sum() < used.sum():  # the rank of K is below A
            basis = np.linalg.qr(self.Z[np.ix_(used, self.zeta)])[0]
            reduced = K @ basis
        if self.noise:
            noise = (self.noise.noise_shape, self.noise.noise_rate)
            self.q = gaussian(reduced, self.labels.sign, h.xi, noise, *limits)
        else:
            self.q = logistic(reduced, self.y, h.xi, rng.random(len(self.y)), *limits)
        self.q.basis = basis
        self.alpha, tau = np.zeros(len(self.z)), 0.0
        if o.alpha == "mean":
            self.alpha[used] = self.q.mean
            tau = self.q.tau_shape / self.q.tau_rate
        else:
            self.alpha[~used] = h.xi**-0.5 * rng.standard_normal(np.count_nonzero(~used))
            self.alpha[used] = self.q.draw(rng)
            if self.noise:
                tau = rng.gamma(self.q.tau_shape, 1.0 / self.q.tau_rate)
        if self.noise:
            self.labels = self.labels._replace(tau=tau)
        self.eta = self.K[:, self.z] @ self.alpha[self.z]

    def state(self, stage: int) -> State:
        """Return the current state with its score, FS-SKLR (16), FS-SKLR (17)."""
        likelihood = log_likelihood(self.eta, self.labels)
        score = likelihood + float(log_mask_prior(self.z, self.a["z"], self.mask_prior))
        if self.h.FEATURE_MASK:
            score += float(log_mask_prior(self.zeta, self.a["zeta"], self.mask_prior))
        return State(
            stage, self.zeta.copy(), self.z.copy(), self.alpha.copy(), self.labels.tau, self.q,
            likelihood, score,
        )  # fmt: skip

    def restore(self, state: State) -> None:
        """Go back to a visited state."""
        self.zeta, self.z, self.alpha = state.zeta.copy(), state.z.copy(), state.alpha.copy()
        self.labels, self.q = self.labels._replace(tau=state.tau), state.q
        self.set_kernel()
        self.eta = self.K @ (self.z * self.alpha)


class Run:
    """The record of a search: `rows` of every visited state, and `best`, which is row `selected`.

    The best state is the first one with the highest score in the last stage.
    """

    def __init__(self, start: State, keeps_path: bool) -> None:
        self.best, self.selected = start, 0
        self.path, self.keeps_path = Path(), keeps_path
        self.rows: dict[str, list[Any]] = {}
        self.add(start)

    def add(self, state: State) -> None:
        """Keep the state's row, and the state itself if it is the best so far."""
        row = {
            "visited_zeta": state.zeta,
            "visited_z": state.z,
            "stage": state.stage,
            "objective": state.score,
            "visited_log_likelihood": state.log_likelihood,
            "elbo": state.q.elbo[-1],
            "features_kept": int(state.zeta.sum()),
            "samples_kept": int(state.z.sum()),
            "vb_iterations": len(state.q.elbo),
        }
        for name, value in row.items():
            self.rows.setdefault(name, []).append(value)
        if self.keeps_path:
            weight = np.where(state.z, state.alpha, 0)
            self.path.keep(len(self.rows["stage"]) - 1, state.zeta.astype(np.float64), weight, 0.0)
        if state.stage > self.best.stage or state.score > self.best.score:
            self.best, self.selected = state, len(self.rows["stage"]) - 1


def iterate(search: Search, report: Reporter) -> Run:
    """Run algorithm 1; a model without a feature mask needs only its second loop."""
    options = search.options
    if search.h.FEATURE_MASK:
        run = Run(search.state(1), options.path)
        with report.stage("feature mask", total=options.feature_sweeps) as update:
            for t in range(options.feature_sweeps):
                search.sweep_features()
                search.refit()
                run.add(search.state(1))
                update(t + 1)
        search.restore(run.best)
        run.add(search.state(2))
    else:
        run = Run(search.state(2), options.path)
    with report.stage("sample mask", total=options.sample_sweeps) as update:
        for t in range(options.sample_sweeps):
            search.sweep_samples()
            search.refit()
            run.add(search.state(2))
            update(t + 1)
    return run


# --- the fit --------------------------------------------------------------------------------------


def _verdict(run: Run, options: Options) -> tuple[Status, str | Reason]:
    """Return the status and its reason."""
    rows = {name: np.asarray(x) for name, x in run.rows.items()}
    for stage, kept in ((1, "features_kept"), (2, "samples_kept")):
        after_start = rows[kept][rows["stage"] == stage][1:]
        if options.comparison == "printed" and len(after_start) and not after_start.any():
            return "not_converged", (
                f"every sweep turned every bit of the {kept.split('s_')[0]} mask off: "
                'comparison="printed" compares an unnormalised probability with a uniform number; '
                'use comparison="normalised"'
            )
    best = run.best
    if not best.q.converged:
        text = (
            f"the coefficients of the selected state were still moving after {len(best.q.elbo)} "
            "iterations of algorithm 2"
        )
        return "not_converged", Reason("unfinished", {"text": text, "options": "vb_iterations"})
    for what, mask in (("feature", best.zeta), ("sample", best.z)):
        if not mask.any():
            return "finished", f"the selected state has no {what}, so its decision is constant"
    return "finished", ""


def _details(problem: Problem, run: Run) -> tuple[dict[str, np.ndarray], Dims]:
    """Return every visited state and the selected one with its q, with their dims."""
    best, active = run.best, np.flatnonzero(run.best.z)
    whole = len(best.q.mean) > len(active)
    used = np.arange(len(best.z)) if whole else active
    mean = np.zeros(len(best.z))
    mean[used] = best.q.mean
    details = {
        **run.rows,
        "feature_weight": best.zeta.astype(np.float64),
        "sample_weight": np.where(best.z, best.alpha, 0),
        "alpha_mean": mean,
        "selected_feature": best.zeta,
        "selected_sample": best.z,
        "selected_iteration": run.selected,
        "converged": best.q.converged,
    }
    if 0 < len(active) <= COVARIANCE:
        covariance = best.q.covariance()
        if whole:
            covariance = covariance[np.ix_(active, active)]
        details |= {"active_sample": active, "alpha_covariance": covariance}
    if problem.spec.link == "identity":
        details |= {"tau_shape": best.q.tau_shape, "tau_rate": best.q.tau_rate}
    path, path_dims = run.path.details()
    return {name: np.asarray(x) for name, x in details.items()} | path, DIMS | path_dims


def _point(problem: Problem, state: State) -> dict[str, Any]:
    """Return the variables of the problem's form at a state."""
    point: dict[str, Any] = {
        "z": state.z.astype(np.int64),
        "alpha": np.where(state.z, state.alpha, 0),
    }
    if "feature_weight" in problem.spec.masked:
        point["zeta"] = state.zeta.astype(np.int64)
    if problem.spec.link == "identity":
        point["tau"] = state.tau
    assert isinstance(problem.hypers, fsklr.SampleMaskHypers)  # as `supports` says
    return point | _probabilities(state, problem.hypers)


def _probabilities(state: State, h: fsklr.SampleMaskHypers) -> dict[str, np.ndarray]:
    """Return E[probability | mask] in the explicit form, {} in the integrated one."""
    out, bits = {}, {"z": state.z, "zeta": state.zeta}
    for variable, what, a in h.masks() if h.mask_probability == "explicit" else []:
        mask = bits[variable]
        n = len(mask)
        if h.mask_prior == "shared":  # Beta(S + a/n, n - S + 1)
            mean = (mask.sum() + a / n) / (n + 1.0 + a / n)
        else:  # Beta(a/n + bit, 2 - bit)
            mean = (mask + a / n) / (2.0 + a / n)
        out[f"{what}_mask_probability"] = np.asarray(mean)
    return out


def fit(target: Target, options: Options, job: Job) -> Result:
    """Run the search and return the selected state; `draws` and `chains` are ignored.

    The algorithm has no explicit mask probabilities. In the explicit form they are set to their
    mean given the selected mask. `lp` is the log posterior density at the returned point, with
    alpha_j = 0 for the samples that are off; it is not the score.
    """
    problem = target.zoo_problem
    run = iterate(Search(problem, options, np.random.default_rng(job.seed)), job.report)
    status, reason = _verdict(run, options)
    details, dims = _details(problem, run)
    point = _point(problem, run.best)
    weights = {name: details[name] for name in ("feature_weight", "sample_weight")}
    features, samples = int(run.best.zeta.sum()), int(run.best.z.sum())
    return Result(
        posterior=job.one_draw(point | weights | {"eta": problem.decision(point)}),
        sample_stats={"lp": np.full((1, 1), float(problem.log_density(point)))},
        details=details,
        dims=dims,
        status=status,
        reason=reason,
        attrs={
            "iterations": len(run.rows["stage"]),
            "score": run.best.score,
            "log_posterior": float(problem.log_joint(point)),
            "features": features,
            "samples": samples,
            "feature_sparsity": 1.0 - float(features) / len(run.best.zeta),
            "sample_sparsity": 1.0 - samples / len(run.best.z),
        },
    )


def predict_paper(problem: Problem, state: Mapping[str, Any], X_new: np.ndarray) -> np.ndarray:
    """Return sigmoid(f(x)), FS-SKLR (8), at standardised inputs, of the selected state.

    For squared errors, whose model has no P(y = 1), it is f(x).
    """
    point = {n: np.asarray(state[n]) for n in ("feature_weight", "sample_weight")}
    eta = problem.decision(point, X_new)
    return eta if problem.spec.link == "identity" else special.expit(eta)
