"""`ardvark compare`: fits of one problem in a folder, and what is written from them."""

import functools
import inspect
import shutil
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ardvark.common.interrupt import last_words
from ardvark.common.validate import InputError, named, pairs

from . import tables
from .arguments import typed, words
from .studies import asked_of, check_folder, problem_of

if TYPE_CHECKING:
    from xarray import DataTree

    from ardvark.data import Dataset
    from ardvark.models import Problem

Full = Annotated[bool, typer.Option("--full", help="Print all that the report says of the fits.")]


# Modules of the package are imported inside the commands: `ardvark --help` must not load PyMC.


@tables.takes_table
def compare(
    model: Annotated[str, typer.Argument(help="Model: `ardvark models` lists them.")],
    data: Annotated[str, typer.Argument(help="Data set (`ardvark data`), or a CSV file.")],
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, comma-separated; 'paper' is the paper's algorithm. Default: exact, and "
            "the approximations that apply."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results. Default: results/MODEL-DATA.")
    ] = None,
    *,
    table: dict[str, Any],
    always: tables.Always = None,
    test_size: Annotated[
        float, typer.Option(help="Share of samples held out to test predictions; 0: none.")
    ] = 0.0,
    split_seed: Annotated[int, typer.Option(help="Seed of the split.", min=0)] = 0,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Set a hyperparameter: name=value.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="Set an option of a method: method.name=value.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws per chain.")] = 1000,
    chains: Annotated[int, typer.Option(help="Number of chains.")] = 4,
    seed: Annotated[int, typer.Option(help="Random seed for every method.", min=0)] = 0,
    keep: Annotated[
        Literal["all", "shared"],
        typer.Option(help="What to store of each fit: all variables, or only weights and eta."),
    ] = "all",
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity",
            help="Refit the reference with active features and slab halved and doubled: four fits.",
        ),
    ] = False,
    effect: Annotated[
        float,
        typer.Option(help="Size of an effect, per sd of the feature, above which it is counted."),
    ] = 0.5,
    full: Full = False,
) -> None:
    """Fit one problem with several methods, compare the fits and write a report and tables.

    Finished fits are kept: run an interrupted command again to compute only what is missing.
    """
    from ardvark.common import memory
    from ardvark.data import Table
    from ardvark.inference.comparison import study
    from ardvark.inference.fits.selection import check_threshold, select_at
    from ardvark.inference.methods import registry, run
    from ardvark.inference.target.sampling import Sampling

    from .listing import foretold

    check_threshold(effect, "--effect")
    sampling = Sampling(draws=draws, chains=chains, seed=seed, keep=keep, progressbar=True)
    settings = asked_of(model, data, table, always, test_size, split_seed, set_)
    settings |= {"command": typed(), "sensitivity": sensitivity}
    problem, test = problem_of(settings)
    if isinstance(problem.data, Table):
        cleaning = problem.data.cleaning.declared() | {"became": problem.data.encoder.became()}
        settings |= {"data": str(Path(data).resolve()), "cleaning": cleaning}
    folder = out or Path("results") / f"{problem.spec.name}-{problem.data.name}"
    check_folder(folder)
    names = registry.usual(problem) if methods is None else words([methods])
    known = [*registry.BACKENDS, "paper"]
    chosen: dict[str, dict[str, Any]] = {named("method", m, known): {} for m in names}
    if methods is None and (left_out := registry.without_own(problem)):
        typer.echo(textwrap.fill(left_out, 80), err=True)
    if not chosen:
        raise InputError("--methods is empty; `ardvark methods` lists the methods.")
    meant = {m.casefold(): m for m in chosen}
    if "paper" in chosen:
        own = registry.resolve("paper", problem)
        meant.setdefault(own.casefold(), "paper")
        typer.echo(f"The paper's algorithm (paper) is {own}.", err=True)
    for key, value in pairs(option, "--option").items():
        given, _, name = key.partition(".")
        method = meant.get(given.casefold(), "")
        if not method or not name:
            raise InputError(
                f"--option {key!r}: expected method.name=value, with a method out of "
                f"{', '.join(chosen)}."
            )
        chosen[method][name] = value
    if sensitivity:
        study.check_sensitivity(problem, chosen)
    typer.echo(problem.describe() if full else _introduced(problem), err=True)
    large = run.stored_size(problem, sampling, exact="exact" in chosen)
    if "exact" in chosen and (time := foretold(problem)):
        typer.echo(f"exact: {time}.", err=True)
    typer.echo(f"Results go to {folder}, at most {memory.text(large)} per method.", err=True)
    _check_size(problem, large * len(chosen), folder)  # a comparison holds all of them
    last_words(f"Stopped. Finished fits are in {folder}. Run the same command to continue.")
    fits = study.run(problem, chosen, folder, sampling, settings=settings)
    fits = {name: select_at(problem, tree, effect) for name, tree in fits.items()}
    _finish(folder, problem, test, fits, settings, full)


