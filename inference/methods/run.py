"""`fit`: the same call for every method, and the same kind of result."""

import dataclasses
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

from ardvark.common.progress import Reporter
from ardvark.common.validate import InputError, logger, unknown
from ardvark.models import SHARED, Problem
from ardvark.models.centres import given_centres

from ..fits.activity import Activity, activity
from ..fits.convergence import EXACT, convergence, missed
from ..fits.datatree import COVARIATES, as_json, assemble, group, versions
from ..fits.mixing import GROUP, mixing
from ..fits.own_groups import WRITTEN
from ..fits.selection import described, lacking, weights_of
from ..target.backend import Earlier, FitFailed, Job, Kind, Result
from ..target.length import most_kept, refuse_too_large
from ..target.reasons import Reason, joined
from ..target.sampling import Keep, Sampling
from ..target.target import Target
from .checkpoint import Checkpoint
from .own_model import check_own
from .registry import MethodName, Plan, prepare

if TYPE_CHECKING:
    import pymc as pm

LARGEST_KEPT = 1e8
"""Stored numbers up to which `keep="all"` keeps everything (800 MB)."""


def fit(
    target: "Problem | pm.Model",
    method: MethodName | str,
    *,
    draws: int = 1000,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    keep: Keep = "all",
    selection: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    **options: Any,
) -> xr.DataTree:
    """Compute a posterior, or an approximation of it.

    Parameters
    ----------
    target : Problem or pm.Model
        What to fit. A bare model works with every generic method.
    method : str
        A name in `BACKENDS`; "exact" is the posterior itself. Or "paper" for the algorithm of the
        paper on the problem's model.
    draws, chains : int
        Draws per chain, and number of chains. An approximation's draws are independent, so its
        chains are only a layout. A point or search method returns one draw. "exact" runs as long as
        it needs, and keeps so many. ``attrs["draws"]`` is how many a fit holds.
    random_seed : int, optional
        Equal seeds give equal draws, with any number of cores. None draws a seed and records it.
    progressbar : bool
        Show each stage.
    keep : {"all", "shared"}
        Keep every variable, or only what predictions and effects need: `feature_weight`,
        `sample_weight`, `eta`, weights of covariates, and the scalars.
        Above 1e8 stored numbers, "all" becomes "shared", with a message.
    selection : bool
        Compute which features and samples are active (`select`, seconds at most), as the group
        selection.
    checkpoint : path, optional
        A file in which a run of "exact" is kept while it goes on, at most once a minute. If the
        process is killed, the same call goes on from there. It is removed when the run ends.
    **options
        Options of the method; an unknown one is a TypeError that lists the known ones.

    Returns
    -------
    xarray.DataTree
        Groups posterior, sample_stats, log_likelihood (`datatree.POINTWISE` where its terms do not
        estimate prediction, so that ArviZ's `loo` refuses them), log_prior, fit, observed_data,
        constant_data, selection (`select`) where it is a problem's and has the weights, and mixing
        (R-hat and ESS of all that may be quoted) of a Markov chain. PyMC adds the
        predictive ones (`docs/howto/pymc.md`).
        ``attrs["status"]`` is "finished", "not_converged" or "failed", and ``attrs["reason"]`` says
        why. The ``ardvark`` logger warns if it is not "finished".

    Raises
    ------
    InputError
        An unknown method, or one that does not apply to the model (the message says why); sizes
        or a seed that are none (`Sampling`); a fit that needs more memory than it may take, half of
        what is free. Or a model of your own whose functions raise errors, or contradict its PyMC
        model: they are compared at three random points when it is first fitted.

    Examples
    --------
    >>> import numpy as np
    >>> import ardvark as av
    >>> X = np.random.default_rng(0).normal(size=(30, 4))
    >>> problem = av.problem("pfcvm", X, X[:, 0] + 2 * X[:, 1] > 0)
    >>> fit = av.fit(problem, "paper", random_seed=0, progressbar=False)
    >>> fit.attrs["method"], fit.attrs["kind"], fit.attrs["status"]
    ('pfcvm_lp', 'approximation', 'finished')
    >>> dict(fit["posterior"]["eta"].sizes)
    {'chain': 4, 'draw': 1000, 'obs': 30}
    >>> fit["selection"]["p_active_feature"].round(1).to_series().to_dict()
    {'x1': 1.0, 'x2': 1.0, 'x3': 0.0, 'x4': 0.0}
    """
    seed = secrets.randbits(31) if random_seed is None else random_seed
    sampling = Sampling(draws=draws, chains=chains, seed=seed, keep=keep, progressbar=progressbar)
    plan = prepare(method, Target(target), options, sampling)
    return compute(plan, selection=selection, checkpoint=checkpoint)


