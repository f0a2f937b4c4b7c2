"""A page for each model, from its file: docstring and declared hyperparameters."""

import textwrap
from collections.abc import Container, Iterator

from ardvark.cli.listing import methods_of
from ardvark.inference.methods import registry
from ardvark.inference.samplers.exact import measured
from ardvark.models import ZOO, ModelSpec, docs

from .tex import aligned, tex
from .text import bibtex, markdown, settings, table, toctree


def pages() -> Iterator[tuple[str, str]]:
    """Yield the page of each model, and the list of them."""
    rows = [
        (f"[{s.name}]({s.name}.md)", s.title, str(s.year), s.priors, _method(s.paper_method))
        for s in ZOO.values()
    ]
    listed = table(("model", "what it is", "year", "priors", "paper's method"), rows)
    yield (
        "models/index.md",
        "# Models\n\nA page for each model, made from the file that defines it. "
        "[Which model, which method, how long](/which.md) helps to choose.\n\n"
        f"{listed}\n\n{toctree(f'{name} <{name}>' for name in ZOO)}",
    )
    for spec in ZOO.values():
        yield f"models/{spec.name}.md", model(spec)
    entries = [f"**{s.title}** (`{s.name}`)\n\n{bibtex(docs.bibtex(s))}" for s in ZOO.values()]
    yield "parts/cite.md", "\n\n".join(entries) + "\n"


def model(spec: ModelSpec) -> str:
    """Return the page of a model."""
    parts = docs.sections(spec.doc)
    found = docs.symbols(spec)
    before, rest, after = program(parts[docs.PROGRAM], {s.symbol for s in found})
    symbols = [
        (f"${tex(s.symbol)}$", ", ".join(f"`{n}`" for n in s.names), s.shape, s.meaning, s.equation)
        for s in found
    ]
    chunks = [
        f"# {spec.title} (`{spec.name}`)",
        markdown(parts[""].partition("\n\n")[2]),
        f"## {docs.PROGRAM}",
        markdown(before),
        aligned((s.symbol, s.law, s.equation) for s in found),
        f"```text\n{rest}\n```" if rest else "",
        markdown(after),
        "## Symbols",
        table(("paper's symbol", "name in code", "shape", "meaning", "equation"), symbols),
        "## Hyperparameters",
        f"Priors: {spec.priors}. Link: {spec.link}. Kernels: {', '.join(spec.kernels) or 'none'}. "
        "`filled` marks a default that is computed from the sizes of the data when a problem is "
        f'made. `av.problem("{spec.name}", data, name=value)` sets one.',
        settings(spec.Hypers, "filled"),
        f"## {docs.DEPARTURES}",
        markdown(parts[docs.DEPARTURES]),
        f"## {docs.DIFFICULTIES}",
        markdown(parts[docs.DIFFICULTIES]),
        "## Methods",
        methods(spec),
        "## How long the exact posterior takes",
        times(spec),
        "## Cite",
        bibtex(docs.bibtex(spec)),
    ]
    return "\n\n".join(chunk for chunk in chunks if chunk) + "\n"


def program(text: str, symbols: Container[str]) -> tuple[str, str, str]:
    """Return what stands before a program, its lines that define no symbol, and what follows."""
    lines = text.splitlines()
    inside = [i for i, line in enumerate(lines) if line[4:].split(" ")[0] in symbols]
    first, last = inside[0], inside[-1]
    while last + 1 < len(lines) and (not lines[last + 1] or lines[last + 1].startswith("    ")):
        last += 1
    others = [line for i, line in enumerate(lines[first : last + 1], first) if i not in inside]
    rest = textwrap.dedent("\n".join(others)).strip("\n")
    return "\n".join(lines[:first]), rest, "\n".join(lines[last + 1 :])


def methods(spec: ModelSpec) -> str:
    """Return which methods apply to a model in its default form, and why others do not."""
    apply, refused = methods_of(spec)
    why_not = [f"- Not {_method(m)}, because {reason}." for m, reason in refused.items()]
    return "\n".join([f"In its default form: {', '.join(map(_method, apply))}.", "", *why_not])


def times(spec: ModelSpec) -> str:
    """Return the measured times of `exact` for a model."""
    rows = [row for row in measured.table() if row.model == spec.name]
    if not rows:
        return "No run of `exact` on this model is in the [record](/which.md#how-long) yet."
    said = "\n".join(f"- {row.text()}, by {_method(row.sampler)}" for row in rows)
    fixed = ' with `scale="fixed"`' if spec.Hypers().learned_scale else ""
    return f"On two cores{fixed}, without compilation ([all models](/which.md#how-long)):\n\n{said}"


def _method(name: str) -> str:
    """Return a method's name with a link to its page."""
    return f"[`{name}`](/methods/{name}.md)" if name in registry.BACKENDS else name or "none"
