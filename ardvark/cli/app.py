"""`ardvark`: its commands, and those that list models, methods and data."""

import logging
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import typer

from ardvark.common.validate import InputError

from .choose import choose
from .compare import compare, takes_study
from .panel import panel
from .predict import predict

app = typer.Typer(
    name="ardvark",
    help="Doubly sparse Bayesian classifiers: exact posteriors, and the papers' approximations.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


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
for command in (choose, compare, predict, panel):
    app.command()(command)


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
            raise InputError("--bibtex needs a model: `ardvark models MODEL --bibtex`.")
        listing.list_models()
        return
    spec = ZOO[named("model", name, ZOO, "`ardvark models` lists them.")]
    if bibtex:
        typer.echo(docs.bibtex(spec))
    else:
        listing.explain_model(spec)


@app.command()
@takes_study
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
    *,
    study: dict[str, Any],
) -> None:
    """List the methods, or explain one: what it approximates, its cost and its options.

    The options are those of `ardvark compare`: give --for what you would give that command.
    """
    from ardvark.common.validate import named
    from ardvark.inference import BACKENDS

    from . import listing, tables
    from .studies import asked_of, problem_of

    if for_ is not None:
        table = tables.declared(**{name: study[name] for name in tables.ARGUMENTS})
        rest = {name: study[name] for name in ("always", "test_size", "split_seed", "set_")}
        listing.recommend(problem_of(asked_of(*for_, table, **rest))[0])
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
    from ardvark.data import known_name

    paths = fetch_data(name)
    where = "\n".join(map(str, paths)) or "built in; there is nothing to download"
    typer.echo(f"{known_name(name)}: {where}")


def main() -> None:
    """Run the command line."""
    run(partial(app, prog_name="ardvark"), "ardvark")


def run(command: Callable[[], Any], name: str) -> None:
    """Call a command; bad input is one line on standard error and exit code 2."""
    logging.basicConfig(format="%(levelname)s %(message)s", level=logging.WARNING)
    logging.getLogger("ardvark").setLevel(logging.INFO)
    try:
        command()
    except (InputError, TypeError) as error:
        if isinstance(error, TypeError) and "has no option" not in str(error):
            raise
        typer.echo(f"{name}: {error}", err=True)
        sys.exit(2)
    except OSError as error:  # a disk that is full, a folder that may not be written to
        typer.echo(f"{name}: {error}", err=True)
        if ".pytensor" in str(error):
            typer.echo(
                "PyTensor keeps compiled code below the home folder, which cannot be written to. "
                "Name another folder: PYTENSOR_FLAGS=base_compiledir=FOLDER",
                err=True,
            )
        sys.exit(2)
