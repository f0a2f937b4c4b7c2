"""The references that are kept open as fits of their problems."""

import dataclasses
import json

import numpy as np
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.models import ZOO
from lab import tables
from lab.references import references
from tests.support import rng, t_limit


def test_every_model_has_references_that_are_small():
    sizes = [path.stat().st_size for path in references.FOLDER.glob("*.nc")]
    assert max(sizes) < 2e6
    assert sum(sizes) < 6e6
    attrs = {name: references.attributes(name) for name in references.NAMES}
    assert {a["model"] for a in attrs.values()} == set(ZOO)
    for found in attrs.values():
        bar = {line["what"]: line for line in json.loads(found["bar"])}
        assert bar["R-hat"]["value"] < 1.1  # what is worse is no reference
        assert bar["chains"]["met"]


def test_the_page_has_the_table():
    page = (references.FOLDER.parent / "REFERENCES.md").read_text()
    assert tables.markdown(references.table(), {"R-hat": ".4f"}) in page


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["rfvm-digits38", "pfcvm-digits38"])
def test_stored_draws_are_of_their_problem(name):
    """Eta, made of the stored weights and X here, has the stored mean.

    So few draws as these have a mean that differs from that of all by a Student's t.
    """
    problem = references.problem_of(name)
    tree = references.opened(name)
    eta = tree["posterior"]["eta"].values.reshape(-1, problem.data.N)
    of_all = tree["summary"]["eta"].sel(statistic=["mean", "sd", "mcse_mean"]).values
    error = np.hypot(of_all[1] / np.sqrt(len(eta)), of_all[2])
    rounding = 0.01 * np.abs(of_all[0])  # products of two weights that are right to 0.4 %
    z = np.maximum(np.abs(eta.mean(0) - of_all[0]) - rounding, 0.0) / error
    assert z.max() < t_limit(len(eta) - 1, problem.data.N)


def test_a_reference_measures_the_errors_of_other_fits():
    problem = references.problem_of("rfvm-digits38")
    points = [problem.simulate(rng(k)) for k in range(4)]
    names = ("feature_weight", "sample_weight", "bias", "tau")
    draws = {n: np.array([point[n] for point in points])[None] for n in names}
    fits = {"prior": av.adopt(problem, draws, "approximation")}
    found = av.compare(fits, reference=references.opened("rfvm-digits38"), problem=problem)
    assert found.table.loc["prior", "error_eta"] > 0.0


def test_other_rows_have_another_posterior():
    problem = references.problem_of("rfvm-digits38")
    moved = dataclasses.replace(problem.data, X=problem.data.X * (1.0 + 1e-14))
    references.opened("rfvm-digits38", av.problem("rfvm", moved))  # the last digit of a sum
    X = problem.data.X.copy()
    X[3, np.argmax(X.std(0))] += 0.01
    with pytest.raises(InputError, match="is the posterior of other rows"):
        references.opened("rfvm-digits38", av.problem("rfvm", (X, problem.data.y)))
    with pytest.raises(InputError, match="Did you mean"):
        references.problem_of("rfvm-digit38")


@pytest.mark.parametrize("name", references.NAMES)
@pytest.mark.data
def test_a_reference_is_of_the_data_as_they_are_read(name):
    problem = references.problem_of(name)
    tree = references.opened(name)
    assert tree["posterior"]["eta"].sizes["obs"] == problem.data.N
    for constant in problem.spec.fixed:  # of the file it has eight bits
        theta = problem.simulate(rng())[constant]
        assert (tree["posterior"][constant] == theta).all()
