"""NUTS: gradient-based Markov chain Monte Carlo, the exact method for continuous models.

The No-U-Turn sampler (Hoffman & Gelman 2014, J. Mach. Learn. Res. 15) with multinomial sampling
along the trajectory (Betancourt 2017, arXiv 1701.02434). It targets the posterior itself; its only
error is Monte Carlo error, as long as the chains have converged (R-hat) and the integrator did not
diverge. One gradient per leapfrog step, so O(2^depth N D) a draw for a linear kernel.

The sampler is fixed. `pm.sample` silently uses nutpie if it is installed; statistics then have
other names, and tuning has another length. Here `sampler="nutpie"` (the default: compiled, with
chains in threads) and `sampler="pymc"` return the same statistics under the same names.

Products of two heavy-tailed weights give a strongly curved posterior. At a target acceptance of
0.8, trajectories diverge on several data sets; at 0.9 they diverge on few, and 0.95 costs half as
much again (`benchmarks/nuts_settings.py`). So the first run is at 0.9, unless a target is given. If
more than one transition in a thousand diverges, a second run at 0.95 replaces it. The fit's attrs
and a message report this.
"""

import math
import time
import warnings
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import xarray as xr

from ardvark.common.declared import Settings, option
from ardvark.common.validate import logger

from ..contract.backend import About, FitFailed, Job, Kind, Result, continuous_only
from ..contract.target import Target
from ..fits.diagnostics import FEW_DIVERGENT

NAME = "nuts"
KIND: Kind = "mcmc"
ABOUT = About(
    approximates="Nothing: its Markov chain samples the posterior itself, guided by gradients.",
    exact="In the limit of many draws, if the chains have converged and no trajectory diverged.",
    cost="One gradient per leapfrog step, so O(2^depth N D) per draw for a linear kernel.",
)

FIRST, SECOND = 0.9, 0.95  # target acceptance where none is given

STATISTICS = {
    "diverging": ("diverging", "diverging"),
    "energy": ("energy", "energy"),
    "tree_depth": ("depth", "tree_depth"),
    "n_steps": ("n_steps", "n_steps"),
    "step_size": ("step_size", "step_size"),
    "acceptance_rate": ("mean_tree_accept", "acceptance_rate"),
    "lp": ("logp", "lp"),
}
"""Our name: (nutpie's, PyMC's)."""


@dataclass(frozen=True, kw_only=True)
class Options(Settings):
    """Options of `nuts`."""

    sampler: Literal["nutpie", "pymc"] = option("nutpie", "which implementation samples")
    tune: int = option(500, "adaptation draws per chain, which are discarded", above=0)
    target_accept: float | None = option(
        None,
        "target for the mean acceptance probability. None: 0.9, and a second run at 0.95 with "
        "twice the adaptation if more than one transition in a thousand diverges",
        above=0.0,
        below=1.0,
    )
    max_treedepth: int = option(10, "a trajectory has at most 2^max_treedepth - 1 steps", above=0)
    cores: int | None = option(
        None, "chains that run in parallel. None: all cores. The draws do not depend on it", above=0
    )


supports = continuous_only("NUTS")


def fit(target: Target, options: Options, job: Job) -> Result:
    """Sample the posterior; if too many transitions diverge, sample again with smaller steps."""
    run = _nutpie if options.sampler == "nutpie" else _pymc
    if options.target_accept is not None:
        return run(target, options, job)
    result = run(target, replace(options, target_accept=FIRST), job)
    count = int(result.sample_stats["diverging"].sum())
    result.attrs |= {"target_accept": FIRST}
    if count <= FEW_DIVERGENT * job.chains * job.draws:
        return result
    logger.warning(
        "nuts: %d transitions diverged at target_accept %g; running again at %g and discarding "
        "the first run.", count, FIRST, SECOND,
    )  # fmt: skip
    again = run(target, replace(options, target_accept=SECOND, tune=2 * options.tune), job)
    again.attrs |= {"target_accept": SECOND, "diverged_at_first": count}
    seconds = result.seconds_run + again.seconds_run
    return replace(again, seconds_run=seconds, seconds_compile=result.seconds_compile)


