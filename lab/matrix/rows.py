"""The file of the matrix: a row a cell, added block by block, read back and put in order."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ardvark.common.store import identity as hashed
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
    return hashed(settings, 8)


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
    found = {name: of_block(frame, block) for name, block in BLOCKS.items()}
    parts = [rows.assign(block=name) for name, rows in found.items() if len(rows)]
    return pd.concat(parts, ignore_index=True) if parts else frame.head(0).assign(block="")


def of_block(frame: pd.DataFrame, block: Block) -> pd.DataFrame:
    """Return the rows of a block as it is declared now, in that order; none of half a block."""
    same = (
        (frame["model"] == block.model)
        & (frame["kernel"] == block.kernel)
        & (frame["data"] == block.data)
        & (frame["prior"] == block.prior)
        & (frame["identity"] == identity(block))
    )
    labels = [cell.label for cell in block.cells]
    last = frame[same].drop_duplicates("cell", keep="last").set_index("cell", drop=False)
    return last.loc[labels] if set(labels) <= set(last.index) else frame.head(0)


def append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to the file, in one write; a file of another version is moved to `*.outdated`."""
    if path.exists() and path.stat().st_size and not _current(path):
        path.replace(path.with_name(f"{path.name}.outdated"))
    lines.append(path, map(_shortened, rows), COLUMNS)


def _current(path: Path) -> bool:
    """Whether the file is there and has the columns of today."""
    if not path.exists():
        return False
    with path.open(encoding="utf-8") as file:
        return file.readline().rstrip("\n") == ",".join(COLUMNS)


def _shortened(row: Mapping[Any, Any]) -> Row:
    return {k: _short(v) for k, v in row.items()}


def _short(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return "" if np.isnan(value) else f"{value:.4g}"


def tidy(path: Path) -> pd.DataFrame:
    """Write the file anew, each block once and in the order of its declaration; return its rows."""
    frame = whole(read(path)).drop(columns="block")
    lines.write(path, map(_shortened, frame.to_dict("records")), COLUMNS)
    return frame
