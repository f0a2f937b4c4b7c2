"""The RFVM's own algorithm: mean-field variational Bayes.

Belenguer-Llorens, Sevilla-Salcedo, Parrado-Hernandez, Gomez-Verdejo (2024), arXiv 2402.07079,
section 3.2 and appendices C (updates), D (bound), E (prediction). Equation numbers are the paper's.

What it approximates
--------------------
The posterior of the hierarchical model with explicit noise (`ardvark.models.rfvm`), by

    q = N(a | mean, Sigma) prod_d q(v_d) q(delta_d) prod_j q(psi_j) q(tau) q(b) prod_n q(u_n),

with Jaakkola and Jordan's quadratic bound on ln sigmoid(u_n) at xi_n. Each factor is set in turn to
exp(E[ln joint]) under the others, which increases a lower bound (ELBO) of the log evidence. For the
other forms of the same posterior, q has the factors of the variables in that form.

It is never exact in this model. Variables that depend on each other in the posterior are
independent under q, so spreads are too small. (r v, a / r) gives the same decision for any r, but q
settles on one r; u and tau are too narrow; q ignores the dependence between a weight and its
precision. There are several optima (`restarts`).

Under the sparse prior q is sparser than the posterior. A weight is either large or inside the
prior's spike at zero, where its q stays. Among correlated features q settles on few, whereas the
posterior spreads over them. Each weight outside the spike costs the bound several nats. So with few
rows and many features the best q may have no visible weight at all, only the bias.

Faithful and corrected
----------------------
v_factor = "folded"      the paper: q(v_d) is given the moments of a *folded* normal (C.24-C.28).
         = "truncated"   the mean-field optimum: a normal *truncated* to v >= 0. Only with this and
                         the sequential update does every step increase the ELBO. Erratum: (C.21) is
                         right about the prior, whose location is 0; C.24-C.28 use the folded normal
                         at other locations too. For m_d < 0 a folded mean grows with |m_d|.
v_update = "sequential"  one feature after the other, as (18) says: the default for both.
         = "simultaneous" all at once, as in the released code. Repeated by itself it diverges (its
                         Jacobi matrix has a spectral radius above 1 if features are informative).
                         Over whole sweeps the next q(a) usually corrects the overshoot. With either
                         update, a folded q can end with a slightly decreasing ELBO, because its
                         fixed point is not a maximum.
stopping = "settled"     ours.
         = "moving_average" the released code's rule on our ELBO: stop when it differs from the mean
                         of the 199 before it by less than `tolerance` of its value, after at least
                         301 sweeps; "not_converged" if weights still drift. It is not the released
                         stop, because the bound there is another one (below).
start, order             "released" and "tau_xi_u" are the released code's.
program                  all of the released program, iterate by iterate: start, order, simultaneous
                         v, its rate of tau, its bound, pruning, and its stop on that bound, with
                         `tolerance` and `max_sweeps`; the options above are then set by it.
                         `program.py` says how its bound differs. The program of the released
                         example has a tolerance of 1e-5, at most 5000 sweeps and one start.
prune                    the paper's pruning, at the thresholds of the released example; off by
                         default. It also removes samples whose weight happens to cross zero in
                         that sweep. A q without the removed weights does not cover the posterior,
                         so there is no `lp` or `log_q`. `selected_feature` and `selected_sample`
                         apply the same thresholds without pruning.

The released code has three more departures, of which `program` has the first two. Its rate of tau
sums over all pairs of features, although Var(v_d) belongs only on the diagonal. Its 'bound' has the
wrong sign for the entropies, and that of v multiplied by the number of features; before it is
computed, what was pruned is put back as small constants. Its predictive variance sums over all
pairs too and adds <tau> instead of 1/<tau>, which is *not* reproduced. The paper's plug-in of
1/<tau> for E[1/tau] is kept.

It stops when nothing drifts any more (`stopping.py`), which is later than when the ELBO stops
changing. A run that still drifts after `max_sweeps` is "not_converged", and reports what drifted
last.

Cost
----
No matrix is D x D. With M = X diag(<v>) Z' (N, B), A = <a a'> and w_d = A z_d,

    sum_e G_de P_de <v_e> = x_d' M w_d,    G = X'X,  P = Z'A Z,

and a change of <v_d> by dv is M += dv x_d z_d'. So a feature takes O(N B), a sweep
O(N B D + B^3). Memory is O((N + B) D): apart from X itself, its columns, shared by all starts, and
the w_d of one start. `lab/algorithms/ALGORITHMS.md` measures a sweep, and a fit at D = 1e6.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from scipy import linalg, special

from ardvark.common.declared import option
from ardvark.common.progress import Reporter, Update
from ardvark.models import Problem, rfvm
from ardvark.models.spec import Point

from ...target.backend import About, Dims, FitFailed, Job, Kind, Result, Status, only_for
from ...target.draws import Draws, draw_in_chunks
from ...target.reasons import Reason, told
from ...target.target import Target
from ..path import PATH, Path
from .factors import Columns, EngineOptions, Factors
from .program import IMPLIED, Program
from .stopping import State, Watch, averaged

NAME = "rfvm_vb"
KIND: Kind = "approximation"
ABOUT = About(
    approximates=(
        "The posterior by independent factors (mean field), with a quadratic bound on the "
        "likelihood."
    ),
    exact=(
        "Never in this model: it treats dependent variables as independent, so spreads are too "
        "small."
    ),
    cost="O(N B D + B^3) per sweep and O((N + B) D) memory.",
)
PRUNE_FROM = 7
"""The first sweep that prunes."""
_CHUNK = 500_000  # N + D + B times the draws of one chunk: a few dozen MB at once


@dataclass(frozen=True, kw_only=True)
class Options(EngineOptions):
    """Options of `rfvm_vb`; the module docstring lists departures from the paper."""

    prune: bool = option(False, f"from sweep {PRUNE_FROM} on, remove what is not selected")
    restarts: int = option(
        2, "number of random starts; the one with the best ELBO is kept", above=0
    )
    tolerance: float = option(
        1e-6,
        "converged when a sweep changes the ELBO by less than this share of it, changes no fitted "
        "probability by more than the square root of this, and nothing drifts",
        above=0.0,
    )
    stopping: Literal["settled", "moving_average"] = option(
        "settled", "stop when nothing drifts, or by the released code's rule on our ELBO"
    )
    program: bool = option(
        False, "follow the released program iterate by iterate; sets start, updates and stop"
    )
    max_sweeps: int = option(3000, "sweeps per start", above=0)
    path: bool = option(False, f"{PATH} (one state for each 5 % of the selected removed)")


def supports(target: Target) -> str | None:
    """Return why the method does not apply, or None."""
    why_not = only_for(("rfvm",), "the algorithm of the RFVM's paper", fixed_scale=True)(target)
    if why_not is not None:
        return why_not
    hypers = target.zoo_problem.hypers
    assert isinstance(hypers, rfvm.Hypers)
    if hypers.latent_noise == "none":
        return (
            "its factors q(tau) and q(u) need the latent noise, but latent_noise is 'none' "
            "(choose 'explicit' or 'integrated')"
        )
    return None


# --- the fit ------------------------------------------------------------------------------------


@dataclass
class Run:
    """The run from one start: q, the traces (one entry per sweep), and why it stopped early."""

    q: Factors
    elbo: list[float]
    features: list[int]
    samples: list[int]
    reason: Reason | None = None
    path: Path = field(default_factory=Path)

    def falls(self) -> int:
        """Count the sweeps that decreased the ELBO by more than rounding error."""
        return int(np.sum(np.diff(self.elbo) < -1e-9 * np.abs(self.elbo[1:])))

    def keep(self, sweep: int, D: int, B: int) -> None:
        """Add the current weights to the path."""
        q = self.q
        self.path.keep(sweep, _full(q.v, q.features, D), _full(q.a, q.samples, B), q.b)


def iterate(q: Factors, options: Options, update: Update | None = None) -> Run:
    """Sweep until q has settled, or until the rule in `stopping` ends the run."""
    run, watch = Run(q, [], [], []), Watch(options.tolerance)
    D, B, settled = len(q.m), len(q.a), False
    for sweep in range(1, options.max_sweeps + 1):
        if options.prune and sweep >= PRUNE_FROM and not options.program:
            q.prune()
        try:
            q.sweep()
            bound = q.elbo()
        except (linalg.LinAlgError, ValueError) as error:
            run.reason = Reason("failed", {"step": f"sweep {sweep}", "error": error})
            return run
        run.elbo.append(bound)
        if isinstance(q, Program):
            q.add_bound()
            if sweep >= PRUNE_FROM:
                q.prune()
        run.features.append(len(q.features))
        run.samples.append(len(q.samples))
        if not np.isfinite(bound):
            run.reason = told(f"the ELBO is not finite after sweep {sweep}")
            return run
        settled = watch.add(State.of(q, sweep, bound, options.prune))
        sizes = [int(x.sum()) for x in q.selected()]
        if options.path and run.path.due(*sizes):
            run.keep(sweep, D, B)
        if update is not None and sweep % 10 == 0:
            update(sweep, f"ELBO {bound:.2f}, {sizes[0]} features")
        if _stops(run, settled, options):
            break
    if options.path and run.path.iteration[-1] != len(run.elbo):
        run.keep(len(run.elbo), D, B)
    if not settled:
        run.reason = _drifts(run, watch)
    return run


def _stops(run: Run, settled: bool, options: Options) -> bool:
    """Return whether a run ends here; the released program does not ask whether q has settled."""
    if isinstance(run.q, Program):
        return averaged(run.q.bounds, options.tolerance)
    by_average = options.stopping == "moving_average"
    return settled or (by_average and averaged(run.elbo, options.tolerance))


def _drifts(run: Run, watch: Watch) -> Reason:
    """Return why a run has not settled."""
    text = (
        f"q has not settled after {len(run.elbo)} sweeps: {watch.drifted or 'too few to tell'}; "
        f"the last one changed the ELBO by {watch.bound:.1e} of its value and a fitted probability "
        f"by {watch.fitted:.1e} ({run.falls()} sweeps lowered the ELBO)"
    )
    return Reason("unfinished", {"text": text, "options": "max_sweeps or tolerance"})


def solve(
    problem: Problem, options: Options, seed: np.random.SeedSequence, report: Reporter
) -> tuple[Run, list[float]]:
    """Return the best of several random starts, and the final ELBO of each (-inf if it failed)."""
    X, y, Z, h = problem.X, problem.y, problem.Z, problem.hypers
    columns = Columns.of(X, Z)
    if options.program:
        options = replace(options, **IMPLIED)
    kind = Program if options.program else Factors
    best: Run | None = None
    bounds = []
    for number, stream in enumerate(seed.spawn(options.restarts)):
        with report.stage(f"start {number + 1}", total=options.max_sweeps) as update:
            q = kind(X, y, Z, h, np.random.default_rng(stream), options, columns)
            run = iterate(q, options, update)
            q.release()
        failed = run.reason is not None and run.reason.code == "failed"
        usable = bool(run.elbo) and np.isfinite(run.elbo[-1]) and not failed
        bounds.append(run.elbo[-1] if usable else -np.inf)
        if usable and (best is None or bounds[-1] > best.elbo[-1]):
            best = run
    if best is None:
        raise FitFailed(f"no start kept a finite ELBO; the last: {run.reason}")
    return best, bounds


def _compile(problem: Problem, options: Options) -> float:
    """Compile a sweep and a draw, on two samples of one feature; return the time in seconds."""
    started, (X, y) = time.perf_counter(), (problem.X[:2, :1], problem.y[:2])
    small = Factors(X, y, X, problem.hypers, np.random.default_rng(0), options)
    small.sweep()
    small.draws(np.random.default_rng(0), 1)
    return time.perf_counter() - started


def _draw(
    problem: Problem,
    q: Factors,
    job: Job,
    generators: list[np.random.Generator],
    update: Update,
) -> Draws:
    """Return draws from q, and what is computed from them."""
    (N, D), B, h = problem.X.shape, len(problem.Z), problem.hypers
    assert isinstance(h, rfvm.Hypers)  # as `supports` says
    pruned = len(q.features) < D or len(q.samples) < B
    absent = {"psi", "delta"} if pruned or h.parametrization == "marginal" else set()
    if h.latent_noise != "explicit":
        absent.add("u")

    def some(rng: np.random.Generator, S: int) -> tuple[Point, Point]:
        point = {k: x for k, x in q.draws(rng, S).items() if k not in absent}
        if pruned:
            point["feature_weight"] = _full(point["feature_weight"], q.features, D)
            point["sample_weight"] = _full(point["sample_weight"], q.samples, B)
            return point | {"eta": problem.decision(point)}, {"lp": np.full(S, np.nan)}
        log_q = q.log_q(point) + problem.spec.log_jacobian(point, h)
        stats = {"lp": problem.log_density(point), "log_q": log_q}
        return point | problem.to_free(point) | {"eta": problem.decision(point)}, stats

    return draw_in_chunks(job, generators, max(1, _CHUNK // (N + D + B)), some, update)


def _verdict(run: Run) -> tuple[Status, str | Reason]:
    """Return the status and its reason."""
    return ("finished", "") if run.reason is None else ("not_converged", run.reason)


def _details(problem: Problem, run: Run) -> tuple[dict[str, np.ndarray], Dims]:
    """Return q and the traces at full size, zero if pruned (a rate of 0 means no such factor)."""
    q, D, B = run.q, problem.X.shape[1], len(problem.Z)
    feature, sample = q.selected()
    by_feature = {
        "feature_location": q.m,
        "feature_scale": q.scale,
        "feature_mean": q.v,
        "feature_variance": q.var_v,
        "delta_rate": q.delta_rate,
        "selected_feature": feature,
    }
    by_sample = {"sample_mean": q.a, "psi_rate": q.psi_rate, "selected_sample": sample}
    by_obs = {"u_mean": q.u, "u_sd": q.var_u**0.5, "xi": q.xi}
    by_sweep = {
        "elbo": run.elbo,
        "features_kept": run.features,
        "samples_kept": run.samples,
    }
    if isinstance(q, Program):
        by_sweep["program_bound"] = q.bounds
    factor = np.zeros((B, B))  # Sigma = factor factor'
    factor[np.ix_(q.samples, q.samples)] = q.factor
    details = {k: _full(x, q.features, D) for k, x in by_feature.items()}
    details |= {k: _full(x, q.samples, B) for k, x in by_sample.items()}
    details |= {k: x.astype(bool) for k, x in details.items() if k.startswith("selected")}
    details |= by_obs | {k: np.asarray(x) for k, x in by_sweep.items()}
    details |= {
        "sample_factor": factor,
        "bias_mean": np.asarray(q.b),
        "bias_variance": np.asarray(q.var_b),
        "tau_shape": np.asarray(q.tau_shape),
        "tau_rate": np.asarray(q.tau_rate),
        "delta_shape": np.asarray(q.delta_shape),
        "psi_shape": np.asarray(q.psi_shape),
        "sweeps": np.asarray(len(run.elbo)),
    }
    dims: Dims = {"sample_factor": ("basis", "factor"), "elbo_start": ("start",)}
    for names, dim in (
        (by_feature, "feature"),
        (by_sample, "basis"),
        (by_obs, "obs"),
        (by_sweep, "sweep"),
    ):
        dims |= dict.fromkeys(names, (dim,))
    path, path_dims = run.path.details()
    return details | path, dims | path_dims


def _full(values: np.ndarray, index: np.ndarray, size: int) -> np.ndarray:
    """Return an array of full `size` on the last axis, with zeros for removed entries."""
    out = np.zeros((*values.shape[:-1], size))
    out[..., index] = values
    return out


def fit(target: Target, options: Options, job: Job) -> Result:
    """Ascend from several random starts, keep the one with the best bound, and draw from its q.

    After pruning, draws of removed weights are exactly zero and q does not cover the posterior. So
    `lp` is NaN, there is no `log_q`, and variables without a value (psi, delta and the raw weights)
    are omitted. ELBOs of starts that pruned differently bound the evidence of different models.
    """
    problem = target.zoo_problem
    for_starts, for_draws = np.random.SeedSequence(job.seed).spawn(2)
    with job.report.stage("compiling"):
        seconds_compile = _compile(problem, options)
    run, bounds = solve(problem, options, for_starts, job.report)
    generators = [np.random.default_rng(s) for s in for_draws.spawn(job.chains)]
    with job.report.stage("drawing", total=job.chains * job.draws) as update:
        drawn = _draw(problem, run.q, job, generators, update)
    status, reason = _verdict(run)
    details, dims = _details(problem, run)
    details |= {"elbo_start": np.asarray(bounds), "converged": np.asarray(status == "finished")}
    return Result(
        posterior=drawn.posterior,
        sample_stats=drawn.sample_stats,
        details=details,
        dims=dims,
        status=status,
        reason=reason,
        seconds_compile=seconds_compile,
        attrs={"sweeps": len(run.elbo), "elbo": run.elbo[-1], "elbo_falls": run.falls()},
    )


def predictive_moments(
    state: Mapping[str, Any], Z: np.ndarray, X_new: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean, RFVM (29), and variance, RFVM (30), (M,) of u at new inputs.

    mean = <b> + (x o <v>)' Z'<a>,
    variance = 1/<tau> + Var(b) + |factor' Z (x o <v>)|^2 + sum_d x_d^2 Var(v_d) P_dd.

    `state` is the `fit` group of a fit, or `Result.details`.
    """
    s = {k: np.asarray(state[k]) for k in state}
    v, a, factor = s["feature_mean"], s["sample_mean"], s["sample_factor"]
    K = X_new @ (Z * v).T  # (M, B): rows Z (x o <v>)
    mean = s["bias_mean"] + K @ a
    # P_dd = z_d' (Sigma + <a><a>') z_d
    P = np.sum((factor.T @ Z) ** 2, axis=0) + (a @ Z) ** 2
    variance = s["tau_rate"] / s["tau_shape"] + s["bias_variance"]
    variance = variance + np.sum((K @ factor) ** 2, axis=1)
    return mean, variance + X_new**2 @ (s["feature_variance"] * P)


def predict_paper(problem: Problem, state: Mapping[str, Any], X_new: np.ndarray) -> np.ndarray:
    """Return P(y = 1), RFVM (24), at standardised inputs: sigmoid(mean / sqrt(1 + pi var / 8))."""
    mean, variance = predictive_moments(state, problem.Z, X_new)
    return special.expit(mean / np.sqrt(1.0 + np.pi * variance / 8.0))
