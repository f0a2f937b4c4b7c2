"""The command line: the same API, one command for the main job."""

import json
import logging
import shlex
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from xarray import DataTree

    from ardvark.data import Dataset
    from ardvark.inference import Comparison
    from ardvark.models import ModelSpec, Problem

app = typer.Typer(
    name="ardvark",
    help="Doubly sparse Bayesian classifiers: exact posteriors beside the papers' approximations.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
data_app = typer.Typer(help="List the data sets, or fetch one.", invoke_without_command=True)
app.add_typer(data_app, name="data")

# Modules of the package are imported inside the commands: `ardvark --help` must not load PyMC.


@app.command()
def models(
    name: Annotated[str | None, typer.Argument(help="A model, to read all about it.")] = None,
) -> None:
    """List the models of the zoo, or explain one: its program, symbols, hyperparameters."""
    from ardvark.models import ZOO

    if name is None:
        _list_models(list(ZOO.values()))
    elif name in ZOO:
        _explain(ZOO[name])
    else:
        from ardvark.validate import unknown

        raise unknown("model", name, ZOO, "`ardvark models` lists them.")


def _list_models(specs: "list[ModelSpec]") -> None:
    """Print one row a model, and below why a method does not apply."""
    from ardvark.inference import BACKENDS

    columns = ("model", "paper", "year", "priors", "link", "kernels", "methods", "own method")
    rows = []
    refusals: dict[str, list[str]] = {}
    for s in specs:
        apply, why_not = _methods(s)
        own = s.paper_method if s.paper_method in BACKENDS else f"{s.paper_method} (not yet)"
        row = [s.name, s.citation, s.year, s.priors, s.link, ", ".join(s.kernels) or "none"]
        rows.append([*row, ", ".join(apply) or "none yet", own if s.paper_method else "none"])
        for method, reason in why_not.items():
            refusals.setdefault(f"{method}: {reason}", []).append(s.name)
    _print_table("Models", columns, rows)
    for reason, names in refusals.items():
        typer.echo(f"Not for {', '.join(names)}: {reason}.")
    typer.echo("`ardvark models MODEL` explains one.")


def _methods(spec: "ModelSpec") -> tuple[list[str], dict[str, str]]:
    """Return the methods that apply to a model as it is by default, and why others do not.

    The own algorithms of other models go without saying.
    """
    from ardvark.inference import fitting
    from ardvark.models import ZOO

    others = {s.paper_method for s in ZOO.values()} - {spec.paper_method}
    why_not = fitting.refusals(_small_problem(spec.name))
    apply = [m for m, reason in why_not.items() if reason is None]
    return apply, {m: r for m, r in why_not.items() if r is not None and m not in others}


def _explain(spec: "ModelSpec") -> None:
    """Print one model: docstring, symbols, hyperparameters, methods."""
    from ardvark.inference import BACKENDS
    from ardvark.models import docs

    parts = docs.sections(spec.doc)
    typer.echo(f"{spec.title} ({spec.name})\n\n{parts['']}\n\n{parts[docs.PROGRAM]}\n")
    columns = ("paper's symbol", "name in code", "shape", "meaning", "equation")
    rows = [
        (s.symbol, ", ".join(s.names), s.shape, s.meaning, s.equation) for s in docs.symbols(spec)
    ]
    _print_table("Symbols", columns, rows)
    remarks = docs.hyperparameters(spec)
    _print_table("Hyperparameters", ("hyperparameter", "default", "paper", "remark"), remarks)
    for title in (docs.DEPARTURES, docs.DIFFICULTIES):
        typer.echo(f"{title}\n{parts[title]}\n")
    apply, why_not = _methods(spec)
    typer.echo(f"Methods: {', '.join(apply) or 'none yet'}.")
    for method, reason in why_not.items():
        typer.echo(f"Not {method}: {reason}.")
    if spec.paper_method and spec.paper_method not in BACKENDS:
        typer.echo(f"The paper's own, {spec.paper_method}, is not in the zoo yet.")


@app.command()
def methods(
    name: Annotated[str | None, typer.Argument(help="A method, to read all about it.")] = None,
) -> None:
    """List the methods, or explain one: what it approximates, its cost, its options."""
    from ardvark.inference import BACKENDS
    from ardvark.validate import unknown

    if name is None:
        rows = [(n, b.KIND, _models_of(n)) for n, b in BACKENDS.items()]
        _print_table("Methods", ("method", "kind", "models"), rows)
        typer.echo("`ardvark methods METHOD` explains one.")
    elif name in BACKENDS:
        _explain_method(name)
    else:
        raise unknown("method", name, BACKENDS, "`ardvark methods` lists them.")


def _models_of(method: str) -> str:
    """Return the models that a method applies to, as they are by default."""
    from ardvark.inference import fitting
    from ardvark.inference.target import Target
    from ardvark.models import ZOO

    backend = fitting.BACKENDS[method]
    found = [n for n in ZOO if backend.supports(Target(_small_problem(n))) is None]
    if len(found) == len(ZOO):
        return "every model"
    if found == [n for n, spec in ZOO.items() if not spec.masked]:
        return "every model without binary masks"
    return ", ".join(found)


def _explain_method(name: str) -> None:
    """Print one method: what it is, in three sentences, and its options."""
    import inspect

    from ardvark.inference import BACKENDS

    backend = BACKENDS[name]
    title = (inspect.getdoc(backend) or "").partition("\n")[0]
    typer.echo(textwrap.fill(f"{name} ({backend.KIND}): {title}", 80) + "\n")
    about = backend.ABOUT
    for heading, text in (
        ("Models", _models_of(name) + "."),
        ("Approximates", about.approximates),
        ("Exact", about.exact),
        ("Cost", about.cost),
    ):
        indent = " " * 14
        typer.echo(textwrap.fill(f"{heading + ':':<13} {text}", 80, subsequent_indent=indent))
    typer.echo("\nOptions, with their defaults and what they accept\n")
    for o in backend.Options.declared():  # a table would leave no room for what they mean
        typer.echo(f"  {o.name} = {o.default}  ({o.accepts()})")
        indent = " " * 6
        typer.echo(textwrap.fill(o.meaning, 80, initial_indent=indent, subsequent_indent=indent))


def _small_problem(model: str) -> "Problem":
    """Return a problem of a model as it is by default, to ask which methods apply to it."""
    import numpy as np

    from ardvark.models import problem

    return problem(model, (np.arange(12.0).reshape(4, 3) ** 2, np.arange(4) % 2))


@data_app.callback()
def data(context: typer.Context) -> None:
    """List the data sets, with what is present on this machine."""
    if context.invoked_subcommand is None:
        from ardvark.data import available

        table = available().reset_index()
        rows = table.astype(object).where(table.notna(), "").to_numpy().tolist()
        _print_table("Data sets", tuple(table.columns), rows)


@data_app.command()
def fetch(name: Annotated[str, typer.Argument(help="Name of the data set.")]) -> None:
    """Fetch a data set from its public home into the user cache, and check it."""
    from ardvark.data import fetch as fetch_data

    typer.echo(f"{name}: {fetch_data(name)}")


@app.command()
def compare(
    model: Annotated[str, typer.Argument(help="Model: `ardvark models` lists them.")],
    data: Annotated[str, typer.Argument(help="Data set (`ardvark data`), or a CSV file.")],
    methods: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated; 'paper' is the model's own algorithm. Default: all that apply, "
            "but one exact sampler."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results. Default: results/MODEL-DATA.")
    ] = None,
    target: Annotated[str | None, typer.Option(help="Label column of a CSV file.")] = None,
    test_size: Annotated[
        float, typer.Option(help="Share held out for accuracy and log score; 0: none.")
    ] = 0.0,
    split_seed: Annotated[int, typer.Option(help="Seed of the split.")] = 0,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A hyperparameter: name=value.")
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(help="An option of a method: method.name=value.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws a chain.")] = 1000,
    chains: Annotated[int, typer.Option(help="Chains.")] = 4,
    seed: Annotated[int, typer.Option(help="Random seed of every method.")] = 0,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity", help="Refit the reference under half and twice its prior: four fits."
        ),
    ] = False,
) -> None:
    """Fit one problem by several methods, compare them, write a report.

    Finished fits are kept: the same command after a kill computes only what is missing.
    """
    from ardvark.inference import fitting
    from ardvark.inference.comparison import study

    settings: dict[str, Any] = {
        "model": model,
        "data": str(Path(data).resolve()) if target else data,
        "target": target,
        "test_size": test_size,
        "split_seed": split_seed,
        "hypers": _pairs(set_, "--set"),
        "command": shlex.join(["ardvark", *sys.argv[1:]]),
        "sensitivity": sensitivity,
    }
    problem, test = _problem(settings)
    folder = out or Path("results") / f"{model}-{Path(data).stem}"
    names = fitting.usual(problem) if methods is None else methods.split(",")
    chosen: dict[str, dict[str, Any]] = {m.strip(): {} for m in names if m.strip()}
    for key, value in _pairs(option, "--option").items():
        method, _, name = key.partition(".")
        if method not in chosen or not name:
            raise _input_error(
                f"--option {key!r}: expected method.name=value, method one of {', '.join(chosen)}."
            )
        chosen[method][name] = value
    if sensitivity:
        study.check_sensitivity(problem, chosen)
    typer.echo(problem.describe(), err=True)
    try:
        fits = study.run(
            problem,
            chosen,
            folder,
            draws=draws,
            chains=chains,
            random_seed=seed,
            settings=settings,
        )
        _finish(folder, problem, test, fits, settings)
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. Finished fits are in {folder}; run the same command to go on.")
        raise typer.Exit(130) from None


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(help="A folder that `ardvark compare` wrote.")],
) -> None:
    """Make the table, the figures and the page again from the stored fits."""
    from ardvark.inference.comparison import study

    settings = study.read_settings(folder)
    problem, test = _problem(settings)
    _finish(folder, problem, test, study.load_fits(folder, problem), settings)


