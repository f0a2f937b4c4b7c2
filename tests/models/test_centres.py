"""Centres that are drawn from many rows: `basis="auto"`, asked for by name."""

import numpy as np
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.models import centres
from tests.support import rng


def table(N=4001, share=0.1):
    X = rng().normal(size=(N, 2))
    return X, (np.arange(N) < share * N).astype(int)


def test_rows_are_drawn_within_each_class():
    y = table()[1]
    rows = centres.drawn_rows(y)
    assert len(set(rows)) == 200
    assert y[rows].sum() == 20
    np.testing.assert_array_equal(rows, np.sort(rows))
    rare = np.zeros(4000, dtype=int)
    rare[[7, 9, 1000]] = 1  # three rows of a class: all of them
    assert {7, 9, 1000} <= set(centres.drawn_rows(rare))
    assert centres.drawn_rows(y[:30]).size <= 30


def test_centres_keep_their_labels_and_names():
    X, y = table(400)
    problem = av.problem("pfcvm", (X, y), basis="auto", kernel="rbf")
    rows = centres.drawn_rows(y)
    np.testing.assert_array_equal(problem.basis, X[rows])
    np.testing.assert_array_equal(problem.basis_labels, 2 * y[rows] - 1)
    assert problem.basis_names == tuple(problem.data.sample_names[k] for k in rows)
    again = av.problem("pfcvm", (X, y), basis="auto", kernel="rbf")
    assert again.fingerprint == problem.fingerprint
    assert "given 200 centres" in problem.describe()


def test_all_rows_remain_the_default():
    X, y = table(400)
    problem = av.problem("pfcvm", (X, y), kernel="rbf")
    assert len(problem.basis) == 400
    assert "given" not in problem.describe()


def test_too_many_rows_for_a_kernel_are_one_error(monkeypatch):
    monkeypatch.setattr(centres, "MOST", 300)  # 4000 take seconds
    X, y = table(301)
    with pytest.raises(InputError, match=r'301 rows are too many basis centres.*basis="auto"'):
        av.problem("pfcvm", (X, y), kernel="rbf")
    assert len(av.problem("pfcvm", (X, y), kernel="rbf", basis="auto").basis) == 200
    assert len(av.problem("pfcvm", (X[:300], y[:300]), kernel="rbf").basis) == 300
    assert len(av.problem("rfvm", (X, y)).basis) == 301  # linear: no matrix of rows by rows


def test_a_fit_says_what_it_is_given():
    X, y = table(300, 0.5)
    few = {"draws": 2, "chains": 1, "random_seed": 1, "progressbar": False, "max_sweeps": 2}

    def said(problem):
        return av.fit(problem, "rfvm_vb", restarts=1, **few).attrs["basis"]

    assert said(av.problem("rfvm", (X, y), basis="auto")) == "given 200 centres"
    assert said(av.problem("rfvm", (X[:40], np.arange(40) % 2))) == ""
