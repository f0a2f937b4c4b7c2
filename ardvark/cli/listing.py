"""What the command line prints about the zoo: its models, methods and data sets."""

import inspect
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ardvark.common.declared import Settings
from ardvark.data import available
from ardvark.inference import BACKENDS
from ardvark.inference.methods import registry
from ardvark.inference.samplers.exact.measured import likely, nearest
from ardvark.inference.samplers.exact.rule import pick, refusal
from ardvark.inference.target.target import Target
from ardvark.models import ZOO, ModelSpec, Problem, docs, problem

NARROW = 80
"""Columns of a text that a terminal of any width and a pipe show whole."""


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    width: int | None = None,
) -> None:
    """Print a table; through a pipe, or where no width is given, it is 200 columns wide."""
    console = Console()
    if not console.is_terminal or width is not None:
        console.width = 200 if width is None else min(width, console.width)
    table = Table(title=title)
    for i, column in enumerate(columns):
        table.add_column(column, no_wrap=i == 0)
    for row in rows:
        table.add_row(*(escape(str(value)) for value in row))  # E[tau] is not markup
    console.print(table)


_PROGRAM = re.compile(r"^( {4}\w+ +[~=] .+?) {2,}(.+)$")
_FIRST = re.compile(r"^ +\S+(?: \S+)* {2,}")
"""A line of a generative program, up to what it says of the symbol; the first column of a line."""


def narrow(text: str) -> str:
    """Return a docstring in 80 columns: what is wider is filled; a program gets two lines each."""
    return "\n\n".join(_block(block) for block in text.split("\n\n"))


def _block(block: str) -> str:
    lines = block.splitlines()
    if max(map(len, lines), default=0) <= NARROW:
        return block
    if all(line.startswith(" ") for line in lines):
        whole = re.sub(r"\n {5,}", " ", block)  # a line that goes on in the next
        return "\n".join(map(_line, whole.splitlines()))
    parts = [" ".join(part.split()) for part in re.split(r"\n(?=- )", block)]
    return "\n".join(_filled(part, "  " if part.startswith("- ") else "") for part in parts)


def _line(line: str) -> str:
    program = _PROGRAM.match(line)
    if program:
        rest = "  ".join(re.split(r" {2,}", program[2]))
        return f"{program[1]}\n{_filled(' ' * 12 + rest, ' ' * 12)}"
    first = _FIRST.match(line)
    return _filled(line, " " * (first.end() if first else len(line) - len(line.lstrip())))


