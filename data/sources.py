"""The registry of data sets that are not part of the package: what they are and where to get them.

It is `registry.toml`, and contains no data, only addresses, hashes and the expected result. A data
set is identified by the sha256 of its canonical arrays (X as float64 in C order, then y as int8,
before any transform; -0 counts as 0), because files with different bytes may contain the same
values. The hash of a file itself is checked if it is known and the file is downloaded from its
public source.

Every data set can also be provided as a tidy table `NAME.csv.gz` or `NAME.csv`: a header, the first
column `y` (0 or 1), then one column per feature.
"""

import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from . import parsers
from .parsers import Parser


@dataclass(frozen=True)
class Form:
    """One form in which a data set is stored: its files, their parser, their public addresses.

    Parameters
    ----------
    parse : callable
        Takes the paths of `files`, in this order.
    files : tuple of str
        File names, looked up in the user's folders and in the cache.
    urls : tuple of str
        Their addresses; empty if these files have no public download, or none that was checked.
    sha256 : tuple of str
        Their hashes at these addresses; "" if not known (the arrays are checked anyway).
    """

    parse: Parser
    files: tuple[str, ...]
    urls: tuple[str, ...] = ()
    sha256: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Source:
    """A data set: what it must be like, and how to get it.

    Parameters
    ----------
    home : str
        The page to cite and to look at.
    shape : tuple of int, optional
        (N, D), None where not fixed.
    counts : tuple of int, optional
        The numbers of y = 0 and y = 1.
    classes : tuple of str
        What y = 0 and y = 1 mean.
    arrays : str
        sha256 of the canonical arrays, "" where not known.
    forms : tuple of Form
        In order of preference.
    citation, licence, note : str
        The original authors, the terms of use, and a remark.
    transform : str
        What `change` does, in a few words.
    """

    home: str
    classes: tuple[str, str]
    citation: str
    licence: str = "not stated; cite the original authors"
    shape: tuple[int, int] | None = None
    counts: tuple[int, int] | None = None
    arrays: str = ""
    forms: tuple[Form, ...] = ()
    note: str = ""
    transform: str = ""

    def change(self, X: np.ndarray) -> np.ndarray:
        """Return X transformed as is usual (`raw=False`)."""
        return CHANGES[self.transform](X)


CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "": lambda X: X,
    "log": np.log,
    "clip to [100, 16000], log10": lambda X: np.log10(np.clip(X, 100, 16000)),
}
"""What `Source.transform` says, and does."""


def _form(about: dict[str, Any], *, read: str = "", given: dict[str, Any] | None = None) -> Form:
    """Return a form of the registry; `read` and `given` are those of its set."""
    parse = getattr(parsers, about.get("read", read))
    urls = tuple(about.get("urls", ()))
    # files keep the names they have there, so that a file saved by hand is found
    files = tuple(about.get("files", (url.rsplit("/", 1)[1] for url in urls)))
    hashes = tuple(about.get("sha256", [""] * len(urls)))
    return Form(partial(parse, **given) if given else parse, files, urls, hashes)


def _source(*, read: str = "", given: dict[str, Any] | None = None, **about: Any) -> Source:
    """Return a set of the registry."""
    forms = tuple(_form(form, read=read, given=given) for form in about.pop("forms", ()))
    plain: dict[str, Any]
    plain = {k: tuple(v) if isinstance(v, list) else v for k, v in about.items()}
    return Source(forms=forms, **plain)


_REGISTRY = tomllib.loads(Path(__file__).with_name("registry.toml").read_text(encoding="utf-8"))
SOURCES: dict[str, Source] = {name: _source(**about) for name, about in _REGISTRY.items()}


def forms(name: str) -> tuple[Form, ...]:
    """Return every form in which a data set may be stored: its own, then tidy tables NAME.csv.*."""
    own = SOURCES[name].forms
    taken = {file for form in own for file in form.files}
    tables = (Form(parsers.tidy, (file,)) for file in (f"{name}.csv.gz", f"{name}.csv"))
    return own + tuple(form for form in tables if form.files[0] not in taken)
