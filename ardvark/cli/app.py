"""The command line: the same API, one command for the main job."""

import logging
import shlex
import shutil
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ardvark.common.interrupt import last_words

from .arguments import pairs, words
from .calibrate import calibrate
from .reference import app as reference_app
from .reproduce import reproduce

if TYPE_CHECKING:
    from xarray import DataTree

    from ardvark.data import Dataset
    from ardvark.inference import Comparison
    from ardvark.models import Problem

app = typer.Typer(
    name="ardvark",
    help="Doubly sparse Bayesian classifiers: exact posteriors, and the papers' approximations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

_READING = ("sep", "drop", "drop_missing", "classes", "positive")
_KEYS = {"model", "data", "target", "test_size", "split_seed", "hypers", "command", "fingerprint"}
"""Settings of how a CSV file is read, and those that every study has."""


class _Names(typer.core.TyperGroup):
    """A group in which a word that is no command names a data set: `ardvark data NAME`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        known = args[0] in self.commands or args[0].startswith("-")
        return super().resolve_command(ctx, args if known else ["show", *args])


data_app = typer.Typer(
    cls=_Names,
    help="List the data sets, describe one (ardvark data NAME), or download one.",
    invoke_without_command=True,
)
app.add_typer(data_app, name="data")
app.add_typer(reference_app, name="reference")
app.command()(calibrate)
app.command()(reproduce)


def _version(wanted: bool) -> None:
    if wanted:
        from ardvark import __version__

        typer.echo(f"ardvark {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


# Modules of the package are imported inside the commands: `ardvark --help` must not load PyMC.


@app.command()
def models(
    name: Annotated[str | None, typer.Argument(help="The model to explain.")] = None,
    bibtex: Annotated[bool, typer.Option("--bibtex", help="Print its paper as BibTeX.")] = False,
) -> None:
    """List the models, or explain one: its generative program, symbols and hyperparameters."""
    from ardvark.common.validate import named
    from ardvark.models import ZOO, docs

    from . import listing

    if name is None:
        if bibtex:
            raise _input_error("--bibtex needs a model: `ardvark models MODEL --bibtex`.")
        listing.list_models()
        return
    spec = ZOO[named("model", name, ZOO, "`ardvark models` lists them.")]
    if bibtex:
        typer.echo(docs.bibtex(spec))
    else:
        listing.explain_model(spec)


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="The method to explain.")] = None,
    for_: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--for",
            metavar="MODEL DATA",
            help="Say which methods apply to a model and data set, and how long the exact "
            "posterior takes.",
        ),
    ] = None,
    target: Annotated[str | None, typer.Option(help="Label column, where DATA is a CSV.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Set a hyperparameter: name=value.")
    ] = None,
) -> None:
    """List the methods, or explain one: what it approximates, its cost and its options."""
    from ardvark.common.validate import named
    from ardvark.inference import BACKENDS

    from . import listing

    if for_ is not None:
        model, data = for_
        asked = {"model": model, "data": data, "target": target, "hypers": pairs(set_, "--set")}
        listing.recommend(_problem(asked)[0])
    elif name is None:
        listing.list_methods()
    else:
        hint = "`ardvark methods` lists them."
        listing.explain_method(named("method", name, BACKENDS, hint))


@data_app.callback()
def data(context: typer.Context) -> None:
    """List the data sets and which of them are on this machine, or describe one."""
    if context.invoked_subcommand is None:
        from . import listing

        listing.list_data()


@data_app.command(hidden=True)
def show(name: str) -> None:
    """Describe a data set: `ardvark data NAME`."""
    from ardvark.data import known_name

    from . import listing

    listing.explain_data(known_name(name))


@data_app.command()
def fetch(name: Annotated[str, typer.Argument(help="Name of the data set.")]) -> None:
    """Download a data set from its public source into the user's cache, and check it."""
    from ardvark.data import fetch as fetch_data

    typer.echo(f"{name}: {fetch_data(name)}")


@app.command()
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
    target: Annotated[str | None, typer.Option(help="Label column of a CSV file.")] = None,
    sep: Annotated[
        str | None, typer.Option(help="Its separator, or 'tab'. Default: taken from the header.")
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Columns not to use as features: A,B,...")
    ] = None,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows with missing values.")
    ] = False,
    classes: Annotated[
        str | None, typer.Option(help="Keep only the rows of two labels, y = 0 and y = 1: A,B.")
    ] = None,
    positive: Annotated[
        str | None, typer.Option(help="The label of y = 1. All other labels become y = 0.")
    ] = None,
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
    stored: Annotated[
        bool,
        typer.Option(
            "--stored", help="Measure errors from a stored posterior (`ardvark reference list`)."
        ),
    ] = False,
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
) -> None:
    """Fit one problem with several methods, compare the fits and write a report.

    Finished fits are kept. Run an interrupted command again to compute only what is missing.
    """
    from ardvark.common.validate import named
    from ardvark.inference.comparison import study
    from ardvark.inference.contract.sampling import Sampling
    from ardvark.inference.fitting import registry, run
    from ardvark.inference.references import references

    sampling = Sampling(draws=draws, chains=chains, seed=seed, keep=keep, progressbar=True)
    settings: dict[str, Any] = {
        "model": model,
        "data": str(Path(data).resolve()) if target else data,
        "target": target,
        "sep": sep,
        "drop": words(drop),
        "drop_missing": drop_missing,
        "classes": words([classes] if classes else None),
        "positive": positive,
        "test_size": test_size,
        "split_seed": split_seed,
        "hypers": pairs(set_, "--set"),
        "command": shlex.join(["ardvark", *sys.argv[1:]]),
        "sensitivity": sensitivity,
        "stored": stored,
    }
    problem, test = _problem(settings)
    folder = out or Path("results") / f"{problem.spec.name}-{Path(data).stem}"
    _check_folder(folder)
    names = registry.usual(problem) if methods is None else words([methods])
    known = [*registry.BACKENDS, "paper"]
    chosen: dict[str, dict[str, Any]] = {named("method", m, known): {} for m in names}
    if not chosen:
        raise _input_error("--methods is empty; `ardvark methods` lists the methods.")
    for key, value in pairs(option, "--option").items():
        given, _, name = key.partition(".")
        method = {m.casefold(): m for m in chosen}.get(given.casefold(), "")
        if not method or not name:
            raise _input_error(
                f"--option {key!r}: expected method.name=value, with a method out of "
                f"{', '.join(chosen)}."
            )
        chosen[method][name] = value
    if sensitivity:
        study.check_sensitivity(problem, chosen)
    if stored:
        references.stored(problem)  # before anything is computed
    typer.echo(problem.describe(), err=True)
    large = run.megabytes(problem, sampling, exact="exact" in chosen)
    typer.echo(f"Results go to {folder}, at most {large:.0f} MB per method.", err=True)
    last_words(f"Stopped. Finished fits are in {folder}. Run the same command to continue.")
    fits = study.run(problem, chosen, folder, sampling, settings=settings)
    _finish(folder, problem, test, fits, settings)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `ardvark compare` wrote.")],
) -> None:
    """Write the table, the figures and the report again from the stored fits."""
    from ardvark.inference.comparison import study

    settings = _settings(folder)
    problem, test = _problem(settings)
    _finish(folder, problem, test, study.load_fits(folder, problem), settings)


