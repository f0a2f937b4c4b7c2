"""Results on disk: by which hash a stored one is known, and files that are parsed only once."""

import hashlib
import json
from collections.abc import Callable, Hashable
from functools import lru_cache
from pathlib import Path
from typing import Any


def identity(settings: Any, digits: int = 16, *, sort_keys: bool = True) -> str:
    """Hash the settings that decide a result, so that changed ones are computed again."""
    text = json.dumps(settings, sort_keys=sort_keys, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]


def parsed[Content](parse: Callable[..., Content], path: Path, *given: Hashable) -> Content:
    """Return ``parse(path, *given)``, computed again only if the file has changed.

    It is shared by all who ask, so nobody may change it.
    """
    stat = path.stat() if path.exists() else None
    stamp = None if stat is None else (stat.st_mtime_ns, stat.st_size)
    content: Content = _parsed(parse, path, given, stamp)
    return content


@lru_cache(maxsize=64)
def _parsed(
    parse: Callable[..., Any],
    path: Path,
    given: tuple[Hashable, ...],
    stamp: tuple[int, int] | None,
) -> Any:
    return parse(path, *given)
