"""What the blocks of the matrix have cost, and an estimate of what the others will cost."""

from collections.abc import Mapping
from functools import lru_cache
from math import log
from pathlib import Path

from lab.matrix.declared import BLOCKS, FLAT, Block
from lab.matrix.rows import ROWS, read, whole
from lab.papers.protocols import sizes_of


def spent(folder: Path) -> dict[str, float]:
    """Return the seconds of fitting of the blocks that are stored, by name."""
    seconds = whole(read(folder / ROWS)).groupby("block")["seconds"].sum()
    return {str(name): float(value) for name, value in seconds.items()}


def to_come(block: Block, known: Mapping[str, float]) -> tuple[float | None, str]:
    """Return the seconds that a block will take, and the like block that this is from.

    A like block has the same model and a proper prior, if possible the same kernel and the same
    prior, on data of the nearest size. The estimate is in proportion to N (N + D), the entries of K
    and X. (Between the papers' rows this was right within a factor of three for half of them.) A
    stored block takes no time. None: there is no like block.
    """
    if block.name in known:
        return 0.0, ""
    if block.prior == FLAT:
        return 0.0, "one line, no fit"

    def ratio(other: Block) -> float:
        return _entries(block.data) / _entries(other.data)

    def unlike(other: Block) -> tuple[bool, bool, float]:
        return other.kernel != block.kernel, other.prior != block.prior, abs(log(ratio(other)))

    stored = (BLOCKS[name] for name in known)
    like = [other for other in stored if other.model == block.model and other.prior != FLAT]
    nearest = min(like, key=unlike, default=None)
    return (None, "") if nearest is None else (known[nearest.name] * ratio(nearest), nearest.name)


@lru_cache
def _entries(data: str) -> int:
    N, D, _ = sizes_of(data)
    return N * (N + D)
