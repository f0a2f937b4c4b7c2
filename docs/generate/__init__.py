"""Pages of the site that follow from code, records or notebooks: written before each build.

`docs/conf.py` calls `write` when the builder starts. A page is written only where it changed, so a
second build reads only what is new. Every folder in `FOLDERS` is made here and ignored by git.
"""

from collections.abc import Iterator
from pathlib import Path

from . import api, exact, files, methods, models, notebooks, reading

DOCS = Path(__file__).parents[1]
FOLDERS = ("api", "methods", "models", "parts", "project", "results", "tutorials")
"""Folders of which every file is written here. `parts` holds what written pages include."""


def pages() -> Iterator[tuple[str, str | bytes]]:
    """Yield every generated file: its path below `docs/`, and its content."""
    for source in (files, models, methods, reading, exact, notebooks, api):
        yield from source.pages()


def write(folder: Path = DOCS) -> None:
    """Write every generated file, and remove what an earlier build left."""
    made = dict(pages())
    for top in FOLDERS:
        for path in (folder / top).rglob("*"):
            if path.is_file() and path.relative_to(folder).as_posix() not in made:
                path.unlink()
    for name, content in made.items():
        path, data = folder / name, content.encode() if isinstance(content, str) else content
        if not path.exists() or path.read_bytes() != data:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
