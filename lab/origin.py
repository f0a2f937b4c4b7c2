"""Which version of the package computed a row, and whether the code has changed since."""

import ast
import hashlib
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("ardvark", "models", "inference", "data", "lab/*.py")  # a new record changes no code


def version() -> str:
    """Return the commit of the package's own checkout, with "+" if its files differ from it.

    It is "unknown" for a package that was installed.
    """
    if not (ROOT / ".git").exists():
        return "unknown"
    commit = _git("rev-parse", "--short=8", "HEAD").stdout.strip()
    changed = _git("diff", "--quiet", "HEAD", "--", *PACKAGES).returncode
    return (commit or "unknown") + ("+" if changed else "")


def _git(*command: str) -> subprocess.CompletedProcess[str]:
    words = ["git", "-C", str(ROOT), *command]
    return subprocess.run(words, capture_output=True, text=True, check=False)


# --- the code of a file ---------------------------------------------------------------------------


def code(names: Iterable[str]) -> dict[str, str]:
    """Return the hash of each file as it is now; a folder stands for the Python files in it.

    Examples
    --------
    >>> list(code(["models/parts/kernels/linear.py"]))
    ['models/parts/kernels/linear.py']
    """
    paths = [ROOT / name for name in names]
    files = {f for p in paths for f in (p.rglob("*.py") if p.is_dir() else [p])}
    return {f.relative_to(ROOT).as_posix(): _hash_of(f) for f in sorted(files)}


def changed(stored: Mapping[str, str]) -> list[str]:
    """Return the files whose code has another hash now, or that are gone."""
    paths = {name: ROOT / name for name in stored}
    return [n for n, path in paths.items() if not path.exists() or _hash_of(path) != stored[n]]


@cache
def _hash_of(path: Path) -> str:
    return hash_of(path.read_bytes(), path.suffix)


def hash_of(text: bytes, suffix: str = ".py") -> str:
    """Return eight digits that change with a file's code, not with its comments or docstrings."""
    held = repr(_plain(ast.parse(text))).encode() if suffix == ".py" else text
    return hashlib.sha256(held).hexdigest()[:8]


def _plain(node: object) -> object:
    """Return a syntax tree without positions, strings that stand alone, and what is empty.

    `ast.dump` differs between versions of Python, which add fields that are mostly empty.
    """
    if isinstance(node, list):
        return [_plain(child) for child in node if not _said(child)]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.JoinedStr):  # Python 3.12.1 adds empty strings to f-strings
        node.values = [v for v in node.values if getattr(v, "value", v) != ""]
    fields = [(name, _plain(value)) for name, value in ast.iter_fields(node) if value is not None]
    return type(node).__name__, [field for field in fields if field[1] != []]


def _said(node: object) -> bool:
    """Whether a node is a docstring, or another string that stands alone."""
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
