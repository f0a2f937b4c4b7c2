"""The built site as data: pages, their links, anchors, pictures and words."""

import posixpath
from dataclasses import dataclass, field
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SITE = Path(__file__).parents[2] / "build" / "site"
OWN = ("genindex.html", "search.html", "py-modindex.html")
"""Pages of the builder's own."""


@dataclass
class Seen:
    """What one page has."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)  # source, alt
    loaded: list[str] = field(default_factory=list)
    text: str = ""


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen, self._muted, self._article = Seen(), 0, 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.seen.anchors |= {named[key] for key in ("id", "name") if key in named}
        if tag == "a" and "href" in named:
            self.seen.links.append(named["href"])
        elif tag == "img":
            self.seen.pictures.append((named["src"], named.get("alt", "")))
        elif tag in ("script", "link", "iframe", "source"):
            self.seen.loaded += [named[key] for key in ("src", "href") if key in named]
        self._muted += tag in ("script", "style")
        self._article += tag == "article"

    def handle_endtag(self, tag: str) -> None:
        self._muted -= tag in ("script", "style")
        self._article -= tag == "article"

    def handle_data(self, data: str) -> None:
        if self._article and not self._muted:
            self.seen.text += data


@cache
def pages() -> dict[str, Seen]:
    """Return every page by its path below the site's folder."""
    if not (SITE / "index.html").exists():
        pytest.fail("there is no site: `make docs` builds it, `make docs-test` builds and tests it")
    found = {}
    for path in sorted(SITE.rglob("*.html")):
        name = path.relative_to(SITE).as_posix()
        if "_static/" not in name:
            reader = _Reader()
            reader.feed(path.read_text())
            found[name] = reader.seen
    return found


def target(page: str, link: str) -> tuple[str, str] | None:
    """Return page or file and anchor that a link of a page leads to; None if it leaves the site."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return None
    path = posixpath.normpath(posixpath.join(posixpath.dirname(page), unquote(parts.path)))
    return (page if not parts.path else path), unquote(parts.fragment)


def reachable(start: str, clicks: int) -> set[str]:
    """Return the pages that so many clicks from a page reach."""
    found = {start}
    for _ in range(clicks):
        links = [(page, link) for page in found for link in pages()[page].links]
        ends = {end[0] for page, link in links if (end := target(page, link))}
        found |= ends & set(pages())
    return found