def _problem(settings: dict[str, Any]) -> "tuple[Problem, Dataset | None]":
    """Return the problem and the test set that the settings describe."""
    import ardvark as av

    source: Any = settings["data"]
    if settings["target"]:
        source = _read_csv(source, settings["target"])
    elif str(source).lower().endswith(".csv"):
        raise _input_error(f"{source} is a file: name its label column with --target COLUMN.")
    else:
        source = av.load(source)
    test = None
    if settings["test_size"]:
        source, test = source.split(settings["test_size"], random_seed=settings["split_seed"])
    return av.problem(settings["model"], source, **settings["hypers"]), test


def _read_csv(path: str, target: str) -> "Dataset":
    import pandas as pd

    from ardvark.data import Dataset

    if not Path(path).exists():
        raise _input_error(f"there is no file {path}.")
    frame = pd.read_csv(path)
    if target not in frame:
        from ardvark.validate import unknown

        raise unknown("label column", target, map(str, frame.columns))
    return Dataset.from_arrays(
        frame.drop(columns=target), frame[target].to_numpy(), name=Path(path).stem
    )


def _pairs(given: list[str] | None, flag: str) -> dict[str, Any]:
    """Return {name: value} of name=value words; a value is JSON, or else a plain word."""
    pairs: dict[str, Any] = {}
    for word in given or ():
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise _input_error(f"{flag} {word!r}: expected name=value.")
        try:
            pairs[name] = json.loads(value)
        except json.JSONDecodeError:
            pairs[name] = value
    return pairs


