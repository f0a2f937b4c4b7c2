"""The rows of what a person would pick today (`yardsticks`), on RFVM's and FS-SKLR's tables.

A row is a "baseline" where the method stands in the paper's own table, and a "yardstick" elsewhere.
Options are chosen within the fold, over our own grids: the ranges of the papers are in part not in
their text, and FS-SKLR's options were adjusted to "similar sparsities".

Other competitors of the papers are not run, so they have no row: SMPM, WSVM, mRMR, trace ratio and
FSNM (PFCVM), AdaBoost, the SVM with a quadratic kernel and logistic regression (JCFO), L1 kernel
logistic regression (FS-SKLR), forest, perceptron and sparse Gaussian process (RFVM).
"""

from collections.abc import Iterator

from lab.papers.protocols import Reading, Row
from lab.yardsticks.registry import YARDSTICKS

TODAY = ("l1", "mcp", "elastic_net", "stability")
ASKED = tuple(f"*/{name}" for name in YARDSTICKS)
"""Patterns of these rows: they run where they are asked for by name, some with the extra."""

ELASTIC_NET = {
    "colon_discrete": ((78, 5), (1.72, 0.64)),
    "lymphoma_discrete": ((86, 7), (55.43, 45.55)),
    "leukemia_discrete": ((94, 5), (1.98, 0.67)),
    "allaml": ((95, 3), (3.47, 1.25)),
    "prostate_ge": ((93, 5), (28.86, 36.79)),
}  # RFVM, table 3: accuracy and features in percent, each with its sd
KNOCKOFFS = ("colon_discrete", "lymphoma_discrete", "leukemia_discrete")


def rows(paper: str, data: str) -> Iterator[Row]:
    """Yield what a person would pick today; RFVM's table has the elastic net too, with figures."""
    if paper == "RFVM":
        accuracy, features = ELASTIC_NET[data]
        yield row(
            "elastic_net", "baseline", {"accuracy": accuracy[0], "features": features[0]},
            {"accuracy": accuracy[1], "features": features[1]},
        )  # fmt: skip
    for name in TODAY:
        if paper != "RFVM" or name != "elastic_net":
            yield row(name)
    if data in KNOCKOFFS:
        yield row("knockoffs")


def row(
    name: str,
    reading: Reading = "yardstick",
    printed: dict[str, float] | None = None,
    printed_sd: dict[str, float] | None = None,
) -> Row:
    """Return the row of one method."""
    return Row(
        label=name, model="", method=name, reading=reading, printed=printed or {},
        printed_sd=printed_sd or {},
    )  # fmt: skip
