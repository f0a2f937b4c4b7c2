"""The rooms of the code and the arrows between them.

Layers and circles are declared in pyproject.toml and checked by import-linter, which reads every
import, those inside functions and under TYPE_CHECKING as well: a lower file knows nothing of a
higher one, not even a type. What it has no contract for is checked here from the import statements.
"""

import ast
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jedi
import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("models", "inference", "data", "ardvark/common", "ardvark/cli")
"""Folders whose files import each other by relative imports."""


class Import(NamedTuple):
    """One imported module or name, as it is written and as it is meant."""

    importer: str
    line: int
    target: str  # a module of ours, or something foreign
    name: str  # what is taken from it, "" for the module itself
    level: int  # dots in front

    def __str__(self) -> str:
        return f"{self.importer}:{self.line}: {self.target} {self.name}".rstrip()


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    parts = parts if parts[0] == "ardvark" else ("ardvark", *parts)
    return ".".join(parts[: -1 if parts[-1] == "__init__" else None])


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def files(root: Path, *packages: str) -> dict[str, Path]:
    return {module_name(p, root): p for top in packages for p in sorted((root / top).rglob("*.py"))}


def imports(module: str, path: Path, known: set[str]) -> list[Import]:
    """Return every import of a module; `from x import y` means x.y where that is a module."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = []
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found += [Import(module, node.lineno, a.name, "", 0) for a in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, *([node.module] if node.module else [])])
            for a in node.names:
                whole = f"{base}.{a.name}"
                target, name = (whole, "") if whole in known else (base, a.name)
                found.append(Import(module, node.lineno, target, name, node.level))
    return found


@cache
def everything(root: Path = ROOT) -> list[Import]:
    ours = files(root, *PACKAGES)
    return [i for m, p in ours.items() for i in imports(m, p, set(ours))]


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def room(module: str) -> str:
    """Return the folder of `inference` that a module is in."""
    return [*module.split("."), "", ""][2]


def package_of(module: str) -> str:
    return ".".join(module.split(".")[:2])


# --- the layers -----------------------------------------------------------------------------------


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts of a checkout, not of the package that is installed."""
    code = (
        f"import sys; sys.path.insert(0, {str(root)!r}); "
        "from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    )
    command = [sys.executable, "-P", "-c", code]
    return subprocess.run(command, cwd=root, capture_output=True, text=True)


@pytest.fixture
def copy(tmp_path):
    """A copy of the packages and of their contracts, to be broken."""
    for top in ("ardvark", "models", "inference", "data", "lab"):
        ignore = shutil.ignore_patterns("__pycache__", "*.nc", "*.csv", "tests")
        shutil.copytree(ROOT / top, tmp_path / top, symlinks=True, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_arrows_point_down_only():
    found = lint_imports(ROOT)
    assert found.returncode == 0, found.stdout + found.stderr


BROKEN = {
    "a higher package": ("models/spec.py", "from ardvark.inference.methods.run import fit"),
    "a type of a higher room": (
        "inference/papers/rfvm/vb.py",
        "if TYPE_CHECKING:\n    from ...methods.run import Keep",
    ),
    "a room beside": ("inference/samplers/gradient/nuts.py", "from ..gibbs import masks"),
    "a circle": ("inference/comparison/report/style.py", "def f():\n    from . import plots"),
    "the laboratory": (
        "inference/comparison/report/style.py",
        "def f():\n    from lab import tables",
    ),
    "a file without a room": ("inference/loose.py", "NAME = 1"),
}


def test_arrows_that_point_up_are_seen(copy):
    """Each breaks a contract of its own, by a file and a line that the report names."""
    for name, line in BROKEN.values():
        with (copy / name).open("a") as file:
            file.write(f"\n{line}\n")
    found = lint_imports(copy)
    assert found.returncode == 1, found.stdout
    broken = re.findall(r"^(\w+ \w+).*BROKEN$", found.stdout, re.MULTILINE)
    assert {"The front", "From the", "What picks", "Nothing that", "No circle"} <= set(broken)
    for name in ("spec", "vb", "nuts", "style", "loose"):
        assert re.search(rf"\b{name}\b", found.stdout), name


def test_the_tests_of_the_library_do_without_the_laboratory():
    known = re.compile(r"^\s*(?:from|import) lab\b", re.MULTILINE)
    assert [path for path in (ROOT / "tests").rglob("*.py") if known.search(path.read_text())] == []


# --- what import-linter has no contract for: each rule returns what breaks it ---------------------


def methods_as_libraries(root: Path) -> list[str]:
    """Imports of a method's own file from its room: what two methods share has a file below."""
    ours = files(root, "inference")
    methods = {
        module
        for module, path in ours.items()
        for node in tree_of(path).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NAME"
    }
    return [
        str(i)
        for i in everything(root)
        if i.target in methods and room(i.importer) == room(i.target)
    ]


def underscores(root: Path) -> list[str]:
    """Private names taken from another module of ours."""
    found = everything(root)
    return [
        str(i)
        for i in found
        if inside(i.target, "ardvark") and i.name.startswith("_") and not i.name.startswith("__")
    ]


def private_attributes(root: Path) -> list[str]:
    """Private names of another module of ours, reached by `module._name`."""
    ours, wrong = files(root, *PACKAGES), []
    for module, path in ours.items():
        tree = tree_of(path)
        modules = {
            (a.asname or a.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.level or inside(node.module, "ardvark"))
            for a in node.names
            if any(m.endswith(f".{a.name}") for m in ours)
        }
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id in modules
                and node.attr.startswith("_")
                and not node.attr.startswith("__")
            ):
                wrong.append(f"{module}:{node.lineno}: {node.value.id}.{node.attr}")
    return wrong


def wrong_style(root: Path) -> list[str]:
    """Absolute imports inside a package, relative ones across packages."""
    return [
        str(i)
        for i in everything(root)
        if inside(i.target, "ardvark") and bool(i.level) != inside(i.target, package_of(i.importer))
    ]


def models_by_name(root: Path) -> list[str]:
    """A model told by its name, or by what attribute its hyperparameters may have.

    The model's card declares what it can do, and `isinstance` says whose hyperparameters they are.
    """
    wrong = []
    for module, path in files(root, "inference", "ardvark").items():
        for node in ast.walk(tree_of(path)):
            asks = isinstance(node, ast.Compare) and ast.unparse(node.left).endswith("spec.name")
            named = asks and any(isinstance(c, ast.Constant) for c in node.comparators)
            call = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            owner = ast.unparse(node.args[0]) if call in ("hasattr", "getattr") else ""
            if named or owner.split(".")[-1] in ("h", "hypers", "priors", "asked"):
                wrong.append(f"{module}:{node.lineno}: {ast.unparse(node)}")
    return wrong


RULES = {
    methods_as_libraries: {
        "inference/papers/a.py": 'NAME = "a"\n',
        "inference/papers/b.py": "from .a import step\n",
        "inference/methods/registry.py": "from ..papers import a, b\n",
    },
    underscores: {
        "inference/methods/run.py": "from ..samplers.gradient.nuts import _draw\n",
        "inference/samplers/gradient/nuts.py": "",
    },
    private_attributes: {
        "inference/target/backend.py": "_HIDDEN = 1\n",
        "inference/methods/run.py": (
            "from ..target import backend\n\nprint(backend._HIDDEN, backend.__name__)\n"
        ),
    },
    models_by_name: {
        "inference/papers/em.py": 'sparse = problem.spec.name == "sparse_probit"\n',
    },
    wrong_style: {
        "models/pcvm.py": "from ardvark.models import pfcvm\n",
        "models/pfcvm.py": "",
    },
}


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_imports_keep_the_rules(rule):
    broken = rule(ROOT)
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_a_broken_rule_is_seen(rule, tmp_path):
    for name, text in RULES[rule].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert [(r.__name__, len(r(tmp_path))) for r in RULES if r(tmp_path)] == [(rule.__name__, 1)]


# --- what an editor sees --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "home"),
    [
        ("from ardvark.models import Problem", "models/problems.py"),
        ("from ardvark.inference.methods.run import fit", "inference/methods/run.py"),
        ("from ardvark.data import Dataset", "data/dataset.py"),
        ("from ardvark.inference import compare", "inference/comparison/table.py"),
        ("import ardvark; ardvark.fit", "inference/methods/run.py"),
        ("import ardvark as av; av.Problem", "models/problems.py"),
    ],
)
def test_go_to_definition(line, home):
    """jedi follows an import of the package to the file at the top level of the checkout."""
    script = jedi.Script(line, path=ROOT / "editor.py", project=jedi.Project(ROOT))
    (found,) = script.goto(1, len(line), follow_imports=True)
    assert found.module_path.resolve() == ROOT / home


def test_no_second_copy_of_a_package():
    """`import models` from elsewhere finds nothing: there is one name for each module."""
    code = (
        "import importlib.util as i; "
        "print([m for m in ('models', 'inference', 'data') if i.find_spec(m)])"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", code], cwd="/", capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_checkout_without_links_says_how_to_get_them(tmp_path):
    """Where Git writes no links it writes files that hold their targets."""
    (tmp_path / "ardvark").mkdir()
    shutil.copy(ROOT / "ardvark" / "__init__.py", tmp_path / "ardvark")
    for top in ("models", "inference", "data"):
        (tmp_path / "ardvark" / top).write_text(f"../{top}")
    done = subprocess.run(
        [sys.executable, "-c", "import ardvark"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "git config core.symlinks true" in done.stderr
