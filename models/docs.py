"""Parse a model's docstring, which is the only place where the model is described.

Sections are underlined headings. A line of the generative program is

    symbol ~ law  (equation)  meaning, `name in code`  (shape)

with at least two spaces between the parts. Equation and shape are optional. So are the names, if
the name in code is the symbol without its index.
"""

import re
from typing import NamedTuple

from .spec import ModelSpec

PROGRAM = "The generative model"
DEPARTURES = "Departures from the paper"
DIFFICULTIES = "Known difficulties"

_LINE = re.compile(r"^ {4}(\w+) +([~=]) (.+)$")
_EQUATION = re.compile(r"\((?:sec\. )?[\d.]+\)(?:, \(\d+\))*")
_SHAPE = re.compile(r"\([NBD],\)")


class Symbol(NamedTuple):
    """One line of a generative program."""

    symbol: str
    names: tuple[str, ...]
    shape: str
    meaning: str
    equation: str
    law: str
    """Its distribution, "~ Gamma(a0, b0)", or its value, "= s_j w_j"."""


def sections(doc: str) -> dict[str, str]:
    """Return a docstring's sections by heading; the text before the first heading is under ""."""
    parts = re.split(r"^(\S.*)\n-{4,}\n", doc, flags=re.MULTILINE)
    titles, texts = ["", *parts[1::2]], parts[0::2]
    return {title: text.strip("\n") for title, text in zip(titles, texts, strict=True)}


def symbols(spec: ModelSpec) -> list[Symbol]:
    """Return the symbol table of a model: the paper's symbol, our names, shape, meaning."""
    rows = []
    for line in sections(spec.doc)[PROGRAM].splitlines():
        match = _LINE.match(line)
        if not match:
            continue
        symbol, sign, rest = match.groups()
        meaning = shape = equation = ""
        law, *others = re.split(r" {2,}", rest)
        for part in others:
            if _SHAPE.fullmatch(part):
                shape = part
            elif _EQUATION.fullmatch(part):
                equation = part
            else:
                meaning = part
        names = tuple(re.findall(r"`(\w+)`", meaning)) or (symbol.rsplit("_", 1)[0],)
        meaning = re.sub(r",? *`.*", "", meaning)
        rows.append(Symbol(symbol, names, shape or "()", meaning, equation, f"{sign} {law}"))
    return rows


_PAPER = re.compile(
    r"([A-Z][\w'-]*(?:, [\w' -]+?)*) \((\d{4})\), \"([^\"]+)\", "
    r"(.+?)(?=, sections? |, eqs?\. |, in the form |;|\.$)"
)
_JOURNAL = re.compile(r"(.*?) (\d+)(?:\((\d+)\))?(?:, (\d+-\d+))?(?:, doi (\S+))?")


def bibtex(spec: ModelSpec) -> str:
    """Return the BibTeX entry of a model's paper, from the citation in its docstring."""
    citation = _PAPER.search(" ".join(sections(spec.doc)[""].split()))
    if citation is None:
        raise ValueError(f"the docstring of {spec.name} cites no paper in the usual form.")
    authors, year, title, venue = citation.groups()
    names = authors.split(", ")
    whole = [f"{{{name}}}" if " " in name else name for name in names]  # {De Rijke}
    fields = {"author": " and ".join(whole), "title": f"{{{title}}}", "year": year}
    journal = _JOURNAL.fullmatch(venue)
    kind = "inproceedings"
    if venue.startswith("arXiv "):
        kind = "misc"
        fields |= {"eprint": venue.removeprefix("arXiv "), "archiveprefix": "arXiv"}
    elif journal:
        kind = "article"
        words = ("journal", "volume", "number", "pages", "doi")
        fields |= {w: v for w, v in zip(words, journal.groups(), strict=True) if v}
    else:
        fields["booktitle"] = venue
    key = re.sub(r"\W", "", names[0]).lower() + year
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items()]
    return "\n".join([f"@{kind}{{{key},", *lines, "}"])