def _filled(text: str, indent: str) -> str:
    return textwrap.fill(
        text, NARROW, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def list_models() -> None:
    """Print one row for each model."""
    rows = [(s.name, s.year, s.title, s.paper_method or "none") for s in ZOO.values()]
    print_table("Models", ("model", "year", "what it is", "paper's method"), rows, NARROW)
    typer.echo("`ardvark models MODEL` explains one: its program, symbols, priors and methods.")


def explain_model(spec: ModelSpec) -> None:
    """Print one model: docstring, symbols, hyperparameters, methods."""
    parts = docs.sections(spec.doc)
    about = "\n\n".join(narrow(parts[heading]) for heading in ("", docs.PROGRAM))
    typer.echo(f"{spec.title} ({spec.name})\n\n{about}\n")
    columns = ("paper's symbol", "name in code", "shape", "meaning", "equation")
    rows = [
        (s.symbol, ", ".join(s.names), s.shape, s.meaning, s.equation) for s in docs.symbols(spec)
    ]
    print_table("Symbols", columns, rows, NARROW)
    _print_settings("Hyperparameters", spec.Hypers, unset="filled")
    typer.echo("\n`filled`: computed from the sizes of the data when a problem is made.\n")
    for title in (docs.DEPARTURES, docs.DIFFICULTIES):
        typer.echo(f"{title}\n{narrow(parts[title])}\n")
    apply, why_not = methods_of(spec)
    _sentence(f"Priors: {spec.priors}. Link: {spec.link}.")
    _sentence(f"Kernels: {', '.join(spec.kernels) or 'none'}.")
    _sentence(f"Methods: {', '.join(apply) or 'none yet'}.")
    for method, reason in why_not.items():
        _sentence(f"Not {method}, because {reason}.")
    if spec.paper_method and spec.paper_method not in BACKENDS:
        _sentence(f"The paper's own method, {spec.paper_method}, is not in the zoo yet.")
    typer.echo(f"Cite: `ardvark models {spec.name} --bibtex`.")


def _sentence(text: str) -> None:
    typer.echo(_filled(text, "    "))


def methods_of(spec: ModelSpec) -> tuple[list[str], dict[str, str]]:
    """Return the methods that apply to a model in its default form, and why the others do not.

    Algorithms that belong to another model are not mentioned.
    """
    others = {s.paper_method for s in ZOO.values()} - {spec.paper_method}
    why_not = registry.refusals(small_problem(spec.name))
    apply = [m for m, reason in why_not.items() if reason is None]
    return apply, {m: r for m, r in why_not.items() if r is not None and m not in others}


def list_methods() -> None:
    """Print one row for each method."""
    rows = [(n, b.KIND, _in_words(n)) for n, b in BACKENDS.items()]
    print_table("Methods", ("method", "kind", "models"), rows, NARROW)
    typer.echo("`ardvark methods METHOD` explains one and lists its options.")
    typer.echo("`ardvark methods --for MODEL DATA` says which apply, and how long exact takes.")


def explain_method(name: str) -> None:
    """Print one method: what it is, in three sentences, and its options."""
    backend = BACKENDS[name]
    title = (inspect.getdoc(backend) or "").partition("\n")[0]
    typer.echo(textwrap.fill(f"{name} ({backend.KIND}): {title}", NARROW) + "\n")
    about = backend.ABOUT
    for heading, text in (
        ("Models", _in_words(name) + "."),
        ("Approximates", about.approximates),
        ("Exact", about.exact),
        ("Cost", about.cost),
    ):
        typer.echo(textwrap.fill(f"{heading + ':':<13} {text}", NARROW, subsequent_indent=" " * 14))
    typer.echo()
    _print_settings("Options", backend.Options, unset="None")


def recommend(problem: Problem) -> None:
    """Print which methods apply to a problem, and how long its exact posterior may take."""
    sizes = f"{len(problem.y)} samples, {problem.X.shape[1]} features"
    kernel = "" if problem.kernel is None else f", {problem.kernel.name} kernel"
    typer.echo(f"{problem.spec.name} on {problem.data.name}: {sizes}{kernel}\n")
    picked = pick(Target(problem))
    row = nearest(problem, picked.name)
    time = foretold(problem)
    lines = [
        f"exact: {time}." if time else "",
        f"exact: samples by {picked.name}, because {picked.reason}. "
        + ("No problem of about this size was measured." if row is None else
           f"The nearest one that was measured, on two cores, is {row.text()}.")
    ]  # fmt: skip
    others = [n for n in registry.applicable(problem) if n != "exact"]
    lines += [f"{name}: {BACKENDS[name].ABOUT.approximates}" for name in others]
    for line in filter(None, [*lines, registry.without_own(problem)]):
        typer.echo(textwrap.fill(line, NARROW, subsequent_indent="    "))


def foretold(problem: Problem) -> str:
    """Return how long `exact` may take on a problem, in words; "" if that is not known."""
    target = Target(problem)
    return "" if refusal(target) else likely(problem, pick(target).name)


def _print_settings(title: str, settings: type[Settings], unset: str) -> None:
    """Print declared settings; `unset` is what a default of None is called."""
    typer.echo(f"{title}, with their defaults and accepted values\n")
    indent = " " * 6
    for s in settings.declared():  # a table would leave no room for what they mean
        default = unset if s.default is None else s.default
        typer.echo(f"  {s.name} = {default}  ({s.accepts()})")
        paper = f"paper: {s.paper}" + (f"; {s.why}" if s.why else "")
        for text in (s.meaning, paper) if s.paper else (s.meaning,):
            typer.echo(textwrap.fill(text, NARROW, initial_indent=indent, subsequent_indent=indent))


def models_of(method: str) -> list[str]:
    """Return the models that a method applies to, in their default forms or at a fixed scale."""

    def refusals(own: Problem) -> Iterator[str | None]:
        yield BACKENDS[method].supports(Target(own))
        if own.hypers.learned_scale is not None:
            yield BACKENDS[method].supports(Target(own.with_hypers(scale="fixed")))

    return [name for name in ZOO if None in refusals(small_problem(name))]


def _in_words(method: str) -> str:
    """Return the models that a method applies to, in words."""
    found = models_of(method)
    if len(found) == len(ZOO):
        return "every model"
    if found == [n for n, spec in ZOO.items() if not spec.masked]:
        return "every model without binary masks"
    lacking = [n for n in ZOO if n not in found]
    if len(lacking) <= 2:
        return f"every model but {', '.join(lacking)}"
    return ", ".join(found)


def small_problem(model: str) -> Problem:
    """Return a problem of a model in its default form, to ask which methods apply to it."""
    return problem(model, (np.arange(12.0).reshape(4, 3) ** 2, np.arange(4) % 2))


def list_data() -> None:
    """Print one row for each data set."""
    table = available()[["n", "d", "class_1", "positive", "present"]].reset_index()
    columns = ("data set", "samples", "features", "y = 1", "meaning", "present")
    rows = table.astype(object).where(table.notna(), "").to_numpy().tolist()
    print_table("Data sets", columns, rows, NARROW)
    typer.echo("`ardvark data NAME` describes one, `ardvark data fetch NAME` downloads one.")


def explain_data(name: str) -> None:
    """Print what is known about one data set, without reading it."""
    typer.echo(name)
    for heading, text in available().loc[name].dropna().items():
        words = f"  {f'{heading}:':<9} {text}"
        typer.echo(textwrap.fill(words, NARROW, subsequent_indent=" " * 12))
