"""A page for each method, from its file: docstring, its three sentences, declared options."""

import inspect
from collections.abc import Iterator
from typing import Any

from ardvark.cli.listing import models_of
from ardvark.inference import BACKENDS
from ardvark.inference.samplers.exact.rule import SAMPLERS

from .text import markdown, settings, table, toctree

KINDS = {
    "mcmc": "the posterior itself, up to Monte Carlo error",
    "approximation": "draws from a simpler distribution",
    "search": "the best state that a search visited",
    "point": "a single state, without uncertainty",
}
"""What a method of each kind returns."""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the page of each method, and the list of them."""
    rows = [
        (f"[{name}]({name}.md)", KINDS[b.KIND], b.ABOUT.exact, b.ABOUT.cost)
        for name, b in BACKENDS.items()
    ]
    listed = table(("method", "returns", "exact when", "cost"), rows)
    yield (
        "methods/index.md",
        "# Methods\n\nA page for each method, made from the file that defines it. `exact` is the "
        "default: it picks one of the exact samplers and runs it until it has converged. "
        "[Which model, which method, how long](/which.md) helps to choose.\n\n"
        f"{listed}\n\n{toctree(f'{name} <{name}>' for name in BACKENDS)}",
    )
    for name, backend in BACKENDS.items():
        yield f"methods/{name}.md", method(name, backend)


def method(name: str, backend: Any) -> str:
    """Return the page of a method."""
    title, _, body = (inspect.getdoc(backend) or "").partition("\n")
    about = [
        ("Returns", KINDS[backend.KIND]),
        ("Approximates", backend.ABOUT.approximates),
        ("Exact", backend.ABOUT.exact),
        ("Cost", backend.ABOUT.cost),
        ("Models", ", ".join(f"[{m}](/models/{m}.md)" for m in models_of(name))),
    ]
    exact = name in (*SAMPLERS, "exact")
    chunks = [
        f"# `{name}`",
        title,
        "\n".join(f"- **{what}**: {said}" for what, said in about),
        markdown(body),
        "## Options",
        "`None` is the default of an option that is computed, or that is switched off."
        f' `av.fit(problem, "{name}", option=value)` sets one.',
        settings(backend.Options, "None"),
        "## How long it takes" if exact else "",
        "See the [measured times](/which.md#how-long)." if exact else "",
    ]
    return "\n\n".join(chunk for chunk in chunks if chunk) + "\n"
