"""What is told beforehand of the time that the exact posterior takes."""

from itertools import product

import numpy as np
import pytest

import ardvark as av
from ardvark.inference.samplers.exact import measured, method
from ardvark.inference.samplers.exact.measured import Measured, nearest, table
from ardvark.inference.samplers.exact.rule import SAMPLERS, pick
from ardvark.inference.target.target import Target
from ardvark.models import ZOO


def row(data="colon", N=62, D=2000, seconds=20.0, **more):
    given = {"model": "rfvm", "kernel": "linear", "sampler": "gibbs"} | more
    return Measured(
        **{"data": data, "N": N, "D": D, "seconds": seconds, "gigabytes": 0.61, "converged": True}
        | given
    )


@pytest.fixture
def known(monkeypatch):
    rows = (row(), row("golub", 72, 7129, 150.0), row("other", sampler="nuts", seconds=1.0))
    monkeypatch.setattr(measured, "table", lambda: rows)


def problem(N, D, model="rfvm"):
    X = np.random.default_rng(0).normal(size=(N, D))
    return av.problem(model, X, X[:, 0] > 0)


def test_the_stored_table_is_of_models_and_samplers_that_exist():
    assert table()
    for found in table():
        assert found.model in ZOO
        assert found.sampler in SAMPLERS
        assert found.seconds > 0.0
        assert found.gigabytes > 0.0


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("N", "D", "data"),
    [(62, 2000, "colon"), (50, 3000, "colon"), (80, 4500, "golub"), (200, 7129, "golub")],
)
def test_the_row_nearest_in_size_is_told(N, D, data):
    assert nearest(problem(N, D), "gibbs").data == data


@pytest.mark.usefixtures("known")
def test_sizes_beyond_a_factor_of_four_and_other_models_say_nothing():
    assert nearest(problem(62, 400), "gibbs") is None
    assert nearest(problem(62, 2000), "nuts").data == "other"
    assert nearest(problem(62, 2000), "laplace") is None
    assert nearest(problem(62, 2000, "pfcvm"), "gibbs") is None


def test_a_row_in_words():
    assert row().text() == "colon (62 x 2000): converged after 20 s, 0.6 GB"
    late = row(seconds=900.0, converged=False).text()
    assert late == "colon (62 x 2000): had not converged after 15 min, 0.6 GB"


@pytest.mark.parametrize(("seconds", "told"), [(60.0, False), (61.0, True)])
def test_a_run_of_more_than_a_minute_is_announced(seconds, told, monkeypatch):
    rows = (row("tiny", 12, 3, seconds, sampler="nuts"), row("other", 12, 3, 1e4))
    monkeypatch.setattr(measured, "table", lambda: rows)
    target = Target(problem(12, 3))
    assert method.LONG == 60.0
    end = f" ({rows[0].text()})" if told else ""
    assert method._title(target, pick(target)) == f"sampling by nuts{end}"


def test_a_time_is_foretold_as_a_range():
    """By the cells of X from a measured problem; wider where the model is another."""
    data = av.load("digits38")
    row = nearest(av.problem("rfvm", data), "nuts")
    text = measured.likely(av.problem("rfvm", data), "nuts")
    low, high = row.seconds / measured.ALIKE, row.seconds * measured.ALIKE + measured.COMPILING
    assert text.startswith(
        f"may take {low:.0f} s to {high:.0f} s on two free cores, foretold from rfvm"
    )
    few = measured.likely(av.problem("rfvm", data.take(range(119))), "nuts")  # a third of the rows
    assert few.startswith(f"may take {row.seconds / 3 / measured.NEAR:.0f} s to ")
    other = measured.likely(av.problem("horseshoe", data), "nuts")
    assert "foretold from" in other
    assert measured.likely(av.problem("rfvm", data), "no sampler") == ""


def test_pairs_that_are_alike_are_within_the_range():
    """Each row of the table foretold from each other one of its model and nearly its size."""
    off = []
    for one, other in product(table(), table()):
        same = (one.model, one.kernel, one.sampler) == (other.model, other.kernel, other.sampler)
        if same and one.data < other.data and one.far(other.N, other.D) <= np.log(1.5):
            foretold = one.seconds * other.N * other.D / (one.N * one.D)
            off.append(max(foretold / other.seconds, other.seconds / foretold))
    assert len(off) >= 8
    assert np.mean(np.array(off) > measured.ALIKE) <= 1 / 4
    assert max(off) < measured.NEAR


@pytest.mark.usefixtures("known")
def test_the_time_of_folds_is_that_of_each_candidate():
    one = (problem(62, 2000), "gibbs")  # 20 s
    text = measured.likely_folds([one], 10.0, 0.5)
    assert text == "may take 50 s to 4 min on two free cores"  # 100 s, off by two; 20 s to compile
    assert measured.likely_folds([one, one], 10.0, 0.5).startswith("may take 100 s to ")
    unknown = (problem(62, 2000), "laplace")
    assert measured.likely_folds([one, unknown], 10.0, 0.5).endswith(
        ", and 1 more that were not measured"
    )
    assert measured.likely_folds([unknown], 1.0, 1.0) == ""
