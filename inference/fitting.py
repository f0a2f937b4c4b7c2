"""`fit`: one call for every method, one kind of object back."""

import dataclasses
import hashlib
import secrets
import types
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr
from threadpoolctl import threadpool_limits

from ardvark.models import SHARED, Problem
from ardvark.validate import InputError, logger, one_of, unknown, unknown_option

from .backend import KINDS, Backend, FitFailed, Result
from .datatree import as_json, assemble, model_dims, versions
from .diagnostics import convergence
from .generic import advi, laplace, nuts
from .gibbs import sampling as gibbs
from .papers import fsklr_savb, jcfo_em, pfcvm_em, pfcvm_lp, rfvm_vb
from .papers import rfvm_xolon as xolon
from .progress import Reporter
from .target import Target

BACKENDS: dict[str, Backend | types.ModuleType] = {
    module.NAME: module
    for module in (
        nuts,
        gibbs,
        advi,
        laplace,
        pfcvm_lp,
        pfcvm_em,
        jcfo_em,
        fsklr_savb,
        rfvm_vb,
        xolon,
    )
}
"""Every method, by name."""

LARGEST_KEPT = 1e8
"""Stored numbers up to which `keep="all"` keeps everything (800 MB)."""


def register_backend(module: Any) -> None:
    """Add a method of your own: a module or object with the names of `backend.Backend`.

    Raises
    ------
    InputError
        A name is missing, KIND is unknown, or NAME is taken.
    """
    missing = [n for n in ("NAME", "KIND", "Options", "supports", "fit") if not hasattr(module, n)]
    if missing:
        raise InputError(
            f"a backend needs NAME, KIND, Options, supports and fit; missing: {', '.join(missing)}."
        )
    one_of("KIND", module.KIND, KINDS)
    if module.NAME in (*BACKENDS, "paper"):
        raise InputError(f"a backend named {module.NAME!r} exists already; choose another NAME.")
    BACKENDS[module.NAME] = module


def resolve(method: str, problem: Problem | None) -> str:
    """Return the backend's name: "paper" is the own algorithm of the problem's model."""
    if method == "paper":
        if problem is None:
            raise InputError('method "paper" needs a problem of the zoo, got a bare pm.Model.')
        method = problem.spec.paper_method
        if method not in BACKENDS:
            raise InputError(
                f"the zoo has no own algorithm of {problem.spec.name}"
                f"{f' ({method}) yet' if method else ''}. "
                f"Use one of {', '.join(applicable(problem))}."
            )
    if method not in BACKENDS:
        raise unknown("method", method, [*BACKENDS, "paper"])
    return method


def applicable(problem: Problem) -> list[str]:
    """Return the methods that apply to a problem: the generic ones, and its own algorithm."""
    return [n for n, b in BACKENDS.items() if b.supports(problem.model, problem) is None]


def make_options(name: str, given: Mapping[str, Any]) -> Any:
    """Return a method's Options; an unknown one is a TypeError that lists them."""
    options = BACKENDS[name].Options
    known = {f.name for f in dataclasses.fields(options)}
    wrong = [k for k in given if k not in known]
    if wrong:
        raise unknown_option(f"method {name!r}", wrong, known)
    return options(**given)


def request(
    problem: Problem | None,
    name: str,
    options: Any,
    *,
    draws: int,
    chains: int,
    seed: int,
    keep: str,
) -> str:
    """Return the hash of everything that decides a fit's draws: a stored fit with it is reused."""
    identity = {
        "fingerprint": "" if problem is None else problem.fingerprint,
        "form": "" if problem is None else problem.form,
        "method": name,
        "options": dataclasses.asdict(options),
        "draws": draws,
        "chains": chains,
        "seed": seed,
        "keep": keep,
        "versions": versions(),
    }
    return hashlib.sha256(as_json(identity).encode()).hexdigest()[:16]