def _finish(
    folder: Path,
    problem: "Problem",
    test: "Dataset | None",
    fits: "dict[str, DataTree]",
    settings: dict[str, Any],
) -> None:
    """Compare, print the table and where the results are; exit 1 if a method failed."""
    from ardvark.inference.comparison import study
    from ardvark.inference.comparison.columns import table_text
    from ardvark.validate import InputError

    moved = None
    if settings.get("sensitivity"):
        try:
            moved = study.prior_sensitivity(folder, problem, fits, test)
        except InputError as error:  # the fits are there, and so is the report
            typer.echo(f"No prior sensitivity: {error}", err=True)
    comparison = study.summarise(
        folder, problem, fits, test, settings["command"], sensitivity=moved
    )
    shown = table_text(comparison.table)
    rows = [(name, *map(str, row)) for name, row in zip(shown.index, shown.values, strict=True)]
    _print_table("Scorecard", ("", *map(str, shown.columns)), rows)
    for method, reason in comparison.table["reason"].dropna().items():
        if reason:
            typer.echo(f"{method}: {reason}")
    _print_verdicts(comparison)
    if comparison.reference:
        typer.echo(f"Reference: {comparison.reference}.")
    for method, words in comparison.selection().items():
        if comparison.reference in (None, method):  # the others' are on the page
            typer.echo(textwrap.fill(f"{method}: {words}", 80))
    if moved is not None:
        typer.echo(textwrap.fill(f"Prior sensitivity: {moved.text()}", 80))
    typer.echo(f"Report: {folder / 'report.html'}")
    if (comparison.table["status"] == "failed").any():
        raise typer.Exit(1)


def _print_verdicts(comparison: "Comparison") -> None:
    """Print what each fit may be used for, in 80 columns; its level is coloured as well."""
    from ardvark.inference.comparison.verdict import LEVELS

    for name, verdict in comparison.verdict.items():
        first, _, rest = verdict.text(name).partition("\n")
        level = f"[{verdict.level}]"
        coloured = typer.style(level, fg=LEVELS[verdict.level], bold=True)
        typer.echo(first.replace(level, coloured, 1) + (f"\n{rest}" if rest else ""))


def _print_table(title: str, columns: tuple[str, ...], rows: Any) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console.width = 200
    table = Table(title=title)
    for i, column in enumerate(columns):
        table.add_column(column, no_wrap=i == 0)
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row))  # E[tau] is no markup
    console.print(table)


def _input_error(message: str) -> Exception:
    from ardvark.validate import InputError

    return InputError(message)


def main() -> None:
    """Run the command line; bad input is one line on standard error and exit code 2."""
    from ardvark.validate import InputError

    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("ardvark").setLevel(logging.INFO)
    try:
        app()
    except (InputError, TypeError) as error:
        if isinstance(error, TypeError) and "has no option" not in str(error):
            raise
        typer.echo(f"ardvark: {error}", err=True)
        sys.exit(2)
