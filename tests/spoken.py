"""What a page says: its texts and what stands under the pointer, as lines of a snapshot."""

import re
import textwrap
from html.parser import HTMLParser

VOID = {"meta", "img", "br", "hr", "input", "link", "col"}
BLOCKS = {"h1", "h2", "h3", "p", "li", "dt", "dd", "tr", "summary", "title", "div", "pre"}
SILENT = {"style", "svg", "script"}


class Reader(HTMLParser):
    """Reads a page, each of whose elements must be closed where it has to be."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.lines: list[str] = [""]
        self.pointed: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a line where a block begins; keep what is not printed, but said."""
        named = {name: value or "" for name, value in attrs}
        self.pointed += [named["title"]] if named.get("title") else []
        if tag in BLOCKS:
            self.lines.append("# " if tag in ("h1", "h2", "h3") else "")
        if tag == "img":
            self.lines.append(f"[{named['alt']}]")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """End an element, or a cell of a table."""
        assert self.open.pop() == tag
        if tag in ("td", "th"):
            self.lines[-1] += " | "

    def handle_data(self, data: str) -> None:
        """Keep a text, but for the marks of figures."""
        if "svg" in self.open and self.open[-1] == "title":
            self.pointed.append(data)
        elif not SILENT & set(self.open):
            self.lines[-1] += data


def masked(text: str) -> str:
    """Return a text without what another machine or the next version says differently."""
    known = (
        (r"\b(ardvark|arviz|numpy|nutpie|pymc|pytensor) \d[\w.]*\d", r"\1 V"),
        (r"\b[0-9a-f]{16}\b", "FINGERPRINT"),
        (r"""(['"]\w+['"]: )['"]\d+\.[\w.]+['"]""", r"\1V"),
    )
    for pattern, word in known:
        text = re.sub(pattern, word, text)
    return text


def spoken(page: str, pointed: bool = False) -> str:
    """Return the texts of a page, and what is under the pointer where that is asked for."""
    reader = Reader(page)
    found = [masked(" ".join(line.split()).rstrip("| ")) for line in reader.lines]
    if pointed:
        found += ["under the pointer:", *dict.fromkeys(reader.pointed)]
    return "\n".join(textwrap.fill(line, 100, break_long_words=False) for line in found if line)
