"""The reference posteriors that are kept with the package, each declared once.

To add one, declare it here and run `python -m lab.references make NAME`. It takes minutes and
writes a file of a few hundred kB. The data are built in or can be downloaded, and the priors are
sparse, which is the default; the scale of JCFO's and sparse probit's is fixed, which is not.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ardvark.common.validate import named
from ardvark.models import Problem
from ardvark.models import problem as make_problem
from lab.problems import PAPERS


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A run to be stored: everything that determines its draws.

    Attributes
    ----------
    model, data, method : str
        Names in their registries.
    draws : int
        Draws per chain; there are four chains, unless `chains` says otherwise.
    hypers, options : dict
        Settings of the model and of the method that differ from the default.
    note : str
        A remark about it.
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

    def problem(self) -> Problem:
        """Return the problem whose posterior it is; its data must be there."""
        return make_problem(self.model, self.data, **self.hypers)


REFERENCES: dict[str, Reference] = {
    r.name: r
    for r in (
        *(
            Reference(model=model, data=data, method="nuts", draws=draws, hypers=PAPERS[model])
            for model, data, draws in (
                ("sparse_probit", "sonar", 2000),
                ("sparse_probit", "australian", 2000),
                ("sparse_probit", "colon", 1000),
                ("jcfo", "sonar", 1500),
                ("jcfo", "colon", 1000),
            )
        ),
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
            note="hard: any of several correlated genes may be active, and chains rarely switch",
        ),
        Reference(model="pfcvm", data="digits38", method="nuts", draws=800),
        Reference(model="pfcvm", data="colon", method="gibbs", draws=600, options={"tune": 300}),
        Reference(model="fsklr", data="sonar", method="gibbs", draws=1500, options={"tune": 500}),
        Reference(model="sklr", data="sonar", method="gibbs", draws=2000, options={"tune": 500}),
        Reference(model="fs_skr", data="sonar", method="gibbs", draws=1500, options={"tune": 500}),
        Reference(
            model="horseshoe",
            data="sonar",
            method="nuts",
            draws=6000,
            options={"tune": 1000, "target_accept": 0.99},
        ),
    )
}
"""Every reference, by name."""


def checked_name(name: str) -> str:
    """Return the reference that is meant, or raise one error that lists them."""
    return named("reference", name, REFERENCES, "`ardvark reference list` lists them.")