def compute(
    plan: Plan,
    *,
    selection: bool = True,
    earlier: Earlier | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
) -> xr.DataTree:
    """Make a fit that is planned: `fit`, below its checks.

    Parameters
    ----------
    plan : Plan
        What to fit, by which method, and how much to draw: `registry.prepare` makes it.
    selection : bool
        As for `fit`.
    earlier : Earlier, optional
        The run to go on with.
    checkpoint : path, optional
        As for `fit`.
    """
    target, sampling = plan.target, plan.sampling
    problem, names = target.problem, _kept(target, sampling)
    if sampling.keep == "all" and names is not None:
        logger.warning(
            "there are more than %.0e numbers to store: keeping only %s and the scalars",
            LARGEST_KEPT, ", ".join(SHARED),
        )  # fmt: skip
    kept = None if checkpoint is None else Checkpoint(Path(checkpoint), plan)
    if kept is not None and earlier is None:
        earlier = kept.earlier()
    job = Job(**vars(sampling), names=names, label=plan.name, earlier=earlier, checkpoint=kept)
    if plan.backend.KIND in ("mcmc", "approximation"):  # others return one draw
        held = getattr(plan.backend, "held", None)
        refuse_too_large(target, job, held(plan.options, job) if held else job.draws)
    check_own(target)
    sizes = {"draws": sampling.draws, "chains": sampling.chains}
    attrs = facts(problem, method=plan.name, kind=plan.backend.KIND, **sizes) | {
        "seed": sampling.seed,
        "keep": sampling.keep,
        "options": as_json(dataclasses.asdict(plan.options)),
        "request": plan.request,
    }
    with job.report:
        result = _result(plan, job)
        if kept is not None:
            kept.done()
        return finish(target, result, attrs, report=job.report, selection=selection)


def _result(plan: Plan, job: Job) -> Result:
    """Return what the method returns, checked; a result without draws if it gave up."""
    started = time.perf_counter()
    try:
        with threadpool_limits(1, user_api="blas"):  # equal draws whatever the number of cores
            result = plan.backend.fit(plan.target, plan.options, job)
        _refuse_other(plan.target, result, plan.name)
        if result.seconds_run == 0.0:  # it has not timed itself
            result.seconds_run = time.perf_counter() - started - result.seconds_compile
        _refuse_nan(result)
    except FitFailed as error:
        return Result(posterior={}, status="failed", reason=_why_failed(plan.target, error))
    return result


def _why_failed(target: Target, error: FitFailed) -> str:
    """Return why a method gave up; of a model of one's own, also what is wrong where it begins."""
    if target.problem is not None:
        return str(error)
    try:
        terms = target.model.point_logps()
    except Exception as wrong:  # whatever its graph raises
        first = str(wrong).splitlines()[0].rstrip(".")
        return (
            f"{error}; the density cannot be computed: {first}. Do the lengths of data and dims "
            "agree, as after pm.set_data?"
        )
    zero = [name for name, term in terms.items() if not np.isfinite(term)]
    if not zero:
        return str(error)
    return (
        f"{error}; where the model begins, the density of {', '.join(zero)} is 0: a value may be "
        "outside of its support, or a prior may exclude the data (model.debug() says more)"
    )


def finish(
    target: Target,
    result: Result,
    attrs: Mapping[str, Any],
    *,
    report: Reporter | None = None,
    selection: bool = True,
) -> xr.DataTree:
    """Turn a result into a fit: compute what it lacks, and judge its convergence.

    Parameters
    ----------
    target : Target
        What was fitted.
    result : Result
        Draws, from a method or from `adoption.py`.
    attrs : dict
        Attributes of the fit: at least `facts`.
    report : Reporter, optional
        Where stages are shown.
    selection : bool
        Whether to compute which features and samples are active.
    """
    problem, kind = target.problem, attrs["kind"]
    seconds = {"seconds_compile": result.seconds_compile, "seconds_run": result.seconds_run}
    attrs = {**attrs, **seconds, **result.attrs}
    model = target.model if problem is None else None
    if model is not None:
        attrs[WRITTEN] = model.str_repr()
    tree = assemble(result, model=model, problem=problem, attrs=attrs)
    found: dict[str, Activity] = {}
    if selection and problem is not None and result.posterior and not lacking(problem, tree):
        with (report or Reporter(enabled=False)).stage("selection"):
            posterior = group(tree, "posterior")
            found = activity(problem, weights_of(problem, posterior))
            tree["selection"] = xr.DataTree(described(problem, found, posterior))
    if kind == "mcmc" and result.posterior:
        # what decided when `exact` ended, which looks at fewer draws than a selection does
        known = None if result.judged else found
        tree[GROUP] = xr.DataTree(mixing(problem, tree, known).to_dataset())
    _count(tree)
    _set_status(tree, result)
    return tree


