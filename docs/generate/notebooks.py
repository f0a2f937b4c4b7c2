"""The tutorials: the stored notebooks, with their links and alt texts, and a card for each."""

import base64
import json
import re
from collections.abc import Iterator
from typing import Any

from .text import ROOT, relinked, toctree

FOLDER = ROOT / "notebooks"
COURSE = ROOT / "docs" / "course.md"
Notebook = dict[str, Any]


def pages() -> Iterator[tuple[str, str | bytes]]:
    """Yield each notebook, its thumbnail, and the grid of cards."""
    found = {path.stem: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.ipynb"))}
    for name, notebook in found.items():
        yield f"tutorials/{name}.ipynb", json.dumps(prepared(notebook), indent=1)
        if picture := first_picture(notebook):
            yield f"tutorials/thumbnails/{name}.png", picture
    yield "tutorials/index.md", index(found)


def prepared(notebook: Notebook) -> Notebook:
    """Return a notebook as it is shown: links resolved, pictures described, answers folded."""
    heading = "the notebook"
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            cell["source"] = relinked(text, "notebooks")
            heading = [heading, *re.findall(r"^#+ (.+)$", text, re.MULTILINE)][-1]
            continue
        meta = cell["metadata"]
        alt = meta.get("alt") or f"Figure: {heading}"
        meta["mystnb"] = {"image": {"alt": alt.replace("\n", " ")}}
        tags = meta.setdefault("tags", [])
        if "solution" in tags:
            tags.append("hide-cell")
            meta["mystnb"] |= {"code_prompt_show": "Its code", "code_prompt_hide": "Its code"}
    return notebook


def first_picture(notebook: Notebook) -> bytes | None:
    """Return the first stored PNG of a notebook."""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            if png := output.get("data", {}).get("image/png"):
                return base64.b64decode("".join(png))
    return None


def index(found: dict[str, Notebook]) -> str:
    """Return the page with a card for each notebook."""
    cards = "\n".join(card(name, notebook) for name, notebook in found.items())
    course = ["../course"] if COURSE.exists() else []
    course_line = "\n[The course](/course.md) says in which order a class takes them.\n" * len(
        course
    )
    return (
        "# Tutorials\n\nEach is a notebook, shown with its stored outputs. To run one yourself: "
        '`pip install -e ".[notebooks]"`, then `jupyter lab` in the folder `notebooks`.\n'
        f"{course_line}\n::::{{grid}} 1 2 2 3\n:gutter: 3\n\n{cards}::::\n\n"
        f"{toctree([*course, *found])}"
    )


def card(name: str, notebook: Notebook) -> str:
    """Return the card of a notebook: its title, first sentence and first picture."""
    first = "".join(notebook["cells"][0]["source"])
    title = first.partition("\n")[0].removeprefix("# ")
    picture = ""
    if first_picture(notebook):
        picture = f":img-top: thumbnails/{name}.png\n:img-alt: First figure of {title}\n"
    return (
        f":::{{grid-item-card}} {title}\n:link: {name}\n:link-type: doc\n{picture}\n"
        f"{opening(first)}\n:::\n\n"
    )


def opening(text: str) -> str:
    """Return the first two sentences below a title, without links."""
    paragraphs = [p for p in text.split("\n\n")[1:] if p.strip() and not p.startswith("#")]
    plain = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", " ".join(paragraphs[0].split()))
    sentences = [""]
    for part in re.split(r"(?<=[.?!]) +(?=[A-Z])", plain.removeprefix("**Question.** ")):
        whole = sentences[-1].count("(") == sentences[-1].count(")")  # "J. Comput. Biol." is in ()
        sentences += [part] if whole else []
        sentences[-1] += "" if whole else f" {part}"
    return " ".join(sentences[1:3])
