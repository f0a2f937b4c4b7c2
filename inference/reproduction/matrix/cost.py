"""What the blocks of the matrix have cost, and an estimate of what the others will cost."""

from collections.abc import Mapping
from pathlib import Path

from .declared import BLOCKS, Block
from .rows import ROWS, read, whole


def spent(folder: Path) -> dict[str, float]:
    """Return the seconds of fitting of the blocks that are stored, by name."""
    seconds = whole(read(folder / ROWS)).groupby("block")["seconds"].sum()
    return {str(name): float(value) for name, value in seconds.items()}


def to_come(block: Block, known: Mapping[str, float]) -> tuple[float | None, str]:
    """Return the seconds that a block will take, and the like block that this is the time of.

    A like block has the same model; the same data and the same prior count more than the kernel.
    A stored block takes no time. None: there is no like block.
    """
    if block.name in known:
        return 0.0, ""

    def unlike(other: Block) -> tuple[bool, bool, bool]:
        return other.data != block.data, other.prior != block.prior, other.kernel != block.kernel

    like = [BLOCKS[name] for name in known if BLOCKS[name].model == block.model]
    nearest = min(like, key=unlike, default=None)
    return (None, "") if nearest is None else (known[nearest.name], nearest.name)