@app.command()
def export(
    folder: Annotated[Path, typer.Argument(help="A folder that `ardvark compare` wrote.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the CSV files. Default: the same folder.")
    ] = None,
) -> None:
    """Write effects, P(active) and predictions of each fit to CSV files."""
    from ardvark.inference.comparison import study
    from ardvark.inference.fits.datatree import replacing

    from .export import tables

    settings = _settings(folder)
    problem, test = _problem(settings)
    fits = study.load_fits(folder, problem)
    target = out or folder
    _check_folder(target)
    target.mkdir(parents=True, exist_ok=True)
    for name, table in tables(problem, test, fits).items():
        with replacing(target / f"{name}.csv") as part:
            table.to_csv(part)
        typer.echo(str(target / f"{name}.csv"))


def _check_folder(folder: Path) -> None:
    """Refuse a folder that could not be written to, before anything is computed or written."""
    for place in (folder, *folder.parents):
        if place.exists() and not place.is_dir():
            raise _input_error(f"{place} is a file, so results cannot be written to {folder}.")
    if (folder / "study.json").exists():
        _settings(folder)


def _settings(folder: Path) -> dict[str, Any]:
    """Return what a study was asked for."""
    from ardvark.common.validate import InputError
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


def _problem(settings: dict[str, Any]) -> "tuple[Problem, Dataset | None]":
    """Return the problem and the test set that the settings describe."""
    import ardvark as av

    source: Any = settings["data"]
    reading = {name: settings[name] for name in _READING if settings.get(name)}
    if settings["target"]:
        from ardvark.csvfile import read_csv

        source = read_csv(source, settings["target"], **reading)
    elif str(source).lower().endswith(".csv"):
        raise _input_error(f"{source} is a file: give its label column with --target COLUMN.")
    elif reading:
        flags = ", ".join(f"--{name.replace('_', '-')}" for name in reading)
        raise _input_error(f"{flags} applies to a CSV file, which also needs --target COLUMN.")
    else:
        source = av.load(source)
    test = None
    if settings.get("test_size"):
        source, test = source.split(settings["test_size"], random_seed=settings["split_seed"])
    return av.problem(settings["model"], source, **settings["hypers"]), test


