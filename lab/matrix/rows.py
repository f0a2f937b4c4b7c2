"""The file of the matrix: a row a cell, added block by block, in the order of the declaration."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lab.matrix.declared import BLOCKS, Block
from lab.matrix.numbers import NAMES

FILE = Path(__file__).with_name("matrix.csv")
Row = dict[str, Any]
TEXTS = ("model", "kernel", "data", "prior", "cell", "method", "sampler", "status", "reason",
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
    text = json.dumps(settings, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def read(file: Path = FILE) -> pd.DataFrame:
    """Return the rows of complete blocks as they are declared now, in that order, with `block`."""
    if not file.exists():
        return pd.DataFrame(columns=[*COLUMNS, "block"])
    frame = pd.read_csv(file, dtype=dict.fromkeys(TEXTS, str))
    return whole(frame.fillna(dict.fromkeys(TEXTS, "")))


def whole(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the blocks of which each cell has a row; the last one of a cell counts."""
    parts = [frame.head(0).assign(block="")]
    for name, block in BLOCKS.items():
        mine = frame[frame["identity"] == identity(block)]
        for column in ("model", "kernel", "data", "prior"):
            mine = mine[mine[column] == getattr(block, column)]
        last = mine.drop_duplicates("cell", keep="last").set_index("cell", drop=False)
        labels = [cell.label for cell in block.cells]
        if set(labels) <= set(last.index):
            parts.append(last.loc[labels].assign(block=name))
    return pd.concat([part for part in parts if len(part)] or parts, ignore_index=True)


def add(rows: Sequence[Row], file: Path = FILE) -> None:
    """Add the rows of a block, and write the file anew, completely or not at all."""
    filled = [dict.fromkeys(TEXTS, "") | row for row in rows]
    new = pd.DataFrame(filled, columns=list(COLUMNS))
    held = read(file).drop(columns="block")
    frame = whole(pd.concat([part for part in (held, new) if len(part)], ignore_index=True))
    part = file.with_suffix(".new")
    frame[list(COLUMNS)].to_csv(part, index=False, float_format="%.4g", lineterminator="\n")
    part.replace(file)
