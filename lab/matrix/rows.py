"""The file of the matrix: a row a cell, added block by block, read back and put in order."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ardvark.inference.fits.datatree import replacing
from lab import lines
from lab.matrix.declared import BLOCKS, Block
from lab.matrix.numbers import NAMES

ROWS = "matrix.csv"
Row = dict[str, Any]
_TEXTS = ("model", "kernel", "data", "prior", "cell", "method", "sampler", "status", "reason",
          "verdict", "identity", "commit")  # fmt: skip
COLUMNS = (
    "model", "kernel", "data", "N", "D", "prior", "cell", "method", "sampler", "status", "reason",
    "rhat", "rhat_eta", "ess", "divergences", "seconds", *NAMES, "verdict", "identity", "commit",
)  # fmt: skip
"""What a row has: where it stands, how the fit went, the numbers (`NAMES`), and its origin."""


def identity(block: Block) -> str:
    """Hash everything that decides a block's rows, so that a changed setting is computed again."""
    cells = [dataclasses.asdict(cell) for cell in block.cells]
    settings = [block.model, block.data, block.kernel, dict(block.hypers), cells, list(COLUMNS)]
    return lines.identity(settings, sort_keys=True)


def read(path: Path) -> pd.DataFrame:
    """Return the rows of a file; a line that a kill left unfinished is cut off.

    A file with other columns, of another version, has no rows that count.
    """
    if not _current(path):
        return pd.DataFrame(columns=list(COLUMNS))
    lines.mend(path)
    frame = pd.read_csv(path, dtype=dict.fromkeys(_TEXTS, str))
    return frame.fillna(dict.fromkeys(_TEXTS, ""))


def whole(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of complete blocks as they are declared now, in that order, with `block`."""
    parts = []
    for name, block in BLOCKS.items():
        same = (
            (frame["model"] == block.model)
            & (frame["kernel"] == block.kernel)
            & (frame["data"] == block.data)
            & (frame["prior"] == block.prior)
            & (frame["identity"] == identity(block))
        )
        labels = [cell.label for cell in block.cells]
        last = frame[same].drop_duplicates("cell", keep="last").set_index("cell", drop=False)
        if set(labels) <= set(last.index):
            parts.append(last.loc[labels].assign(block=name))
    return pd.concat(parts, ignore_index=True) if parts else frame.head(0).assign(block="")


def append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to the file, in one write; a file of another version is moved to `*.outdated`."""
    if path.exists() and path.stat().st_size and not _current(path):
        path.replace(path.with_name(f"{path.name}.outdated"))
    lines.append(path, COLUMNS, ({k: _short(v) for k, v in row.items()} for row in rows))


def _current(path: Path) -> bool:
    """Whether the file is there and has the columns of today."""
    if not path.exists():
        return False
    with path.open(encoding="utf-8") as file:
        return file.readline().rstrip("\n") == ",".join(COLUMNS)


def _short(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return "" if np.isnan(value) else f"{value:.4g}"


def tidy(path: Path) -> pd.DataFrame:
    """Write the file anew, each block once and in the order of its declaration; return its rows."""
    frame = whole(read(path)).drop(columns="block")
    with replacing(path) as part:
        part.unlink(missing_ok=True)
        append(
            part,
            (dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(index=False)),
        )
    return frame
