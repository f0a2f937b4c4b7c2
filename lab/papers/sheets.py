"""The papers, each with a page of its own: its measure, and the rows that its page is about."""

from collections.abc import Iterator
from dataclasses import dataclass

from lab.papers.protocols import Group
from lab.papers.tables import GROUPS


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A paper's page.

    paper : as in `Group.paper`. name : how the text calls it. measure : the printed figure that is
    compared, "accuracy" or "f1". algorithm : the row of the paper's algorithm as near to the print
    as it runs; exact : that of the exact posterior under the zoo's default prior; same : an exact
    row, and the row of the algorithm under the same prior. readings : rows of the tables that are
    the paper's own algorithm or its posterior, with their headings. pairs : differences of two
    rows, with their headings; "rfvm_vb@300" is the state of a path at step 300.
    """

    paper: str
    name: str
    measure: str
    algorithm: str
    exact: str
    same: tuple[str, str]
    readings: dict[str, str]
    pairs: dict[str, tuple[str, str]]

    @property
    def groups(self) -> Iterator[Group]:
        """Yield the paper's groups, those of data that its printed figures are of."""
        return (
            group
            for group in GROUPS
            if group.paper == self.paper and any(self.measure in row.printed for row in group.rows)
        )


SHEETS: tuple[Sheet, ...] = (
    Sheet(
        paper="PFCVM",
        name="PFCVM",
        measure="accuracy",
        algorithm="pfcvm_lp",
        exact="exact",
        same=("exact", "pfcvm_lp-model"),
        readings={
            "pfcvm_lp": "as printed, thresholds ours",
            "pfcvm_lp-50/30": "as printed, other thresholds",
            "pfcvm_lp-floor": "as printed, footnote 3 at 0.1",
            "pfcvm_lp-model": "the algorithm, sparse prior",
            "pfcvm_lp-dense": "the algorithm, dense prior",
            "exact": "exact, sparse prior",
            "exact-dense": "exact, dense prior",
        },
        pairs={
            "exact - algorithm, both under the sparse prior": ("exact", "pfcvm_lp-model"),
            "exact - algorithm, both under the dense prior": ("exact-dense", "pfcvm_lp-dense"),
            "exact: dense - sparse prior": ("exact-dense", "exact"),
            "exact - algorithm as printed": ("exact", "pfcvm_lp"),
            "exact - PCVM, which selects no genes": ("exact", "pcvm"),
            "exact - L1": ("exact", "l1_logistic"),
            "algorithm as printed - L1": ("pfcvm_lp", "l1_logistic"),
        },
    ),
    Sheet(
        paper="JCFO",
        name="JCFO",
        measure="accuracy",
        algorithm="jcfo-printed",
        exact="exact",
        same=("exact-chosen", "jcfo-one"),
        readings={
            "jcfo-printed": "as printed, one start",
            "jcfo-one": "corrected, one start",
            "jcfo-filled": "corrected, gammas from N and the 50 genes",
            "exact-chosen": "exact, gammas and genes as corrected",
            "exact": "exact, gammas from N and D",
            "sparse_probit-printed": "sparse probit, as printed",
            "sparse_probit": "sparse probit, corrected",
            "sparse_probit-filled": "sparse probit, gamma from N and D",
            "sparse_probit-exact": "sparse probit, exact, gamma from N and D",
        },
        pairs={
            "exact - algorithm, same gammas and genes": ("exact-chosen", "jcfo-one"),
            "sparse probit: exact - algorithm, same gamma": (
                "sparse_probit-exact", "sparse_probit-filled"),
            "exact at filled gammas - algorithm as printed": ("exact", "jcfo-printed"),
            "corrected - as printed": ("jcfo-one", "jcfo-printed"),
            "exact at filled gammas - L1": ("exact", "l1_logistic"),
            "algorithm as printed - L1": ("jcfo-printed", "l1_logistic"),
            "algorithm corrected - L1": ("jcfo-one", "l1_logistic"),
        },
    ),
    Sheet(
        paper="RFVM",
        name="RFVM",
        measure="accuracy",
        algorithm="rfvm_vb-elbo",
        exact="exact",
        same=("exact", "rfvm_vb-model"),
        readings={
            "rfvm_vb-elbo": "as printed, stop by our bound",
            "rfvm_vb-example": "as released, our bound",
            "rfvm_vb": "printed updates, our stop",
            "rfvm_vb-released": "released updates, our stop",
            "rfvm_vb-truncated": "corrected, our stop",
            "rfvm_vb-model": "the algorithm, sparse prior",
            "rfvm_vb-dense": "the algorithm, dense prior",
            "exact": "exact, sparse prior",
            "exact-dense": "exact, dense prior",
            "xolon": "XOLON, our code",
            "pfcvm_lp": "PFCVM, our code",
        },
        pairs={
            "exact - algorithm, both under the sparse prior": ("exact", "rfvm_vb-model"),
            "exact - algorithm, both under the dense prior": ("exact-dense", "rfvm_vb-dense"),
            "exact: dense - sparse prior": ("exact-dense", "exact"),
            "exact - algorithm as printed": ("exact", "rfvm_vb-elbo"),
            "printed updates: after 300 sweeps - after 20 000": ("rfvm_vb@300", "rfvm_vb@20000"),
            "corrected - printed updates, our stop": ("rfvm_vb-truncated", "rfvm_vb"),
            "exact - L1": ("exact", "l1_logistic"),
            "algorithm as printed - L1": ("rfvm_vb-elbo", "l1_logistic"),
        },
    ),
    Sheet(
        paper="FSKLR",
        name="FS-SKLR",
        measure="f1",
        algorithm="fsklr-printed",
        exact="fsklr-exact",
        same=("fsklr-exact", "fsklr"),
        readings={
            "fsklr-printed": "as printed, a = 20 ours",
            "fsklr-literal": "to the letter, not normalised",
            "fsklr": "independent masks",
            "fsklr-exact-printed": "exact, printed mask prior",
            "fsklr-exact": "exact, independent masks",
            "sklr": "SKLR, independent masks",
            "sklr-exact": "SKLR, exact",
            "fs_skr": "FS-SKR, independent masks",
            "fs_skr-exact": "FS-SKR, exact",
        },
        pairs={
            "exact - search, independent masks": ("fsklr-exact", "fsklr"),
            "exact - search, shared masks": ("fsklr-exact-printed", "fsklr-printed"),
            "SKLR: exact - search": ("sklr-exact", "sklr"),
            "search: shared - independent masks": ("fsklr-printed", "fsklr"),
            "search as printed - to the letter": ("fsklr-printed", "fsklr-literal"),
            "exact - L1": ("fsklr-exact", "l1_logistic"),
            "search as printed - L1": ("fsklr-printed", "l1_logistic"),
            "search as printed - SVM, rbf": ("fsklr-printed", "rbf_svm"),
            "matched sparsity: search - L1": ("fsklr-matched", "l1_logistic-matched"),
        },
    ),
)  # fmt: skip
BY_PAPER = {sheet.paper: sheet for sheet in SHEETS}