def _set_status(tree: xr.DataTree, result: Result) -> None:
    """Let the attributes say whether to trust a fit, and warn if not: the one place that decides.

    A method knows what kept it from its end, and the driver of `exact` has judged its chains.
    Other chains are judged here, and the trajectories of all.
    """
    status, reason = result.status, result.reason
    code = reason.code if isinstance(reason, Reason) else "told"
    if status == "finished" and tree.attrs["kind"] == "mcmc":
        missing = missed(tree) if result.judged else convergence(tree)
        if missing:
            status, reason, code = "not_converged", joined(missing), missing[0].code
    tree.attrs |= {"status": status, "reason": str(reason), "reason_code": code}
    if status != "finished":
        method = tree.attrs["method"]
        logger.warning("%s: %s: %s", method, status, reason, extra={"status": status})


def _count(tree: xr.DataTree) -> None:
    """Let the attributes say how many draws are stored, and how many were asked for if others."""
    sizes, attrs = group(tree, "posterior").sizes, tree.attrs
    if "draw" not in sizes:
        return
    if attrs["draws"] != sizes["draw"]:
        attrs["draws_asked"] = attrs["draws"]
    attrs |= {"draws": sizes["draw"], "chains": sizes["chain"]}


def stored_size(problem: Problem, sampling: Sampling, *, exact: bool) -> float:
    """Return about how many bytes the stored fit has: draws and likelihood, 8 a number.

    `exact` says whether it is by that method, which may keep more draws than others.
    """
    target = Target(problem)
    names = _kept(target, sampling)
    kept = sum(size for name, size in target.sizes.items() if names is None or name in names)
    draws = most_kept(sampling, EXACT.bulk) if exact else sampling.draws
    return 8.0 * draws * sampling.chains * (kept + len(problem.y))


def _kept(target: Target, sampling: Sampling) -> tuple[str, ...] | None:
    """Return the names of the variables to keep, or None for all."""
    problem, sizes = target.problem, target.sizes
    small = sampling.draws * sampling.chains * sum(sizes.values()) <= LARGEST_KEPT
    if sampling.keep == "all" and (small or problem is None):
        return None
    names = SHARED if problem is None else (*SHARED, COVARIATES, *problem.spec.needed)
    return tuple(name for name, size in sizes.items() if name in names or size == 1)


def _refuse_other(target: Target, result: object, name: str) -> None:
    """Raise an error if a method returned something else than draws of the target's variables."""
    if not isinstance(result, Result):
        kind = type(result).__name__
        raise TypeError(
            f"method {name!r}: fit must return an ardvark.inference.Result, got {kind}."
        )
    problem = target.problem
    shapes = {} if problem is None else problem.shapes
    lead = next((np.shape(values)[:2] for values in result.posterior.values()), ())
    for variable, values in result.posterior.items():
        if variable not in target.sizes:
            raise InputError(f"method {name!r}: {unknown('variable', variable, target.sizes)}")
        got, own = np.shape(values), shapes.get(variable)
        if len(got) < 2 or got[:2] != lead or (own is not None and got[2:] != own):
            want = ", ".join(["chain", "draw", *(["..."] if own is None else map(str, own))])
            raise TypeError(
                f"method {name!r}: {variable} must have the shape ({want}), with the chains and "
                f"draws of every other variable; got {got}."
            )


def _refuse_nan(result: Result) -> None:
    for name, values in result.posterior.items():
        if not np.isfinite(values).all():
            raise FitFailed(f"{int((~np.isfinite(values)).sum())} draws of {name} are not finite")


def facts(
    problem: Problem | None, *, method: str, kind: Kind, draws: int, chains: int
) -> dict[str, Any]:
    """Return the attrs that every fit has: what was fitted, how, and with which versions."""
    attrs: dict[str, Any] = {
        "method": method,
        "kind": kind,
        "draws": draws,
        "chains": chains,
        "versions": as_json(versions()),
        "ardvark": versions()["ardvark"],
        "lp_space": "unconstrained, Jacobian included",
    }
    if problem is not None:
        attrs |= {
            "model": problem.spec.name,
            "data": problem.data.name,
            "hypers": as_json(problem.recorded()),
            "fingerprint": problem.fingerprint,
            "form": problem.form,
            "fixed": " ".join(problem.spec.fixed),
            "masked": " ".join(problem.spec.masked),
            "basis": given_centres(len(problem.y), len(problem.basis)),
        }
    return attrs
