"""The papers, each with a page of its own: its name, its measure, the rows that its page is about.

A role is what a row is on a page, whatever its label: `@algorithm` is the paper's algorithm as near
to the print as a row comes, `@exact` the exact posterior under the zoo's default prior, and so on.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from lab.papers.protocols import Group
from lab.papers.tables import GROUPS

PAIRS = (
    ("@exact", "@algorithm"), ("@exact", "@l1"), ("@algorithm", "@l1"), ("@other", "@exact"),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """A paper's page.

    paper : as in `Group.paper`. name : how the text calls it. measure : the printed figure that is
    compared, "accuracy" or "f1". rows : labels by role. readings : the rows of the matrix that are
    the paper's own algorithm or its posterior, with their headings. priors : the two-by-two tables:
    a title, and for each prior its heading, the label of the algorithm and of the exact posterior,
    or, where there is neither, the reason in parentheses. pairs : rows whose differences the matrix
    shows.
    """

    paper: str
    name: str
    measure: str
    rows: dict[str, str]
    readings: dict[str, str]
    priors: dict[str, tuple[tuple[str, str, str], ...]] = field(default_factory=dict)
    pairs: tuple[tuple[str, str], ...] = PAIRS

    @property
    def file(self) -> str:
        """Return the name of the page."""
        return f"{self.paper.lower()}.md"

    @property
    def groups(self) -> Iterator[Group]:
        """Yield the paper's groups on data that its printed figures are of."""
        return (g for g in GROUPS if g.paper == self.paper)


IMPROPER = "(improper: no posterior)"
SHEETS: tuple[Sheet, ...] = (
    Sheet(
        paper="PFCVM",
        name="PFCVM",
        measure="accuracy",
        rows={"algorithm": "pfcvm_lp", "exact": "exact", "other": "exact-dense",
              "same": "pfcvm_lp-model"},
        readings={
            "pfcvm_lp": "as printed, thresholds ours",
            "pfcvm_lp-50/30": "as printed, other thresholds",
            "pfcvm_lp-floor": "as printed, footnote 3 at 0.1",
            "exact": "exact, sparse prior",
            "exact-dense": "exact, dense prior",
        },
        priors={
            "PFCVM": (
                ("the paper's limit, c = d = 0", "pfcvm_lp", IMPROPER),
                ("dense", "pfcvm_lp-dense", "exact-dense"),
                ("sparse default", "pfcvm_lp-model", "exact"),
            ),
        },
    ),
    Sheet(
        paper="JCFO",
        name="JCFO",
        measure="accuracy",
        rows={"algorithm": "jcfo-printed", "exact": "exact"},  # no row of it at exact's gammas
        pairs=(("exact-chosen", "jcfo-one"), *PAIRS),
        readings={
            "jcfo-printed": "as printed, one start",
            "jcfo-one": "corrected, one start",
            "jcfo": "corrected, six starts",
            "exact": "exact, gammas from N and D",
            "exact-chosen": "exact, gammas and genes as corrected",
            "sparse_probit-printed": "sparse probit, as printed",
            "sparse_probit": "sparse probit, corrected",
            "sparse_probit-exact": "sparse probit, exact, gamma from N and D",
            "sparse_probit-exact-chosen": "sparse probit, exact, gamma as corrected",
        },
        priors={
            "JCFO": (
                ("the algorithm's gammas and 50 genes", "jcfo-one", "exact-chosen"),
                ("gammas from N and D (algorithm: 50 genes)", "jcfo-filled", "exact"),
            ),
            "Sparse probit": (
                ("the algorithm's gamma, by hold-out", "sparse_probit",
                 "sparse_probit-exact-chosen"),
                ("gamma from N and D", "sparse_probit-filled", "sparse_probit-exact"),
            ),
        },
    ),
    Sheet(
        paper="RFVM",
        name="RFVM",
        measure="accuracy",
        rows={"algorithm": "rfvm_vb-elbo", "exact": "exact", "other": "exact-dense",
              "same": "rfvm_vb-model"},
        readings={
            "rfvm_vb-elbo": "as printed, released stop",
            "rfvm_vb-example": "as released",
            "rfvm_vb": "printed updates, our stop",
            "rfvm_vb-truncated": "corrected, our stop",
            "exact": "exact, sparse prior",
            "exact-dense": "exact, dense prior",
            "xolon": "XOLON, our code",
            "pfcvm_lp": "PFCVM, our code",
        },
        priors={
            "RFVM": (
                ("the released limit, shapes 1e-12", "rfvm_vb", IMPROPER),
                ("dense", "rfvm_vb-dense", "exact-dense"),
                ("sparse default", "rfvm_vb-model", "exact"),
            ),
        },
    ),
    Sheet(
        paper="FSKLR",
        name="FS-SKLR",
        measure="f1",
        rows={"algorithm": "fsklr-printed", "exact": "fsklr-exact", "same": "fsklr",
              "other": "fsklr-exact-printed"},
        readings={
            "fsklr-printed": "as printed, constants ours",
            "fsklr-literal": "to the letter, not normalised",
            "fsklr": "independent masks",
            "fsklr-exact-printed": "exact, printed mask prior",
            "fsklr-exact": "exact, independent masks",
            "sklr": "SKLR, independent masks",
            "sklr-exact": "SKLR, exact",
            "fs_skr": "FS-SKR, independent masks",
            "fs_skr-exact": "FS-SKR, exact",
        },
        priors={
            "FS-SKLR": (
                ("shared masks, (21) and (22)", "fsklr-printed", "fsklr-exact-printed"),
                ("independent masks", "fsklr", "fsklr-exact"),
            ),
        },
        pairs=(
            ("fsklr-exact", "fsklr"), ("fsklr-exact-printed", "fsklr-printed"),
            ("@exact", "@l1"), ("@algorithm", "@l1"), ("@algorithm", "rbf_svm"),
            ("@algorithm", "fsklr-literal"), ("@other", "@exact"),
        ),
    ),
)  # fmt: skip
BY_PAPER = {sheet.paper: sheet for sheet in SHEETS}


def label_of(group: Group, word: str) -> str:
    """Return a label: itself, or that of a role ("@exact") in the group's paper; "" for none."""
    if not word.startswith("@"):
        return word
    if word == "@l1":
        return "l1_logistic"
    return BY_PAPER[group.paper].rows.get(word[1:], "")


def yardstick(reading: str) -> bool:
    """Say whether a row is something else than the paper's own."""
    return reading in ("baseline", "yardstick")
