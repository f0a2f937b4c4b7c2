"""Every public function and class has an example in its docstring, and every example runs.

A class that a public function returns may have that function's example for its own. An example is
documentation first. It prints the same on every machine, and warns of nothing. It may write files
where it runs, as a user does: here in a folder of the test.
"""

import doctest
import importlib
import inspect
import io
import os
from pathlib import Path

import pytest

import ardvark
import ardvark.data
import ardvark.inference
import ardvark.models
import ardvark.sklearn
from ardvark.inference.checks.ranks import Calibration

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
ROOMS = (ardvark, ardvark.models, ardvark.data, ardvark.inference)
RETURNED = (Calibration, type(ardvark.ZOO))  # classes whose objects a user gets from a public name
CONTRACTS = ("BaseHypers",)  # for the author of a model; a user calls none of them
PARSER = doctest.DocTestParser()


def modules_with_examples() -> list[str]:
    """Return the modules of the package whose text has an example."""
    root, names = Path(ardvark.__file__).parent, []
    for folder, _, files in os.walk(root, followlinks=True):
        for path in (Path(folder, file) for file in files if file.endswith(".py")):
            if ">>>" in path.read_text():
                parts = path.relative_to(root.parent).with_suffix("").parts
                names.append(".".join(parts).removesuffix(".__init__"))
    return sorted(names)


def public_objects() -> dict[str, object]:
    """Return the public functions, classes and modules, by their full name."""
    objects = [getattr(room, name) for room in ROOMS for name in room.__all__]
    objects += [*RETURNED, ardvark.sklearn.SparseBayesClassifier, *ROOMS]
    named = {}
    for thing in objects:
        if inspect.ismodule(thing):
            named[thing.__name__] = thing
        elif inspect.isclass(thing) or inspect.isfunction(thing):
            named[f"{thing.__module__}.{thing.__qualname__}"] = thing
    return named


def own_methods(cls: type) -> list[str]:
    """Return the public methods that a class defines, without its properties."""
    return [
        name
        for name in vars(cls)
        if not name.startswith("_")
        and (inspect.isfunction(getattr(cls, name)) or inspect.ismethod(getattr(cls, name)))
        and getattr(cls, name).__module__ == cls.__module__  # and not made by scikit-learn
    ]


def parsed(name: str, doc: str | None) -> doctest.DocTest:
    return PARSER.get_doctest(doc or "", {}, name, name, None)


def collected() -> dict[str, doctest.DocTest]:
    """Return the examples of the package by the name of what has them.

    The finder of the standard library does not see a method behind scikit-learn's `available_if`,
    so the methods of public classes are added.
    """
    finder = doctest.DocTestFinder()
    tests = {}
    for module in map(importlib.import_module, modules_with_examples()):
        tests |= {t.name: t for t in finder.find(module, globs={})}
    for name, cls in public_objects().items():
        for method in own_methods(cls) if inspect.isclass(cls) else ():
            full = f"{name}.{method}"
            tests.setdefault(full, parsed(full, inspect.getdoc(getattr(cls, method))))
    return {name: test for name, test in tests.items() if test.examples}


EXAMPLES = collected()


def typed(name: str) -> str:
    """Return what a reader types in the example of an object; nothing without one.

    A class without one is shown by the function that returns it.
    """
    names = [name] if name in EXAMPLES else makers(public_objects().get(name))
    return "".join(e.source for n in names if n in EXAMPLES for e in EXAMPLES[n].examples)


def makers(cls: object) -> list[str]:
    """Return the public functions whose annotation says that they return this class."""
    return [
        name
        for name, thing in public_objects().items()
        if inspect.isfunction(thing) and cls is thing.__annotations__.get("return", thing)
    ]


def test_public_objects_have_an_example_and_functions_are_called_in_it():
    assert not [name for name in public_objects() if not typed(name)]
    functions = [name for name, thing in public_objects().items() if inspect.isfunction(thing)]
    assert not [name for name in functions if f"{name.rpartition('.')[2]}(" not in typed(name)]


def test_every_public_constant_is_shown_in_an_example():
    constants = {
        name
        for room in ROOMS
        for name in room.__all__
        if not (name.startswith("__") or callable(getattr(room, name)))
        and not inspect.ismodule(getattr(room, name))
    }
    assert {"BACKENDS", "SHARED", "ZOO"} <= constants
    shown = "".join(map(typed, EXAMPLES))
    assert not [name for name in constants | {"ModelName"} if name not in shown]


def test_every_public_method_is_shown_by_itself_or_by_its_class():
    classes = {n: thing for n, thing in public_objects().items() if inspect.isclass(thing)}
    missing = [
        f"{name}.{method}"
        for name, cls in classes.items()
        if cls.__name__ not in CONTRACTS
        for method in own_methods(cls)
        if f"{method}(" not in typed(f"{name}.{method}") and f".{method}(" not in typed(name)
    ]
    assert not missing


@pytest.mark.usefixtures("few_penalties")
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example_runs(name, tmp_path, monkeypatch, caplog):
    monkeypatch.chdir(tmp_path)
    test = EXAMPLES[name]
    out = io.StringIO()
    failed = doctest.DocTestRunner(optionflags=FLAGS).run(test, out=out.write).failed
    assert not failed, out.getvalue()
    warned = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert not warned, f"the example of {name} warns: {warned}"


@pytest.mark.parametrize("wrong", ["(4, 6)", "Traceback (most recent call last):\nValueError: no"])
def test_wrong_output_is_seen(wrong):
    test = parsed("wrong", f">>> (4, 5)\n{wrong}\n")
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    assert runner.run(test, out=io.StringIO().write).failed == 1