def _finish(
    folder: Path,
    problem: "Problem",
    test: "Dataset | None",
    fits: "dict[str, DataTree]",
    settings: dict[str, Any],
) -> None:
    """Compare, print the table and where the results are; exit 1 if a method failed."""
    from ardvark.common.validate import InputError
    from ardvark.inference.comparison import study
    from ardvark.inference.scoring.columns import lines, table_text

    from .listing import NARROW

    moved = None
    if settings.get("sensitivity"):
        try:
            moved = study.prior_sensitivity(folder, problem, fits, test)
        except InputError as error:  # the fits are there, and so is the report
            typer.echo(f"No prior sensitivity: {error}", err=True)
    comparison = study.summarise(
        folder,
        problem,
        fits,
        test,
        settings["command"],
        sensitivity=moved,
        reference="stored" if settings.get("stored") else None,
    )
    width = shutil.get_terminal_size((NARROW, 24)).columns if sys.stdout.isatty() else NARROW
    _print_verdicts(comparison)
    typer.echo(f"\nScorecard\n\n{lines(table_text(comparison.table), width)}\n")
    for remark in comparison.remarks:
        typer.echo(textwrap.fill(remark, NARROW))
    for method, reason in comparison.table["reason"].dropna().items():
        if reason:
            typer.echo(textwrap.fill(f"{method}: {reason}", NARROW))
    if comparison.reference:
        typer.echo(f"Reference: {comparison.reference}.")
    for method, sentence in comparison.selection().items():
        if comparison.reference in (None, method):  # the others' are on the page
            typer.echo(textwrap.fill(f"{method}: {sentence}", 80))
    if moved is not None:
        typer.echo(textwrap.fill(f"Prior sensitivity: {moved.text()}", 80))
    typer.echo(f"Report: {folder / 'report.html'}")
    if (comparison.table["status"] == "failed").any():
        raise typer.Exit(1)


def _print_verdicts(comparison: "Comparison") -> None:
    """Print what each fit may be used for, in 80 columns; its level is coloured as well."""
    from ardvark.inference.verdicts.verdict import LEVELS

    for name, verdict in comparison.verdict.items():
        first, _, rest = verdict.text(name).partition("\n")
        level = f"[{verdict.level}]"
        coloured = typer.style(level, fg=LEVELS[verdict.level], bold=True)
        typer.echo(first.replace(level, coloured, 1) + (f"\n{rest}" if rest else ""))
    if comparison.unjudged:
        typer.echo(textwrap.fill(comparison.unjudged, 80))


def _input_error(message: str) -> Exception:
    from ardvark.common.validate import InputError

    return InputError(message)


def main() -> None:
    """Run the command line; bad input is one line on standard error and exit code 2."""
    from ardvark.common.validate import InputError

    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("ardvark").setLevel(logging.INFO)
    try:
        app()
    except (InputError, TypeError) as error:
        if isinstance(error, TypeError) and "has no option" not in str(error):
            raise
        typer.echo(f"ardvark: {error}", err=True)
        sys.exit(2)
    except OSError as error:  # a disk that is full, a folder that may not be written to
        typer.echo(f"ardvark: {error}", err=True)
        sys.exit(2)