def fit(
    target: Any,
    method: str,
    *,
    draws: int = 1000,
    chains: int = 4,
    random_seed: int | None = None,
    progressbar: bool = True,
    keep: str = "all",
    **options: Any,
) -> xr.DataTree:
    """Compute a posterior, or an approximation of it.

    Parameters
    ----------
    target : Problem or pm.Model
        What to fit. A bare model works with every generic method.
    method : str
        A name in `BACKENDS`, or "paper" for the own algorithm of the problem's model.
    draws, chains : int
        Draws a chain, and chains. An approximation's draws are independent, so its chains are
        only a layout; a point or search method returns one draw.
    random_seed : int, optional
        Equal seeds give equal draws, with any number of cores. None draws a seed and records it.
    progressbar : bool
        Show each stage.
    keep : {"all", "shared"}
        Keep every variable, or only `feature_weight`, `sample_weight`, `eta` and the scalars.
        "all" turns into "shared", with a message, above 1e8 stored numbers.
    **options
        Options of the method; an unknown one is a TypeError that lists the known ones.

    Returns
    -------
    xarray.DataTree
        Groups posterior, sample_stats, log_likelihood, fit, observed_data, constant_data.
        ``attrs["status"]`` is "ok", "not_converged" or "failed", with the reason beside it in
        ``attrs["reason"]``; anything but "ok" is also a warning of the ``ardvark`` logger.

    Raises
    ------
    InputError
        An unknown method, or one that does not apply to the model (the message says why).
    """
    problem = target if isinstance(target, Problem) else None
    if problem is None and not _is_model(target):
        raise InputError(
            f"fit needs a Problem or a pm.Model, got {type(target).__name__}. "
            "Make one with ardvark.problem(model, data)."
        )
    for name, value in (("draws", draws), ("chains", chains)):
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < 1:
            raise InputError(f"{name} must be an integer of at least 1, got {value!r}.")
    one_of("keep", keep, ("all", "shared"))
    name = resolve(method, problem)
    backend = BACKENDS[name]
    settings = make_options(name, options)
    wrapped = Target(None if problem else target, problem)
    # NEEDS_MODEL = False: the method looks at the problem alone, and a model would copy X
    needs_model = problem is None or getattr(backend, "NEEDS_MODEL", True)
    model = wrapped.model if needs_model else None
    why_not = backend.supports(model, problem)
    if why_not:
        raise InputError(f"method {name!r} does not apply to this model: {why_not}.")
    seed = secrets.randbits(31) if random_seed is None else int(random_seed)
    kept = _kept(model, problem, keep, draws * chains)

    attrs = _attrs(problem, name, backend.KIND, settings, seed, draws, chains)
    attrs["request"] = request(
        problem, name, settings, draws=draws, chains=chains, seed=seed, keep=keep
    )
    try:
        with threadpool_limits(1, user_api="blas"):  # equal draws whatever the number of cores
            result = backend.fit(
                wrapped,
                settings,
                draws=draws,
                chains=chains,
                seed=seed,
                keep=kept,
                report=Reporter(name, progressbar),
            )
        _refuse_nan(result)
    except FitFailed as error:
        result = Result(posterior={}, status="failed", reason=str(error))
    attrs |= {
        "seconds_compile": result.seconds_compile,
        "seconds_run": result.seconds_run,
        **result.attrs,
    }
    tree = assemble(result, model=model, problem=problem, attrs=attrs)
    status, reason = result.status, result.reason
    if status == "ok" and backend.KIND == "mcmc":
        status, reason = convergence(tree)
    tree.attrs |= {"status": status, "reason": reason}
    if status != "ok":
        logger.warning("%s: %s: %s", name, status, reason)
    return tree


def _is_model(target: Any) -> bool:
    import pymc as pm

    return isinstance(target, pm.Model)


def _kept(model: Any, problem: Problem | None, keep: str, samples: int) -> list[str] | None:
    """Return the names of the variables to keep, or None for all."""
    if model is None and problem is not None:
        sizes = problem.sizes
    else:
        dims = model_dims(model)
        sizes = {
            v.name: int(np.prod([len(model.coords[d]) for d in dims.get(v.name, ())], dtype=int))
            for v in model.unobserved_RVs
        }
    if keep == "all":
        numbers = samples * sum(sizes.values())
        if numbers <= LARGEST_KEPT or problem is None:
            return None
        logger.warning(
            "%.2g numbers to store exceed %.0e: keeping %s and the scalars only",
            numbers,
            LARGEST_KEPT,
            ", ".join(SHARED),
        )
    names = SHARED if problem is None else (*SHARED, *problem.spec.needed)
    return [name for name, size in sizes.items() if name in names or size == 1]


def _refuse_nan(result: Result) -> None:
    for name, values in result.posterior.items():
        if not np.isfinite(values).all():
            raise FitFailed(f"{int((~np.isfinite(values)).sum())} draws of {name} are not finite")


def _attrs(
    problem: Problem | None,
    method: str,
    kind: str,
    options: Any,
    seed: int,
    draws: int,
    chains: int,
) -> dict[str, Any]:
    attrs: dict[str, Any] = {
        "method": method,
        "kind": kind,
        "seed": seed,
        "draws": draws,
        "chains": chains,
        "options": as_json(dataclasses.asdict(options)),
        "versions": as_json(versions()),
        "ardvark": versions()["ardvark"],
        "lp_space": "unconstrained, Jacobian included",
    }
    if problem is not None:
        attrs |= {
            "model": problem.spec.name,
            "data": problem.data.name,
            "hypers": as_json(dataclasses.asdict(problem.hypers)),
            "fingerprint": problem.fingerprint,
            "form": problem.form,
            "fixed": " ".join(problem.spec.fixed),
            "masked": " ".join(problem.spec.masked),
        }
    return attrs
