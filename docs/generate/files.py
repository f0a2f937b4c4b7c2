"""Files of the repository that are a page of the site: included where they stand, not copied."""

from collections.abc import Iterator
from pathlib import PurePosixPath

from .text import INCLUDED, ROOT, relinked

WRITTEN = ("README.md", "CITATION.cff")
"""Files that a page written by hand stands for."""


def pages() -> Iterator[tuple[str, str]]:
    """Yield a page for each file, which includes it."""
    for file, page in INCLUDED.items():
        if file not in WRITTEN:
            up = "../" * (page.count("/") + 1)
            yield f"{page}.md", f"```{{include}} {up}{file}\n```\n"


def on_include(app: object, path: object, parent: str, content: list[str]) -> None:
    """Resolve the links of a file that a page includes (Sphinx's event `include-read`)."""
    file = PurePosixPath(str(path))
    if file.parts[0] == ".." and (ROOT / "docs" / file).exists():
        folder = PurePosixPath(*file.parts[1:]).parent
        content[0] = relinked(content[0], str(folder))
