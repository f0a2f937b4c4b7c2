"""What people type first: names in any case, X and y in any form, objects as a cell's last line."""

from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import xarray as xr
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


@pytest.mark.parametrize(
    ("given", "named", "message"),
    [
        ((), {}, "got nothing"),
        ((X,), {}, "X was given without y"),
        ((), {"X": X}, "X was given without y"),
        ((), {"y": Y}, "no X was given"),
        ((X, Y), {"X": X}, "not both"),
        (("digits38", Y), {}, "a data set has its own labels"),
        ((X, "state"), {}, "names a column of a data frame, and X is ndarray"),
        ((LABELLED, "stat"), {}, "unknown label column 'stat'. Did you mean 'state'"),
        ((X + 1j, Y), {}, "have the type complex128"),
        ((FRAME.assign(age=pd.array([None] * 24, dtype="Int64")), Y), {}, "row '0', column 'age'"),
        ((LABELLED, Y), {}, "column 'state' contains"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_words(given, named, message):
    with pytest.raises(av.InputError, match=message):
        av.problem("rfvm", *given, **named)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p, f: av.problem("digits38", "rfvm"), "the model comes first"),
        (lambda p, f: av.problem(p.data, "rfvm"), "the model comes first"),
        (lambda p, f: av.problem(FRAME, "rfvm"), "the model comes first"),
        (lambda p, f: av.effects(p, f), "the problem comes first"),
        (lambda p, f: av.predict(f, p, X), "here they are swapped"),
        (lambda p, f: av.fit("laplace", p), "fit needs a Problem"),
        (lambda p, f: av.sensitivity("laplace", p), "the problem comes first"),
        (lambda p, f: av.calibrate("laplace", p), "the problem comes first"),
        (lambda p, f: av.fit(p, "paper", random_seed=-1), "random_seed must be an integer from 0"),
        (lambda p, f: p.data.split(0.5, -1), "random_seed must be an integer of at least 0"),
    ],
)
def test_swapped_arguments_and_negative_seeds_are_named(call, message):
    problem = av.problem("rfvm", X, Y)
    fit = xr.DataTree()
    with pytest.raises(av.InputError, match=message):
        call(problem, fit)


def test_a_sparse_matrix_too_large_to_be_dense_is_refused(monkeypatch):
    monkeypatch.setattr(validate, "LARGEST_DENSE", X.size - 1)
    with pytest.raises(av.InputError, match=r"sparse matrix of shape \(24, 3\).*Keep fewer col"):
        av.problem("rfvm", sparse.csr_array(X), Y)


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
    for name, value in (("slab", "1"), ("kernel", "linear")):
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


@pytest.mark.parametrize(
    ("rows", "labels", "words"),
    [
        (X[:5], [0, 0, 1, 1, 1], ["Only 5 samples"]),
        (X[:19], np.arange(19) % 2, ["Only 19 samples"]),
        (X[:20], np.arange(20) % 2, []),
        (X, np.arange(24) < 1, ["1 of 24 samples are 'True'", "always answering 'False'"]),
        (X, np.arange(24) < 4, ["4 of 24", "right for 83.3 %"]),
        (X, np.arange(24) < 5, []),
        (np.vstack([X, X[:3]]), np.arange(27) % 3 < 1, ["3 of 27 rows repeat"]),
        (np.vstack([X, X[:1]]), [*np.arange(24) % 2, 1], ["1 of 25", "some with the other label"]),
    ],
)
def test_few_unbalanced_and_repeated_rows_are_said_in_words(rows, labels, words):
    data = av.Dataset.from_arrays(rows, labels)
    said = " ".join(data.remarks)
    assert all(w in said for w in words)
    assert bool(said) is bool(words)
    assert ("other label" in said) is ("some with the other label" in words)
    assert all(remark in av.problem("rfvm", data).describe() for remark in data.remarks)


def test_a_common_class_is_named_in_large_data_too():
    data = av.Dataset.from_arrays(rng(1).normal(size=(200, 1)), np.arange(200) < 19)
    assert data.remarks == (
        "19 of 200 samples are 'True': always answering 'False' would be right for 90.5 %.",
    )
