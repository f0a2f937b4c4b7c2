"""`ardvark compare`: a study in a folder, and what is written from it."""

import functools
import inspect
import shutil
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ardvark.common.interrupt import last_words
from ardvark.common.validate import InputError, named, pairs

from . import tables
from .arguments import typed, words

if TYPE_CHECKING:
    from xarray import DataTree

    from ardvark.data import Dataset
    from ardvark.models import Problem

_KEYS = {"model", "data", "table", "test_size", "split_seed", "hypers", "command", "fingerprint"}
"""Settings that every study has."""

Full = Annotated[bool, typer.Option("--full", help="Print all that the report says of the fits.")]
StudyFolder = Annotated[Path, typer.Argument(help="A folder that `ardvark compare` wrote.")]


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


def asked_of(
    model: str,
    data: str,
    table: Mapping[str, Any],
    always: list[str] | None,
    test_size: float,
    split_seed: int,
    set_: list[str] | None,
) -> dict[str, Any]:
    """Return the settings of a study that say which problem it is."""
    settings: dict[str, Any] = {
        "model": model,
        "data": data,
        "table": dict(table),
        "test_size": test_size,
        "split_seed": split_seed,
        "hypers": pairs(set_, "--set"),
    }
    return settings | ({"always": words(always)} if always else {})


def _introduced(problem: "Problem") -> str:
    """Return a problem's description without its hyperparameters, in 80 columns."""
    told = [*problem.describe().splitlines()[: 3 if problem.always else 2], *problem.data.remarks]
    return "\n".join(textwrap.fill(line.strip(), 80, subsequent_indent="  ") for line in told)


def check_folder(folder: Path) -> None:
    """Refuse a folder that could not be written to, before anything is computed or written."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise InputError(f"{place} is a file, so results cannot be written to {folder}.")
    if (folder / "study.json").exists():
        settings_of(folder)


def settings_of(folder: Path) -> dict[str, Any]:
    """Return what a study was asked for."""
    from ardvark.inference.comparison import study

    file = folder / study.SETTINGS
    try:
        settings = study.read_settings(folder)
        lacking = _KEYS - set(settings)
    except InputError:
        raise
    except (ValueError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
    else:
        if not lacking:
            return settings
        reason = f"{', '.join(sorted(lacking))} missing"
    raise InputError(
        f"{file} cannot be read ({reason}). Delete it and run the same `ardvark compare` again; "
        "finished fits will be reused."
    )


def problem_of(settings: Mapping[str, Any]) -> "tuple[Problem, Dataset | None]":
    """Return the problem and the test set that the settings describe."""
    import ardvark as av
    from ardvark.models.arguments import model_named

    model, data = settings["model"], settings["data"]
    model_named(av.ZOO, model, data)  # before a large table is read
    always = settings.get("always", ())
    source = dataset_of(data, settings["table"], ["compare", model, data], always)
    test = None
    size = settings.get("test_size", 0.0)
    if not 0.0 <= size < 1.0:
        raise InputError(
            f"--test-size is the share of rows to test on, from 0 (none) to below 1, got {size:g}."
        )
    if size:
        source, test = source.split(size, random_seed=settings["split_seed"])
    return av.problem(settings["model"], source, always=always, **settings["hypers"]), test


def dataset_of(
    source: str, given: Mapping[str, Any], command: list[str], always: Sequence[str] = ()
) -> "Dataset":
    """Return a data set by its name, or a table from a file.

    The error for a table that must be cleaned prints the command that does: the one that was typed,
    if it is this `command` or asks about it. A column of `always` that is not in the table is said
    first, for the command would end at it.
    """
    import ardvark as av
    from ardvark.data.faults import TableError
    from ardvark.data.reading import is_file

    if not given.get("target") and not is_file(source):
        if given:
            asked = ", ".join(map(tables.flag, given))
            raise InputError(
                f"{asked} applies to a file with a table, and {source!r} is a data set."
            )
        return av.load(source)
    try:
        return av.table(source, **given)
    except TableError as error:
        # `methods --for` takes the options of `compare`
        asked = sys.argv[1:2] in (command[:1], ["methods"])
        typed = sys.argv[1:] if asked else command
        for name in (n for n in always if "=" not in n):  # sex=male is there once it is encoded
            named("column", name, error.columns)
        wanted = error.mended.declared() if error.mended else {}
        command_line = tables.mended_command(typed, wanted)
        raise InputError(error.report(command_line, tables.answer)) from None


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
