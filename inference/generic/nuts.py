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
much again (`lab/speed/nuts_settings.py`). So the first run is at 0.9, unless a target is given. If
more than one transition in a thousand diverges, a second run at 0.95 replaces it. The fit's attrs
and a message report this.
"""

import math
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, Literal, Self

import numpy as np
import xarray as xr

from ardvark.common.declared import Settings, option
from ardvark.common.progress import Update
from ardvark.common.validate import logger

from ..contract.backend import About, Arrays, FitFailed, Job, Kind, Result, continuous_only
from ..contract.chains import FREE, Length
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
_DIVERGED = (
    "nuts: %d transitions diverged at target_accept %g; running again at %g and discarding the "
    "first run."
)
_NO_START = "NUTS could not start: {}"
WARM_UP = 0.0
"""Share of a run of `exact` that is not used: adaptation comes before its iterations."""

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
        None,
        "chains that run in parallel. None: all cores. The draws do not depend on it",
        above=0,
        draws_depend=False,
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
    logger.warning(_DIVERGED, count, FIRST, SECOND)
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
            raise FitFailed(_NO_START.format(error)) from error
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


def chains(
    target: Target, options: Options, job: Job, length: Length, start: Arrays | None = None
) -> "Chains":
    """Return chains by nutpie that can be continued; every draw of theirs is held.

    `start` is what `last` of earlier chains returned; None: dispersed starts.
    """
    return Chains(target, options, job, length.limit, start)


class Chains:
    """Chains that sample in the background and pause when they are far enough.

    (A `contract.chains.Chains`.) Adaptation comes before their iterations. If more than one
    transition in a thousand has diverged after the first advance, all start again with smaller
    steps, as in `fit`.
    """

    def __init__(
        self, target: Target, options: Options, job: Job, limit: int, start: Arrays | None = None
    ) -> None:
        self.options, self.job, self.limit = options, job, limit
        started = time.perf_counter()
        with job.report.stage("compiling"):
            model = _compiled(target, job.names)
        self.seconds_compile = time.perf_counter() - started
        self._models = [
            model if start is None else replace(model, initial_point_func=_at(start[FREE][c]))
            for c in range(job.chains)
        ]
        self.attrs: dict[str, Any] = {}
        self._samplers: list[Any] = []
        self._done: list[int] = []
        self._target, self._again = options.target_accept or FIRST, options.target_accept is None
        self.iterations, self.every = 0, 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sampler in self._samplers:
            sampler.cancel()
        self._samplers = []

    def advance(self, iterations: int, every: int, update: Update) -> None:
        """Take each chain to so many draws; all are kept, and `read` leaves out most of them."""
        self._run(iterations, update)
        self.iterations, self.every = iterations, every
        if not self._again:
            return
        self._again = False
        count = int(self.read(0)[1]["diverging"].sum())
        if count > FEW_DIVERGENT * self.job.chains * iterations:
            logger.warning(_DIVERGED, count, FIRST, SECOND)
            self.__exit__()
            self._target = SECOND
            self.attrs["diverged_at_first"] = count
            self._run(iterations, update)
        self.attrs["target_accept"] = self._target

    def read(self, first: int) -> tuple[Arrays, Arrays]:
        """Return the posterior and the statistics of every `every`-th draw after `first`."""
        parts = [_arrays(sampler.inspect().copy(), 0) for sampler in self._samplers]
        wanted = slice(first + self.every - 1, self.iterations, self.every)
        posterior, stats = (
            {name: np.concatenate([part[i][name][:, wanted] for part in parts]) for name in names}
            for i, names in enumerate(parts[0])
        )
        return posterior, stats

    def last(self) -> Arrays:
        """Return the last unconstrained vector of each chain (chain, P)."""
        trees = [sampler.inspect() for sampler in self._samplers]
        return {FREE: np.stack([_free(tree)[self.iterations - 1] for tree in trees])}

    def _run(self, iterations: int, update: Update) -> None:
        """Let as many chains run at once as there are cores, until each is far enough."""
        import nutpie

        options, job = self.options, self.job
        tune = options.tune * (2 if self._target == SECOND and options.target_accept is None else 1)
        workers = min(job.chains, options.cores or os.cpu_count() or 1)
        if not self._samplers:
            self._done = [0] * job.chains
        seeds = np.random.SeedSequence(job.seed).generate_state(job.chains).tolist()
        pending, running = [*range(job.chains)], set[int]()
        while pending or running:
            while pending and len(running) < workers:
                chain = pending.pop(0)
                running.add(chain)
                if chain < len(self._samplers):
                    self._samplers[chain].resume()
                    continue  # to the next one
                self._samplers.append(
                    nutpie.sample(
                        self._models[chain],
                        draws=self.limit,
                        tune=tune,
                        chains=1,
                        cores=1,
                        seed=seeds[chain],
                        target_accept=self._target,
                        maxdepth=options.max_treedepth,
                        save_warmup=False,
                        progress_bar=False,
                        blocking=False,
                        store_unconstrained=True,
                        progress_rate=20,
                        progress_callback=partial(self._told, chain),
                    )
                )
            time.sleep(0.01)
            for chain in [*running]:
                ended = _ended(self._samplers[chain])
                if self._done[chain] >= tune + iterations and not ended:
                    self._samplers[chain].pause()
                if self._done[chain] >= tune + iterations or ended:
                    running.remove(chain)
            update(sum(max(0, done - tune) for done in self._done))

    def _told(self, chain: int, states: list[Any]) -> None:
        self._done[chain] = max([self._done[chain], *(s.finished_draws for s in states)])


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
            raise FitFailed(_NO_START.format(error)) from error
    return _result(tree, 1, compile_seconds, time.perf_counter() - started)


def _result(tree: xr.DataTree, column: int, seconds_compile: float, seconds_run: float) -> Result:
    """Copy draws and statistics out of the sampler's tree, under our names."""
    posterior, sample_stats = _arrays(tree, column)
    return Result(
        posterior=posterior,
        sample_stats=sample_stats,
        seconds_compile=seconds_compile,
        seconds_run=seconds_run,
    )


def _arrays(tree: xr.DataTree, column: int) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Return the draws and the statistics of the sampler's tree, under our names."""
    posterior = tree["posterior"].to_dataset()
    stats = tree["sample_stats"].to_dataset()
    renamed = {ours: theirs[column] for ours, theirs in STATISTICS.items()}
    return (
        {str(k): np.asarray(v.values) for k, v in posterior.data_vars.items()},
        {o: np.asarray(stats[t].values) for o, t in renamed.items() if t in stats},
    )


def _ended(sampler: Any) -> bool:
    """Whether a background sampler has made all its draws; an error if it could not."""
    try:
        return bool(sampler.is_finished)
    except TimeoutError:
        return False  # it is at work, or paused
    except RuntimeError as error:
        raise FitFailed(_NO_START.format(str(error).splitlines()[0])) from error


def _free(tree: xr.DataTree) -> np.ndarray:
    """Return the unconstrained vectors (draw, P) of one chain."""
    return np.asarray(tree["sample_stats"].to_dataset()["unconstrained_draw"].values[0])


def _at(point: np.ndarray) -> Callable[[int | None], np.ndarray]:
    """Return the function that starts a chain at a point, whatever the seed."""
    return lambda seed: point
