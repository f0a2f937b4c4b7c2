"""How much memory a computation may take: a share of what is free.

Free is what the operating system could give without swapping, and no more than the limit of the
control group (a container, a batch job) leaves. Each process of a job gets an equal part of what
was free when the job began: `pieces.py` sets it by `limit`.
"""

from pathlib import Path

import psutil

SHARE = 0.5
"""The share of the free memory that a computation may take."""
ROOT = Path("/sys/fs/cgroup")
OWN = Path("/proc/self/cgroup")

_part = float("inf")


def free() -> float:
    """Return the bytes that are free for this process."""
    return min(float(psutil.virtual_memory().available), _left_by_control_groups())


def allowed() -> float:
    """Return the bytes that one computation of this process may take now."""
    return min(SHARE * free(), _part)


def limit(part: float) -> None:
    """Let this process take at most so many bytes: it is one of several that work on one job."""
    global _part
    _part = part


def text(size: float) -> str:
    """Return a number of bytes in words.

    Examples
    --------
    >>> from ardvark.common.memory import text
    >>> text(2.34e9), text(5e6)
    ('2.3 GB', '5 MB')
    """
    return f"{size / 1e6:.0f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


def _left_by_control_groups() -> float:
    """Return the bytes that the control groups of this process leave; infinity without a limit.

    Version 2 has one file a group, version 1 a tree of its own for memory. Pages of files that the
    kernel can drop are counted as used, so they are added again.
    """
    left = float("inf")
    for line in _read(OWN).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, names = ROOT, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            top = ROOT / "memory"
        else:
            continue
        most, used, dropped = names
        group = top / path.lstrip("/")
        for place in (group, *group.parents):  # a limit of any of them holds
            if place == top.parent:
                break
            whole, taken = _read(place / most).strip(), _read(place / used).strip()
            if whole.isdigit() and taken.isdigit():
                stat = dict(
                    each.split(" ", 1) for each in _read(place / "memory.stat").splitlines()
                )
                left = min(left, int(whole) - int(taken) + int(stat.get(dropped, "0")))
    return max(left, 0.0)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:  # not on this system, or not in this version of control groups
        return ""
