"""How long the exact posterior takes, from the measured rows that `ardvark methods --for` reads."""

from collections.abc import Iterator

from ardvark.inference.samplers.exact import measured, rule
from lab import tables
from lab.speed.exact import TABLE

from .text import table


def pages() -> Iterator[tuple[str, str]]:
    """Yield the parts of the page `which.md`."""
    yield "parts/times.md", times()
    yield "parts/samplers.md", samplers()


def times() -> str:
    """Return every measured time, and when it was measured."""
    rows = [
        (
            f"[{row.model}](/models/{row.model}.md)",
            "" if row.kernel == "None" else row.kernel,
            row.data,
            f"{row.N} x {row.D}",
            f"[{row.sampler}](/methods/{row.sampler}.md)",
            f"{row.seconds:.0f}",
            f"{row.gigabytes:.1f}",
            "yes" if row.converged else "no",
        )
        for row in sorted(measured.table(), key=lambda row: (row.N * row.D, row.model))
    ]
    head = ("model", "kernel", "data", "samples x features", "sampler", "s", "GB", "converged")
    date = tables.said(TABLE).partition(",")[0]
    return (
        f"{table(head, rows)}\n\nMeasured on {date} on two cores, "
        "without compilation, of fixed scales; the median over seeds. GB is the largest resident "
        "memory of the process. [Speed and memory](/results/speed.md) has every run.\n"
    )


def samplers() -> str:
    """Return which sampler `exact` takes, and what was measured for it."""
    return rule.text() + "\n"
