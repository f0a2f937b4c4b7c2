"""Which genes are printed where, which posteriors stand beside them, and which folds."""

import csv
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
AS_IT_IS = "as it is"
CHANGES = (
    AS_IT_IS, "active_features halved", "active_features doubled", "slab halved", "slab doubled"
)  # fmt: skip


@dataclass(frozen=True)
class Gene:
    """A row of a printed table. number : its column in our data, from 1."""

    table: str
    place: int
    number: int
    gene: str
    as_printed: str
    printed: float
    description: str
    note: str


@dataclass(frozen=True, kw_only=True)
class Fit:
    """An exact posterior on all rows of a data set.

    by_sample : standardise each sample first, as PFCVM's paper does.
    """

    data: str
    model: str
    change: str = AS_IT_IS
    by_sample: bool = False

    @property
    def name(self) -> str:
        return f"{self.data}/{self.model}/{self.change}"


@dataclass(frozen=True, kw_only=True)
class Folds:
    """Folds of a row of the papers' tables.

    count : how many of them, from the first. total : how many the table has.
    label : the reading of the paper's algorithm. PFCVM's "200/100" prunes features at precision
    200, which starts at 100; its "floor" sets a theta below 0.1 to 0. JCFO's has one start and
    corrected rates, RFVM's the settings of the released example.
    """

    row: str
    label: str
    count: int
    total: int
    exact: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """A printed table of genes.

    top : genes that count as selected in a fold, those with the largest weights; 0: all kept ones.
    fits : PFCVM's under five priors, and those of other models beside them.
    """

    name: str
    title: str
    data: str
    printed: str
    top: int
    fits: tuple[Fit, ...]
    folds: tuple[Folds, ...] = field(default=())


def pfcvm(data: str, changes: Iterable[str] = CHANGES) -> tuple[Fit, ...]:
    """Return PFCVM's posterior under its sparse default prior, and under changes of it."""
    return tuple(Fit(data=data, model="pfcvm", change=x, by_sample=True) for x in changes)


def of_pfcvm(data: str, count: int, exact: int) -> tuple[Folds, ...]:
    """Return the folds of two readings of PFCVM's algorithm, and of the exact posterior."""
    row = f"pfcvm-6/{data}"
    own = (
        Folds(row=f"{row}/pfcvm_lp-200/100", label="200/100", count=count, total=count),
        Folds(row=f"{row}/pfcvm_lp-floor", label="floor", count=count, total=count),
    )
    of_exact = Folds(row=f"{row}/exact", label="exact", count=exact, total=count, exact=True)
    return (*own, of_exact) if exact else own


TABLES = (
    Table(
        name="pfcvm-4", title="PFCVM, table 4: colon", data="colon", top=5,
        printed="number of the 62 folds that select it",
        fits=pfcvm("colon"), folds=of_pfcvm("colon", 62, 10),
    ),
    Table(
        name="jcfo-3", title="JCFO, table 3: colon", data="colon", top=0,
        printed="mean theta over 62 folds",
        fits=(
            *(Fit(data="colon", model=model) for model in ("jcfo", "sparse_probit", "rfvm")),
            *pfcvm("colon"),
        ),
        folds=(Folds(row="jcfo-1/colon/jcfo-one", label="one start", count=62, total=62),),
    ),
    Table(
        name="pfcvm-5", title="PFCVM, table 5: AML and ALL", data="golub", top=3,
        printed="number of the 72 folds that select it",
        fits=pfcvm("golub"), folds=of_pfcvm("golub", 72, 0),
    ),
    Table(
        name="jcfo-2", title="JCFO, table 2: AML and ALL", data="golub", top=0,
        printed="mean theta over 72 folds",
        fits=(Fit(data="golub", model="sparse_probit"), *pfcvm("golub")),
        folds=(Folds(row="jcfo-1/golub/jcfo-one", label="one start", count=72, total=72),),
    ),
    Table(
        name="rfvm-5", title="RFVM, table 5: AML and ALL", data="allaml", top=0,
        printed="weight",
        fits=(Fit(data="allaml", model="rfvm"), *pfcvm("golub")),
        folds=(Folds(row="rfvm-3-4/allaml/rfvm_vb", label="as printed", count=5, total=5),),
    ),
)  # fmt: skip
TOY = Table(
    name="toy", title="Toy", data="toy", printed="nothing", top=3,
    fits=(Fit(data="toy", model="pfcvm"),),
    folds=(Folds(row="toy/folds", label="toy", count=1, total=10),),
)  # fmt: skip
"""What quick forms compute."""
TOY_SIZE = 10, 40  # fat, so that the Gibbs sampler serves it


@cache
def genes() -> dict[str, tuple[Gene, ...]]:
    """Return the rows of each printed table, in the order of the print."""
    found: dict[str, list[Gene]] = {}
    with (HERE / "printed.csv").open(newline="") as file:
        for x in csv.DictReader(file):
            numbers: dict[str, Any] = {
                "place": int(x["place"]), "number": int(x["number"]), "printed": float(x["printed"])
            }  # fmt: skip
            found.setdefault(x["table"], []).append(Gene(**{**x, **numbers}))
    toy = [Gene(TOY.name, k, k, f"x{k}", f"x{k}", float(k), "", "") for k in (1, 2, 11)]
    return {name: tuple(rows) for name, rows in found.items()} | {TOY.name: tuple(toy)}


def asked_of(data: str) -> dict[int, str]:
    """Return the genes that any table prints of a data set: column number and name.

    Golub's data and ALLAML have the same columns.
    """
    same = {"golub", "allaml"} if data in ("golub", "allaml") else {data}
    listed = [g for table in (*TABLES, TOY) if table.data in same for g in genes()[table.name]]
    return {g.number: g.gene for g in sorted(listed, key=lambda g: g.number)}
