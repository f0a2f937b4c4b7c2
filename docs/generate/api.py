"""A page for each public name, from its docstring, and the list of them."""

import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType

from .text import table, toctree

ROOMS = {
    "ardvark": "Import it as `av`: these names are what most users need.",
    "ardvark.models": "The contract of a model, for who writes one.",
    "ardvark.data": "Where X and y come from.",
    "ardvark.inference": "What the functions of `ardvark` return, and how fits are stored.",
    "ardvark.sklearn": "The estimator for pipelines and grid searches.",
}
"""Modules with public names, and what each is for. A name is listed once, where it is first."""
CONSTANTS = {
    "BACKENDS": "ardvark.inference.methods.registry",
    "ModelName": "ardvark.models",
    "SHARED": "ardvark.models.spec",
    "ZOO": "ardvark.models",
}
"""Public names that are values, and the module that says what each is."""


def pages() -> Iterator[tuple[str, str]]:
    """Yield the page of each public name, and the list of them."""
    parts, listed, seen = ["# API reference"], [], []
    for room, purpose in ROOMS.items():
        module = importlib.import_module(room)
        rows = []
        for name in public(module):
            thing = getattr(module, name)
            if any(thing is other for other in seen):
                continue
            seen.append(thing)
            full = f"{room}.{name}"
            listed.append(full)
            rows.append((f"[`{name}`]({full}.rst)", first_line(name, thing)))
            yield f"api/{full}.rst", page(full, thing)
        parts += [f"## `{room}`", purpose, table(("name", "what it is"), rows)]
    yield "api/index.md", "\n\n".join([*parts, toctree(listed)])


def public(module: ModuleType) -> list[str]:
    """Return the public names of a module that are not modules or dunders, sorted."""
    names = getattr(module, "__all__", ["SparseBayesClassifier"])
    return sorted(
        (n for n in names if not n.startswith("_") and not inspect.ismodule(getattr(module, n))),
        key=lambda name: (name[0].isupper(), name.lower()),
    )


def first_line(name: str, thing: object) -> str:
    """Return the first sentence of what a name stands for."""
    if name not in CONSTANTS:
        return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")
    return constant(name)


def page(full: str, thing: object) -> str:
    """Return the page of a name, for autodoc."""
    if inspect.isclass(thing):
        directive = f".. autoclass:: {full}\n   :members:\n"
        if left := foreign(thing):
            directive += f"   :exclude-members: {', '.join(left)}\n"
    elif inspect.isfunction(thing):
        directive = f".. autofunction:: {full}\n"
    else:
        directive = f"{constant(full.rpartition('.')[2])}\n"
    return f"{full}\n{'=' * len(full)}\n\n{directive}"


def foreign(cls: type) -> list[str]:
    """Return the methods of a class that scikit-learn makes, and that its own guide describes."""
    return [n for n in vars(cls) if n.startswith("set_") and n.endswith("_request")]


def constant(name: str) -> str:
    """Return what is said of a value below its definition."""
    from sphinx.pycode import ModuleAnalyzer  # here, for who has no builder: tests import this file

    said = ModuleAnalyzer.for_module(CONSTANTS[name]).find_attr_docs()["", name]
    return " ".join(said).strip()
