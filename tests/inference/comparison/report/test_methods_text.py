"""The paragraph for a paper: what was done to a table before it was fitted."""

import numpy as np
import pandas as pd

import ardvark as av
from ardvark.inference.comparison.report.methods import methods_text
from tests.inference.comparison.quick import Prior, registered
from tests.support import rng


def test_the_paragraph_says_how_the_table_was_prepared(monkeypatch):
    registered(monkeypatch, Prior)
    frame = pd.DataFrame(rng(0).normal(size=(30, 2)), columns=["age", "dose"])
    frame["plate"] = ["a", "b", "c"] * 10
    frame["visit"] = pd.date_range("2020-01-01", periods=30).astype(str)
    frame["patient"] = [f"p{k // 2}" for k in range(30)]
    frame["state"] = np.where(frame["age"] > 0.0, "ill", "well")
    frame.loc[:2, "age"] = None
    data = av.table(
        frame, "state", encode="onehot", impute="median", reference=["plate=b"], drop=["visit"],
        groups="patient",
    )  # fmt: skip
    problem = av.problem("rfvm", data)
    said = methods_text(problem, av.fit(problem, "prior", draws=20, chains=2, progressbar=False))
    for words in (
        "Columns left out: visit.",
        "plate: plate=a, plate=c (0 is b)",
        "3 missing values were filled by the median of the training rows: age (3).",
        "30 rows of 15 groups, which splits and folds keep together; the likelihood takes all rows "
        "as independent.",
    ):
        assert words in said
    plain = av.problem("rfvm", data.X, data.y)
    fit = av.fit(plain, "prior", draws=20, chains=2, progressbar=False)
    assert "left out" not in methods_text(plain, fit)
