"""The reference posteriors that are kept with the package, each declared once.

To add one, declare it here and run `ardvark reference make NAME`: minutes, and a file of some
hundred kB. Built-in data, or sets of the registry that can be fetched; sparse priors, the default.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ardvark.models import Problem
from ardvark.models import problem as make_problem


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A run to be kept: everything that decides its draws.

    Attributes
    ----------
    model, data, method : str
        Names in their registries.
    draws : int
        A chain; there are four, unless `chains` says otherwise.
    hypers, options : dict
        Those that are not the default, of the model and of the method.
    note : str
        What is special about it.
    """

    model: str
    data: str
    method: str
    draws: int
    chains: int = 4
    seed: int = 1
    hypers: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""

    @property
    def name(self) -> str:
        """Model, data and what is not the default."""
        return "-".join([self.model, self.data, *map(str, self.hypers.values())])

    @property
    def command(self) -> str:
        """What makes it."""
        return f"ardvark reference make {self.name}"

    def problem(self) -> Problem:
        """Return the problem whose posterior it is; its data must be there."""
        return make_problem(self.model, self.data, **self.hypers)


REFERENCES: dict[str, Reference] = {
    r.name: r
    for r in (
        Reference(model="sparse_probit", data="sonar", method="nuts", draws=2000),
        Reference(model="sparse_probit", data="australian", method="nuts", draws=2000),
        Reference(model="sparse_probit", data="colon", method="nuts", draws=1000),
        Reference(model="jcfo", data="sonar", method="nuts", draws=1500),
        Reference(model="jcfo", data="colon", method="nuts", draws=1000),
        Reference(model="pcvm", data="sonar", method="nuts", draws=1500),
        Reference(model="pcvm", data="colon", method="nuts", draws=3000),
        Reference(model="rvm", data="sonar", method="nuts", draws=1500),
        Reference(model="rvm", data="colon", method="nuts", draws=4000),
        Reference(model="rfvm", data="digits38", method="nuts", draws=2000),
        Reference(
            model="rfvm",
            data="colon",
            method="gibbs",
            draws=1000,
            options={"tune": 500},
            note="hard: of correlated genes one or another is active; chains rarely change over",
        ),
        Reference(model="pfcvm", data="digits38", method="nuts", draws=800),
        Reference(model="pfcvm", data="colon", method="gibbs", draws=600, options={"tune": 300}),
        Reference(model="fsklr", data="sonar", method="gibbs", draws=1500, options={"tune": 500}),
        Reference(model="sklr", data="sonar", method="gibbs", draws=2000, options={"tune": 500}),
        Reference(model="fs_skr", data="sonar", method="gibbs", draws=1500, options={"tune": 500}),
    )
}
"""Every reference, by name."""
