"""What people type first: names in any case, X and y in any form, objects as a cell's last line."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import ardvark as av
from ardvark.common import html, validate
from ardvark.models import ZOO
from tests.support import rng

X = rng(0).normal(size=(24, 3))
Y = np.where(np.arange(24) % 2, "well", "ill")
FRAME = pd.DataFrame(X, columns=["age", "dose", "size"])
LABELLED = FRAME.assign(state=Y)


# --- X and y --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((X, Y), {}),
        ((), {"X": X, "y": Y}),
        ((X.tolist(), Y.tolist()), {}),
        ((FRAME, Y), {}),
        ((FRAME, LABELLED["state"]), {}),
        ((LABELLED, "state"), {}),
        (((LABELLED, "state"),), {}),
        ((), {"X": LABELLED, "y": "State"}),
        ((sparse.csr_array(X), Y), {}),
        ((sparse.coo_matrix(X), Y), {}),
        ((av.Dataset.from_arrays(LABELLED, "state"),), {}),
    ],
)
def test_every_form_of_the_same_data_is_the_same_problem(given, named):
    assert av.problem("rfvm", *given, **named).fingerprint == av.problem("rfvm", (X, Y)).fingerprint


def test_a_label_column_is_no_feature():
    data = av.problem("rfvm", LABELLED[["age", "state", "dose"]], "state").data
    assert data.feature_names == ("age", "dose")
    assert data.class_names == ("ill", "well")


# --- names ----------------------------------------------------------------------------------------


def test_names_are_found_in_any_case(capsys):
    problem = av.problem("RFVM", "Digits38", bias_sd=2.0)
    assert problem.fingerprint == av.problem("rfvm", "digits38", bias_sd=2.0).fingerprint
    small = av.problem("sparse_probit", X, Y, scale="fixed")
    words = {"draws": 4, "chains": 1, "random_seed": 0}
    own = small.spec.paper_method
    for name in ("Paper", own.upper()):
        assert av.fit(small, name, **words, progressbar=False).attrs["method"] == own
    assert capsys.readouterr() == ("", "")
    with pytest.raises(av.InputError, match=r"unknown method 'NUT'\. Did you mean 'nuts'"):
        av.fit(small, "NUT")


def test_names_that_differ_in_case_only_are_told_apart():
    assert validate.named("thing", "b", ["B", "b"]) == "b"
    with pytest.raises(av.InputError, match="Did you mean 'AB' or 'Ab'"):
        validate.named("thing", "ab", ["Ab", "AB"])


# --- as the last line of a cell -------------------------------------------------------------------


class Cells(HTMLParser):
    """The texts between tags; fails where a tag is not closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def shown(page):
    cells = Cells()
    cells.feed(page)
    assert cells.open == []
    return cells.texts


def test_objects_are_shown_in_under_forty_lines():
    problems = [av.problem(name, X, Y) for name in ZOO]
    for thing in (*problems, problems[0].data, av.load("fat"), ZOO):
        assert thing._repr_html_().count("\n") < 39
        assert repr(thing).count("\n") < 39
    assert len(repr(ZOO)) < 2000
    assert all(len(repr(spec)) < 200 for spec in ZOO.values())
    texts = shown(problems[0]._repr_html_())
    for name, value in (("slab", "1"), ("kernel", "linear"), ("basis centres", "24")):
        assert texts[texts.index(name) + 1] == value
    assert {"samples", "24", "ill (12)", "well (12)"} <= set(shown(problems[0].data._repr_html_()))
    assert {"rfvm", ZOO["rfvm"].title} <= set(shown(ZOO._repr_html_()))


def test_names_are_no_markup_and_long_tables_are_cut():
    data = av.Dataset.from_arrays(FRAME.rename(columns={"age": "<b>&x"}), Y, name="<script>")
    page = data._repr_html_()
    assert "<script>" not in page
    assert any("<b>&x, dose, size" in text for text in shown(page))
    texts = shown(av.Dataset.from_arrays(FRAME.assign(size=1.0), Y)._repr_html_())
    assert texts[texts.index("constant features") + 1] == "1: size"
    long = shown(html.table("many", [(i,) for i in range(100)]))
    assert "... and 75 more" in long
    assert "24" in long
    assert "25" not in long
