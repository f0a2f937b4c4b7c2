"""How long the exact posterior takes, from the measured rows that `ardvark methods --for` reads."""

from collections.abc import Iterator

from ardvark.cli.listing import small_problem
from ardvark.inference.samplers.exact import measured
from ardvark.inference.samplers.exact.rule import pick
from ardvark.inference.target.target import Target
from ardvark.models import ZOO
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
    """Return which sampler `exact` takes for each model, for a small problem."""
    models: dict[tuple[str, str], list[str]] = {}
    for name in ZOO:
        picked = pick(Target(small_problem(name)))
        models.setdefault((picked.name, picked.reason), []).append(f"[{name}](/models/{name}.md)")
    rows = [
        (", ".join(names), f"[{sampler}](/methods/{sampler}.md)", reason)
        for (sampler, reason), names in models.items()
    ]
    return table(("models", "sampler", "because"), rows) + "\n"
