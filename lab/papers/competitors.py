"""The rows of the papers' competitors, and of what a person would pick today (`yardsticks`).

A row is a "baseline" where the method stands in the paper's own table, and a "yardstick" elsewhere.
The options of all of them are chosen within the fold, over our own grids: the ranges of the papers
are in part not in their text, and FS-SKLR's options were adjusted to "similar sparsities".

Absent: SMPM and WSVM (PFCVM's tables), which no kept library has; the inducing points of RFVM's
sparse Gaussian process (the row has all training rows); the RVM without a kernel (JCFO's table 1).
"""

from collections.abc import Iterator

from lab.papers.protocols import Reading, Row
from lab.yardsticks.registry import YARDSTICKS

TODAY = ("l1", "mcp", "elastic_net", "random_forest", "stability", "knockoffs")
FILTERS = ("mrmr", "trace_ratio", "robust_selection")
ASKED = (*(f"*/{name}" for name in YARDSTICKS), "pfcvm-6/*/l1_svm")
"""Patterns of these rows: they run where they are asked for by name, some with the extra."""
BEN_DOR = "printed: Ben-Dor et al. (2000)"

JCFO = {
    "colon": {"adaboost": 72.6, "quadratic_svm": 74.2, "l2_logistic": 71.0},
    "golub": {"adaboost": 95.8, "quadratic_svm": 95.8, "l2_logistic": 97.2},
}  # table 1, accuracy
FSKLR = {
    "digits38_noisy": {"accuracy": 95.9, "f1": 95.9}, "australian": {"f1": 82.1},
    "breast_wisconsin": {"f1": 95.5}, "heart": {"f1": 77.8}, "messidor": {"f1": 61.3},
    "ionosphere": {"f1": 72.5}, "sonar": {"f1": 70.4},
}  # fmt: skip # KLR-l1 in tables 2 and 3
RFVM = {
    "colon_discrete": {
        "random_forest": ((77, 8), (36.76, 5.41)), "gp_ard": ((64, 11),),
        "perceptron": ((74, 13),), "elastic_net": ((78, 5), (1.72, 0.64)),
    },
    "lymphoma_discrete": {
        "random_forest": ((88, 3), (15.88, 5.34)), "gp_ard": ((85, 7),),
        "perceptron": ((90, 5),), "elastic_net": ((86, 7), (55.43, 45.55)),
    },
    "leukemia_discrete": {
        "random_forest": ((97, 6), (11.84, 4.29)), "gp_ard": ((91, 5),),
        "perceptron": ((90, 7),), "elastic_net": ((94, 5), (1.98, 0.67)),
    },
    "allaml": {
        "random_forest": ((95, 5), (8.37, 1.67)), "gp_ard": ((90, 9),),
        "perceptron": ((90, 8),), "elastic_net": ((95, 3), (3.47, 1.25)),
    },
    "prostate_ge": {
        "random_forest": ((90, 9), (20.46, 8.26)), "gp_ard": ((92, 5),),
        "perceptron": ((89, 6),), "elastic_net": ((93, 5), (28.86, 36.79)),
    },
    "dorothea8000": {
        "random_forest": ((93, 2), (57.25, 6.15)), "gp_ard": ((91, 2),),
        "perceptron": ((89, 1),), "elastic_net": ((93, 1), (0.36, 0.04)),
    },
}  # fmt: skip # table 3: accuracy and features in percent, each with its sd


def rows(paper: str, data: str) -> tuple[Row, ...]:
    """Return a paper's own competitors on a data set, then the yardsticks that are not of them."""
    of_paper = {"RFVM": rfvm, "PFCVM": pfcvm, "JCFO": jcfo, "FSKLR": fsklr}[paper]
    own = tuple(of_paper(data))
    today = (name for name in TODAY if name not in {row.label for row in own})
    return *own, *(row(name, "yardstick") for name in today)


def row(
    name: str,
    reading: Reading = "baseline",
    printed: dict[str, float] | None = None,
    printed_sd: dict[str, float] | None = None,
    note: str = "",
) -> Row:
    """Return the row of one method."""
    return Row(
        label=name, model="", method=name, reading=reading, printed=printed or {},
        printed_sd=printed_sd or {}, note=note,
    )  # fmt: skip


def pfcvm(data: str) -> Iterator[Row]:
    """Yield PFCVM's own on genes: its text has no figure of them, its Fig. 7 curves."""
    if data != "waveform":
        yield row("l1_svm")
        for name in FILTERS:
            yield row(name, note="then logistic regression, where the paper has PCVM")


def jcfo(data: str) -> Iterator[Row]:
    """Yield those of JCFO's table 1."""
    for name, printed in JCFO[data].items():
        note = "" if name == "l2_logistic" else BEN_DOR
        yield row(name, printed={"accuracy": printed}, note=note)


def fsklr(data: str) -> Iterator[Row]:
    """Yield the one of FS-SKLR's tables 2 and 3."""
    yield row("kernel_l1", printed=FSKLR[data], note="penalty by validation, not by sparsity")


def rfvm(data: str) -> Iterator[Row]:
    """Yield those of RFVM's table 3."""
    for name, figures in RFVM[data].items():
        printed = dict(zip(("accuracy", "features"), figures, strict=False))
        yield row(
            name,
            printed={kind: mean for kind, (mean, _) in printed.items()},
            printed_sd={kind: sd for kind, (_, sd) in printed.items()},
            note="all training rows, no inducing points" if name == "gp_ard" else "",
        )
