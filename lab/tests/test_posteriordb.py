"""The judge on posteriordb: what the page and the README say of the stored rows."""

import pandas as pd

from lab import tables
from lab.judge.report import PAGE

HERE = PAGE.parents[1] / "posteriordb"
EXPECTED = tables.read(HERE / "expected.csv")["posterior"].tolist()


def test_every_twin_has_an_expectation_and_the_density_of_posteriordb():
    """The largest z of a right twin passes its limit once in a thousand."""
    checked = tables.read(HERE / "identities.csv").set_index("posterior")
    assert checked.index.tolist() == EXPECTED
    assert (checked["largest z"] < checked["limit"]).all()


def test_no_verdict_is_wrong_by_the_rules_that_were_fixed():
    """Of twins, and of those held back: means in sd of the reference draws, and ratios of sds."""
    fits = pd.concat([tables.read(HERE / f"{which}.csv") for which in ("trial", "unseen")])
    assert list(dict.fromkeys(fits["posterior"])) == EXPECTED
    exact = fits[(fits["method"] == "exact") & (fits["level"] == "converged")]
    assert (exact["z"] < 4.0).all()
    assert len(exact) >= 0.8 * len(EXPECTED)
    narrow, wide = fits["smallest sd ratio"], fits["largest sd ratio"]
    wrong = (fits["mean off by"] > 0.5) | (narrow < 0.6)
    right = (fits["mean off by"] <= 0.1) & (narrow >= 0.9) & (wide <= 1 / 0.9)
    assert not (wrong & (fits["level"] == "trust")).any()
    assert not (right & (fits["level"] == "do not use")).any()


def test_centred_eight_schools_are_condemned_for_tau():
    fits = tables.read(HERE / "trial.csv").set_index(["posterior", "method"])
    row = fits.loc["eight_schools-eight_schools_centered", "advi"]
    assert row["level"] == "do not use"
    assert row["why"].startswith("tau:")