def _nutpie(target: Target, options: Options, job: Job) -> Result:
    import nutpie

    started = time.perf_counter()
    with job.report.stage("compiling"):
        compiled = _compiled(target, job.names)
    compile_seconds = time.perf_counter() - started

    started = time.perf_counter()
    total = job.chains * (job.draws + options.tune)
    with job.report.stage("sampling", total=total) as update:

        def callback(states: list[Any]) -> None:
            done = sum(s.finished_draws for s in states)
            update(done, f"{sum(s.divergences for s in states)} divergences")

        try:
            tree = nutpie.sample(
                compiled,
                draws=job.draws,
                tune=options.tune,
                chains=job.chains,
                cores=options.cores,
                seed=job.seed,
                target_accept=options.target_accept,
                maxdepth=options.max_treedepth,
                save_warmup=False,
                progress_bar=False,
                progress_callback=callback,
            )
        except RuntimeError as error:
            raise FitFailed(f"NUTS could not start: {error}") from error
    return _result(tree, 0, compile_seconds, time.perf_counter() - started)


def _compiled(target: Target, keep: tuple[str, ...] | None) -> Any:
    """Return the target's compiled density as nutpie's kind of model.

    nutpie calls C functions at their addresses. So our functions, which serve data of any shape,
    replace those that it would compile. A chain starts at the density's start plus U(-1, 1).
    """
    from nutpie.compile_pymc import CompiledPyMCModel

    density = target.density
    names = [n for n in density.names if keep is None or n in keep]
    shapes = density.shapes(names)
    lengths = [math.prod(shape) for shape in shapes.values()]
    ends = np.cumsum([0, *lengths]).tolist()
    slices = [slice(*pair) for pair in pairwise(ends)]

    def start(seed: int | None) -> np.ndarray:
        return density.start + np.random.default_rng(seed).uniform(-1.0, 1.0, density.size)

    return CompiledPyMCModel(
        _n_dim=density.size,
        dims={},
        _coords={},
        _shapes=shapes,
        compiled_logp_func=density.function,
        compiled_expand_func=density.expansion(names),
        initial_point_func=start,
        shared_data={},
        shared_var_keys={},
        user_data=density.data.addresses,
        n_expanded=ends[-1],
        shape_info=(names, slices, [*shapes.values()]),
        logp_func=None,
        expand_func=None,
    )


def _pymc(target: Target, options: Options, job: Job) -> Result:
    import pymc as pm

    model = target.model
    started = time.perf_counter()
    with job.report.stage("compiling"), model:
        step = pm.NUTS(target_accept=options.target_accept, max_treedepth=options.max_treedepth)
    compile_seconds = time.perf_counter() - started
    started = time.perf_counter()
    with job.report.stage("sampling"), model, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence is judged by `fit`, from the draws
        try:
            tree = pm.sample(
                draws=job.draws,
                tune=options.tune,
                chains=job.chains,
                cores=options.cores,
                step=step,
                random_seed=job.seed,
                var_names=None if job.names is None else [*job.names],
                progressbar=False,
                compute_convergence_checks=False,
            )
        except (pm.exceptions.SamplingError, RuntimeError) as error:
            raise FitFailed(f"NUTS could not start: {error}") from error
    return _result(tree, 1, compile_seconds, time.perf_counter() - started)


def _result(tree: xr.DataTree, column: int, seconds_compile: float, seconds_run: float) -> Result:
    """Copy draws and statistics out of the sampler's tree, under our names."""
    posterior = tree["posterior"].to_dataset()
    stats = tree["sample_stats"].to_dataset()
    arrays = {str(k): np.asarray(v.values) for k, v in posterior.data_vars.items()}
    renamed = {ours: theirs[column] for ours, theirs in STATISTICS.items()}
    sample_stats = {o: np.asarray(stats[t].values) for o, t in renamed.items() if t in stats}
    return Result(
        posterior=arrays,
        sample_stats=sample_stats,
        seconds_compile=seconds_compile,
        seconds_run=seconds_run,
    )
