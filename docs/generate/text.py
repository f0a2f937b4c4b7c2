"""Markdown from the package's own texts: docstrings, declared settings, tables, links."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from ardvark.common.declared import Settings

ROOT = Path(__file__).parents[2]
INCLUDED = {
    "README.md": "index",
    "FINDINGS.md": "results/findings",
    "ERRATA.md": "results/errata",
    "CHANGELOG.md": "project/changelog",
    "CONTRIBUTING.md": "project/contributing",
    "CITATION.cff": "howto/cite",
    "lab/README.md": "results/laboratory",
    "lab/speed/SPEED.md": "results/speed",
    "lab/algorithms/ALGORITHMS.md": "results/algorithms",
    "lab/calibration/CALIBRATION.md": "results/calibration",
    "lab/priors/PRIORS.md": "results/priors",
    "lab/prior_factors/PRIOR_FACTORS.md": "results/prior_factors",
    "lab/defects/DEFECTS.md": "results/defects",
    "lab/judge/JUDGE.md": "results/judge",
    "lab/posteriordb/POSTERIORDB.md": "results/posteriordb",
    "lab/references/REFERENCES.md": "results/references",
    "lab/fsklr_masks/FSKLR_MASKS.md": "results/fsklr_masks",
    "lab/one_table/ONE_TABLE.md": "results/one_table",
    "lab/known_truth/KNOWN_TRUTH.md": "results/known_truth",
    "lab/GENES.md": "results/genes",
    "lab/PAPER_CHECK.md": "results/paper_check",
    "lab/papers/pfcvm.md": "results/papers/pfcvm",
    "lab/papers/jcfo.md": "results/papers/jcfo",
    "lab/papers/rfvm.md": "results/papers/rfvm",
    "lab/papers/fsklr.md": "results/papers/fsklr",
    "lab/matrix/MATRIX.md": "results/matrix",
}
"""Files of the repository that are a page of the site, by their path."""

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")


def page_of(path: str) -> str | None:
    """Return the page that shows a file of the repository, None if it is on no page."""
    if path.startswith("notebooks/") and path.endswith(".ipynb"):
        return path.replace("notebooks/", "tutorials/").removesuffix(".ipynb")
    if path.startswith("docs/") and path.endswith(".md"):
        return path.removeprefix("docs/").removesuffix(".md")
    return INCLUDED.get(path)


def relinked(text: str, folder: str) -> str:
    """Return a Markdown text with its relative links and pictures as they are on the site.

    Parameters
    ----------
    text : str
    folder : str
        The folder of the repository that the links are relative to, "" for the top level. A table
        of the laboratory can be downloaded; another file that is on no page is named without a
        link.
    """

    def mended(match: re.Match[str]) -> str:
        picture, words, target = match.groups()
        path, mark, anchor = target.partition("#")
        if "://" in target or not path:
            return match[0]
        file = _normal(PurePosixPath(folder) / path)
        if picture:
            return f"![{words}](/../{file})"
        if file.startswith("lab/") and file.endswith(".csv"):
            return f"{{download}}`{words} </../{file}>`"
        page = page_of(file)
        kind = "ipynb" if path.endswith(".ipynb") else "md"
        return words if page is None else f"[{words}](/{page}.{kind}{mark}{anchor})"

    return _LINK.sub(mended, text)


def _normal(path: PurePosixPath) -> str:
    """Return a path without `..`."""
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def markdown(doc: str) -> str:
    """Return a docstring's text as Markdown: what is indented stays as it was typed."""
    shown, code = [], False
    before = ""
    for line in doc.strip("\n").splitlines():
        if line.startswith("    ") and (code or not before.strip()):
            shown += [] if code else ["```text"]
            code = True
            shown.append(line.removeprefix("    "))
        elif code and not line.strip():
            shown.append(line)
        else:
            if code:
                while not shown[-1].strip():
                    shown.pop()
                shown += ["```", ""]
            code = False
            shown.append(_line(line))
        before = line
    return "\n".join([*shown, "```"] if code else shown)


def _line(line: str) -> str:
    """Return a line of prose: `::` is reStructuredText's, and `<` is no tag."""
    plain = re.sub(r"::$", ":", line)
    pieces = re.split(r"(`[^`]*`)", plain)
    return "".join(p if p.startswith("`") else p.replace("<", "\\<") for p in pieces)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    listed = [list(head), ["---"] * len(head), *map(list, rows)]
    escaped = [[text.replace("|", "\\|") for text in row] for row in listed]
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)


def toctree(entries: Iterable[str]) -> str:
    """Return the hidden list of the pages below one."""
    return "```{toctree}\n:hidden:\n\n" + "\n".join(entries) + "\n```\n"


def settings(declared: type[Settings], unset: str) -> str:
    """Return declared settings as a table; `unset` is what a default of None is called."""
    rows = []
    for s in declared.declared():
        meaning = s.meaning
        if s.paper:
            meaning += f". Paper: {s.paper}" + (f"; {s.why}" if s.why else "")
        default = unset if s.default is None else s.default
        rows.append((f"`{s.name}`", f"`{default}`", s.accepts(), _line(meaning)))
    if not rows:
        return "It has none."
    return table(("name", "default", "accepted values", "meaning"), rows)


def bibtex(entry: str) -> str:
    """Return a BibTeX entry as a block to copy."""
    return f"```bibtex\n{entry}\n```"
