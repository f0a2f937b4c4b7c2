"""The rooms of the code and the arrows between them, read from the import statements.

Every import counts, those inside functions and under TYPE_CHECKING as well: a lower file knows
nothing of a higher one, not even a type.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]

BELOW = {
    "data": {"ardvark.validate", "ardvark.html"},
    "models": {"ardvark.validate", "ardvark.html", "ardvark.data"},
    "inference": {
        "ardvark.validate",
        "ardvark.html",
        "ardvark.interrupt",
        "ardvark.data",
        "ardvark.models",
    },
}
"""What each package may import of the others (a name stands for everything in it)."""

ROOMS = {
    "inference": (
        {""},  # inference/__init__.py
        {"comparison", "calibration"},
        {"prediction", "adoption", "completion"},
        {"fitting"},
        {"selection"},
        {"generic", "gibbs", "papers", "datatree"},
        {"draws"},
        {"backend"},
        {"target", "options", "progress", "processes", "diagnostics", "truncated_normal"},
        {"density"},
        {"compiled"},
    ),
    "models": (
        {""},
        {"problems", "docs"},
        {"fs_skr", "fsklr", "jcfo", "pcvm", "pfcvm", "rfvm", "rvm", "sklr", "sparse_probit"},
        {"sparse"},
        {"spec"},
        {"parts"},
    ),
}
"""The rooms from the top down. Those in one set know nothing of each other, except that a paper's
model may be made from another's."""

PAPERS = ROOMS["models"][2]


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
    return ".".join(("ardvark", *parts[: -1 if parts[-1] == "__init__" else None]))


def files(root: Path, *packages: str) -> dict[str, Path]:
    return {module_name(p, root): p for top in packages for p in sorted((root / top).rglob("*.py"))}


def imports(module: str, path: Path, known: set[str]) -> list[Import]:
    """Return every import of a module; `from x import y` means x.y where that is a module."""
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
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


def everything(root: Path = ROOT) -> list[Import]:
    ours = files(root, *BELOW)
    return [i for m, p in ours.items() for i in imports(m, p, set(ours))]


def inside(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


def room(module: str) -> str:
    """Return the name below the package, "" for the package itself."""
    return [*module.split("."), ""][2]


def package_of(module: str) -> str:
    return module.split(".")[1]


# --- the rules: each returns what breaks it -------------------------------------------------------


def circles(found: list[Import]) -> list[str]:
    """Imports of a module that imports its importer, by itself or through others."""
    below: dict[str, set[str]] = {}
    for i in found:
        below.setdefault(i.importer, set()).add(i.target)

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += below.get(module, ())
        return seen

    return [str(i) for i in found if i.target in below and i.importer in reached(i.target)]


def wrong_packages(found: list[Import]) -> list[str]:
    """Imports from a package above, or of the front door, which knows them all."""
    wrong = []
    for i in found:
        package = package_of(i.importer)
        allowed = {f"ardvark.{package}"} | BELOW[package]
        if inside(i.target, "ardvark") and not any(inside(i.target, a) for a in allowed):
            wrong.append(str(i))
    return wrong


def upward(found: list[Import]) -> list[str]:
    """Imports inside a package from a room above or beside."""
    wrong = []
    for package, levels in ROOMS.items():
        height = {room: -n for n, rooms in enumerate(levels) for room in rooms}

        for i in found:
            if not (
                inside(i.importer, f"ardvark.{package}") and inside(i.target, f"ardvark.{package}")
            ):
                continue
            mine, its = room(i.importer), room(i.target)
            if mine == its or {mine, its} <= PAPERS:
                continue
            if mine not in height or its not in height or height[its] >= height[mine]:
                wrong.append(str(i))
    return wrong


def methods_as_libraries(root: Path) -> list[str]:
    """Imports of a method's own file from its room: what two methods share has a file below."""
    ours = files(root, "inference")
    methods = {
        module
        for module, path in ours.items()
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "NAME"
    }
    return [
        str(i)
        for i in everything(root)
        if i.target in methods and room(i.importer) == room(i.target)
    ]


def underscores(found: list[Import]) -> list[str]:
    """Private names taken from another module of ours."""
    return [str(i) for i in found if inside(i.target, "ardvark") and i.name.startswith("_")]


def private_attributes(root: Path) -> list[str]:
    """Private names of another module of ours, reached by `module._name`."""
    ours, wrong = files(root, *BELOW), []
    for module, path in ours.items():
        tree = ast.parse(path.read_text())
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


def wrong_style(found: list[Import]) -> list[str]:
    """Absolute imports inside a package, relative ones across packages."""
    return [
        str(i)
        for i in found
        if inside(i.target, "ardvark")
        and bool(i.level) != inside(i.target, f"ardvark.{package_of(i.importer)}")
    ]


RULES = (circles, wrong_packages, upward, underscores, wrong_style)


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_arrows_point_down_only(rule):
    broken = rule(everything())
    assert not broken, "\n".join(broken)


def test_no_private_name_of_another_module():
    assert private_attributes(ROOT) == []


def test_no_method_is_made_of_another():
    broken = methods_as_libraries(ROOT)
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("package", ROOMS)
def test_every_file_has_a_room(package):
    rooms = {room(m) for m in files(ROOT, package)}
    assert rooms == set().union(*ROOMS[package])


# --- each rule on code that breaks it -------------------------------------------------------------

BROKEN = {
    circles: {
        "inference/comparison/table.py": "def f():\n    from . import plots\n",
        "inference/comparison/plots.py": "if TYPE_CHECKING:\n    from .table import Comparison\n",
    },
    wrong_packages: {"models/spec.py": "from ardvark.inference.fitting import fit\n"},
    upward: {
        "inference/papers/rfvm_vb.py": "from ..fitting import fit\n",
        "inference/fitting.py": "",
    },
    underscores: {
        "inference/fitting.py": "from .generic.nuts import _draw\n",
        "inference/generic/nuts.py": "",
    },
    wrong_style: {
        "models/pcvm.py": "from ardvark.models import pfcvm\n",
        "models/pfcvm.py": "",
    },
}


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.__name__)
def test_a_broken_rule_is_seen(rule, tmp_path):
    for name, text in BROKEN[rule].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = everything(tmp_path)
    assert [r.__name__ for r in RULES if r(found)] == [rule.__name__]


def test_a_private_attribute_is_seen(tmp_path):
    (tmp_path / "inference").mkdir()
    (tmp_path / "inference" / "backend.py").write_text("_HIDDEN = 1\n")
    code = "from . import backend\n\nprint(backend._HIDDEN, backend.__name__)\n"
    (tmp_path / "inference" / "fitting.py").write_text(code)
    assert private_attributes(tmp_path) == ["ardvark.inference.fitting:3: backend._HIDDEN"]


def test_a_method_used_as_a_library_is_seen(tmp_path):
    (tmp_path / "inference" / "papers").mkdir(parents=True)
    (tmp_path / "inference" / "papers" / "a.py").write_text('NAME = "a"\n')
    (tmp_path / "inference" / "papers" / "b.py").write_text("from .a import step\n")
    (tmp_path / "inference" / "fitting.py").write_text("from .papers import a, b\n")
    wrong = ["ardvark.inference.papers.b:1: ardvark.inference.papers.a step"]
    assert methods_as_libraries(tmp_path) == wrong