def takes_study(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has the options of `compare` in the place of its argument `study`."""
    own, other = inspect.signature(command), inspect.signature(compare)
    options = {
        name: option.replace(kind=option.KEYWORD_ONLY)
        for name, option in other.parameters.items()
        if name not in ("model", "data")
    }

    @functools.wraps(command)
    def taking(**given: Any) -> None:
        command(study={name: given.pop(name) for name in options}, **given)

    first = [p for name, p in own.parameters.items() if name != "study"]
    # Typer reads both; the type of a function does not declare the first
    parameters = [*first, *options.values()]
    taking.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    taking.__annotations__ = {p.name: p.annotation for p in parameters}
    return taking


def _introduced(problem: "Problem") -> str:
    """Return a problem's description without its hyperparameters, in 80 columns."""
    told = [*problem.describe().splitlines()[: 3 if problem.always else 2], *problem.data.remarks]
    return "\n".join(textwrap.fill(line.strip(), 80, subsequent_indent="  ") for line in told)


def _check_size(problem: "Problem", draws: float, folder: Path) -> None:
    """Refuse a study that does not fit into memory or on the disk, before it takes either.

    `draws` is the size of its fits, in bytes.
    """
    from ardvark.common import memory

    kernel = problem.kernel
    needed = {"draws": draws}
    if kernel is not None and not kernel.is_primal:
        needed["kernel"] = 8.0 * len(problem.y) * len(problem.basis)
    what = " and ".join(f"{memory.text(size)} for the {name}" for name, size in needed.items())
    there = next(
        place for place in (folder.absolute(), *folder.absolute().parents) if place.is_dir()
    )
    limits = {"memory": memory.free(), "disk": shutil.disk_usage(there).free}
    for name, limit in limits.items():
        size = draws if name == "disk" else sum(needed.values())
        if size > limit:
            raise InputError(
                f"this study needs {what}, and there is {memory.text(limit)} of {name}. Ask for "
                "fewer --draws or --chains, store less with --keep shared, or take fewer rows."
            )


def _finish(
    folder: Path,
    problem: "Problem",
    test: "Dataset | None",
    fits: "dict[str, DataTree]",
    settings: dict[str, Any],
    full: bool,
) -> None:
    """Compare, write tables, print what was found and where it is; exit 1 if a method failed."""
    from ardvark.inference.comparison import study
    from ardvark.inference.comparison.text import BELOW

    from .export import export
    from .listing import NARROW

    moved = None
    if settings.get("sensitivity"):
        try:
            moved = study.prior_sensitivity(folder, problem, fits)
        except InputError as error:  # the fits are there, and so is the report
            typer.echo(f"No prior sensitivity: {error}", err=True)
    comparison = study.summarise(
        folder,
        problem,
        fits,
        test,
        settings["command"],
        sensitivity=moved,
    )
    width = shutil.get_terminal_size((NARROW, 24)).columns if sys.stdout.isatty() else NARROW
    told = replace(comparison, verdict=comparison.on_command_line())
    typer.echo(_coloured(told.text(full, width)))
    if moved is not None:
        lines = None if full else BELOW - 1
        words = f"Prior sensitivity: {moved.text()}"
        typer.echo(textwrap.fill(words, NARROW, max_lines=lines, placeholder=" ..."))
    typer.echo(f"Report: {folder / 'report.html'}{'' if full else ' (--full prints it all)'}")
    typer.echo(f"Tables beside it: {', '.join(export(problem, test, fits, folder))}")
    if (comparison.table["status"] == "failed").any():
        raise typer.Exit(1)


def _coloured(text: str) -> str:
    """Return a text with the levels of its verdicts in colour."""
    from ardvark.inference.comparison.verdicts.saying import LEVELS

    for level, colour in LEVELS.items():
        text = text.replace(f"[{level}]", typer.style(f"[{level}]", fg=colour, bold=True))
    return text
