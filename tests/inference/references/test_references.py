"""The stored references: what the package carries, and to which problem each belongs."""

import dataclasses
import json
import logging
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import ardvark as av
from ardvark.cli.app import main
from ardvark.common.validate import InputError
from ardvark.inference.comparison.report.figures import FIGURES
from ardvark.inference.references import references
from ardvark.models import ZOO
from tests.support import rng, t_limit


def test_every_model_has_references_that_are_small():
    paths = references.files()
    assert len(paths) >= 12
    sizes = [path.stat().st_size for path in paths.values()]
    assert max(sizes) < 2e6
    assert sum(sizes) < 6e6
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    carried = project["tool"]["setuptools"]["package-data"]["ardvark.inference.references"]
    assert carried == [f"{references.FOLDER.name}/*.nc"]
    table = references.table()
    assert set(table.index) == set(paths)
    assert set(table["model"]) == set(ZOO)
    for path in paths.values():
        bar = {line["what"]: line for line in json.loads(references.attributes(path)["bar"])}
        assert bar["R-hat"]["value"] < 1.1  # what is worse is no reference
        assert bar["chains"]["met"]


def test_small_hyperparameters_differ_relatively():
    """1e-6 is not 2e-6, which an absolute tolerance would say; lists by their entries."""
    same = {"rate": 1e-6, "theta": [0.5, 2.0], "kernel": "rbf", "slab": None}
    near = same | {"rate": 1e-6 * (1.0 + 1e-7), "theta": [0.5 * (1.0 - 1e-7), 2.0]}
    assert references._close(same, near)
    for change in (
        {"rate": 2e-6}, {"theta": [0.5, 2.1]}, {"theta": [0.5]}, {"kernel": "linear"},
        {"slab": 1.0}, {"more": 1},
    ):  # fmt: skip
        assert not references._close(same, near | change)


@pytest.mark.statistical
@pytest.mark.parametrize("model", ["rfvm", "pfcvm"])
def test_stored_draws_are_of_this_problem(model):
    """Found from its data; eta, made of the stored weights and X here, has the stored mean.

    So few draws as these have a mean that differs from that of all by a Student's t.
    """
    problem = av.problem(model, "digits38")
    assert references.find(problem) == references.files()[f"{model}-digits38"]
    tree = references.stored(problem)
    eta = tree["posterior"]["eta"].values.reshape(-1, problem.data.N)
    of_all = tree["summary"]["eta"].sel(statistic=["mean", "sd", "mcse_mean"]).values
    error = np.hypot(of_all[1] / np.sqrt(len(eta)), of_all[2])
    rounding = 0.01 * np.abs(of_all[0])  # products of two weights that are right to 0.4 %
    z = np.maximum(np.abs(eta.mean(0) - of_all[0]) - rounding, 0.0) / error
    assert z.max() < t_limit(len(eta) - 1, problem.data.N)


@pytest.mark.parametrize("name", ["rvm-colon", "pcvm-colon"])
def test_constants_of_a_model_are_not_rounded(name):
    """The file has eight bits of each; a fit has all, and would be off by infinitely many sd."""
    attrs = references.attributes(references.files()[name])
    assert attrs["fixed"] == "feature_weight"
    X = rng().normal(size=(62, 2000))  # not the file's, but as large
    problem = av.problem(attrs["model"], (X, np.arange(62) % 2))
    posterior = references.opened(references.files()[name], problem)["posterior"]
    theta = problem.simulate(rng())["feature_weight"]
    assert (posterior["feature_weight"] == theta).all()
    of_first = {k: posterior[k].values[0, 0] for k in ("sample_weight", "bias")}
    want = problem.decision(of_first | {"feature_weight": theta})
    np.testing.assert_allclose(posterior["eta"].values[0, 0], want)


@pytest.fixture(scope="module")
def problem():
    """A problem whose posterior is stored, of built-in data."""
    return av.problem("rfvm", "digits38")


def test_a_reference_is_found_by_the_posterior(problem):
    """Another form or another processor's last digit is the same posterior; a digit more is not."""
    path = references.files()["rfvm-digits38"]
    assert references.find(av.problem("rfvm", "digits38", latent_noise="integrated")) == path
    X, rate = problem.data.X, problem.hypers.feature_rate
    moved = dataclasses.replace(problem.data, X=X * (1.0 + 1e-14))
    assert references.find(av.problem("rfvm", moved)) == path

    def with_rate(factor):
        hypers = dataclasses.replace(problem.hypers, feature_rate=rate * factor)
        return dataclasses.replace(problem, hypers=hypers)

    assert references.find(with_rate(1.0 + 1e-9)) == path
    changed = X.copy()
    changed[3, np.argmax(X.std(0))] += 0.01
    for other in (
        with_rate(1.0 + 1e-4),
        with_rate(2.0),
        av.problem("rfvm", "digits38", slab=2),
        av.problem("rfvm", dataclasses.replace(problem.data, X=changed)),
        av.problem("rfvm", dataclasses.replace(problem.data, y=1 - problem.y)),
        problem.take(range(1, problem.data.N)),
    ):
        assert references.find(other) is None
    with pytest.raises(InputError, match=r"no stored reference of rfvm.* are: .*rfvm-digits38"):
        references.stored(av.problem("rfvm", "digits38", slab=2))


def test_compare_with_a_stored_reference(problem):
    points = [problem.simulate(rng(k)) for k in range(4)]
    names = ("feature_weight", "sample_weight", "bias", "tau")
    draws = {n: np.array([point[n] for point in points])[None] for n in names}
    fits = {"prior": av.adopt(problem, draws, "approximation")}
    test = problem.data.take(range(0, problem.data.N, 9))
    found = av.compare(fits, reference="stored", problem=problem, test=test)
    assert found.reference == "stored"
    row = found.table.loc["stored"]
    attrs = references.attributes(references.files()["rfvm-digits38"])
    assert row["rhat"] == attrs["rhat"]
    assert row["kind"] == "reference"
    assert found.table.loc["prior", "error_eta"] > 0.0
    with pytest.raises(InputError, match="pass problem="):
        av.compare(fits, reference="stored")


def test_the_command_compares_with_it(tmp_path, monkeypatch, capsys):
    """No exact method is run; a split of the data is another problem, refused before any work.

    One figure is enough.
    """
    figures = {"forest": FIGURES["forest"]}
    monkeypatch.setattr("ardvark.inference.comparison.report.figures.FIGURES", figures)
    level = logging.getLogger("ardvark").level

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["ardvark", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        logging.getLogger("ardvark").setLevel(level)
        return ended.value.code or 0, capsys.readouterr()

    command = ["compare", "rfvm", "digits38", "--methods", "laplace", "--stored"]
    code, said = run(*command, "--test-size", 0.5, "--out", tmp_path / "split")
    assert (code, "no stored reference of rfvm on digits38" in said.err) == (2, True)
    assert not (tmp_path / "split").exists()
    code, said = run(*command, "--out", tmp_path / "out")
    assert code == 0
    assert "reference: stored" in said.out
    code, said = run("reference", "list")
    assert all(name in said.out for name in references.files())
