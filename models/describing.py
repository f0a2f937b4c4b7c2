"""A problem in words: sizes, classes, covariates, and the value of every hyperparameter."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ardvark.common.html import table
from ardvark.data import Dataset

from .centres import given_centres
from .spec import ModelSpec


class Described(NamedTuple):
    """What there is to say of a problem: D features, B centres, columns always in it."""

    spec: ModelSpec
    data: Dataset
    D: int
    B: int
    always: tuple[str, ...]
    hypers: Mapping[str, Any]

    def line(self) -> str:
        """Return model, data and sizes in one line."""
        columns = f"K={len(self.always)}, " if self.always else ""
        sizes = f"N={self.data.N}, D={self.D}, {columns}B={self.B}"
        return f"{self.spec.name!r} on {self.data.name!r}: {sizes}"

    def text(self) -> str:
        """Return it as lines of text."""
        data, names, spec = self.data, self.data.class_names, self.spec
        lines = [
            f"{spec.title} ({spec.name}) on {data.name}",
            f"  {data.N} samples x {self.D} features{self._basis}; y = 1 is "
            f"{names[1]!r} ({data.counts[1]}), y = 0 is {names[0]!r} ({data.counts[0]})",
            *([f"  always in the model: {', '.join(self.always)}"] if self.always else []),
            "  hyperparameters (paper's value):",
        ]
        lines += [
            f"    {name:<16} {shown:<14} ({paper})" + (f"  {note}" if note else "")
            for name, shown, paper, note in self._values()
        ]
        lines += [f"  {remark}" for remark in data.remarks]
        return "\n".join(lines)

    def html(self) -> str:
        """Return it as a table."""
        data, names, always = self.data, self.data.class_names, self.always
        rows = [
            ("samples", data.N, f"{names[1]} ({data.counts[1]}), {names[0]} ({data.counts[0]})"),
            ("features", self.D, ""),
            *([("always in the model", len(always), ", ".join(always))] if always else []),
            *([("basis centres", self.B, "")] if self._has_basis else []),
            *((name, value, f"paper: {paper}") for name, value, paper, _ in self._values()),
        ]
        return table(f"{self.spec.title} on {data.name}", rows, notes=data.remarks)

    @property
    def _has_basis(self) -> bool:
        return "kernel" in self.hypers

    @property
    def _basis(self) -> str:
        if not self._has_basis:
            return ""
        return ", " + (given_centres(self.data.N, self.B) or f"{self.B} basis centres")

    def _values(self) -> list[tuple[str, str, str, str]]:
        """Return (name, value, the paper's value, why they differ) of each hyperparameter."""
        rows = []
        for declared in (d for d in self.spec.Hypers.declared() if d.name in self.hypers):
            value = self.hypers[declared.name]
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            long = isinstance(value, tuple) and len(value) > 4
            shown = f"{len(value)} values" if long else shown
            rows.append((declared.name, shown, declared.paper, declared.why))
        return rows
