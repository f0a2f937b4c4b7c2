"""A model of one's own is one file and one line: `toy_model.py`, registered below."""

import numpy as np
import pytest

import ardvark as av
from ardvark.cli.listing import explain_model
from ardvark.common.validate import InputError
from ardvark.inference.fits.datatree import group
from ardvark.inference.methods import registry
from ardvark.models import ZOO
from ardvark.models.spec import ModelSpec
from tests.models import toy_model
from tests.support import rng


@pytest.fixture
def problem(monkeypatch):
    monkeypatch.setitem(ZOO, "toy", ModelSpec.of(toy_model))  # the one line
    X = rng(1).normal(size=(40, 3))
    labels = np.where(X[:, 0] + 0.3 * rng(2).normal(size=40) > 0.0, "ill", "well")
    return av.problem("toy", av.Dataset.from_arrays(X, labels, name="small"))


def test_its_densities_agree(problem):
    point = problem.simulate(rng(3))
    model = problem.model
    ours = float(problem.log_density(point))
    assert ours == pytest.approx(
        float(model.compile_logp(mode="FAST_COMPILE")(problem.to_free(point))), rel=1e-9
    )
    assert float(sum(problem.log_prior(point).values())) < 0.0
    assert problem.hypers.weight_sd == 3.0**-0.5
    assert "weight_sd" in problem.describe()
    with pytest.raises(InputError, match="weight_sd must be a finite number above 0"):
        problem.with_hypers(weight_sd=0.0)


def test_generic_methods_fit_it_and_are_compared(problem):
    assert set(registry.applicable(problem)) == {"exact", "nuts", "advi", "laplace"}
    settings = {"draws": 200, "chains": 2, "random_seed": 1, "progressbar": False}
    fits = {name: av.fit(problem, "laplace", **settings) for name in ("one", "other")}
    for tree in fits.values():
        assert tree.attrs["model"] == "toy"
        assert tree.attrs["status"] == "finished", tree.attrs["reason"]
        # the feature that tells the classes apart
        selection = group(tree, "selection")
        assert float(selection["curve_feature"].sel(t=0.1)[0]) == 1.0
        assert "p_active_sample" not in selection  # it has no basis
    table = av.compare(fits, problem=problem).table
    assert list(table.index) == ["one", "other"]
    assert (table["status"] == "finished").all()
    assert av.predict(problem, fits["one"], problem.data.X[:2]).sizes["obs"] == 2
    with pytest.raises(InputError, match="does not apply to this problem"):
        av.fit(problem, "gibbs", **settings)
    with pytest.raises(InputError, match="no paper algorithm"):
        av.fit(problem, "paper", **settings)


def test_it_is_explained(problem, capsys):
    explain_model(problem.spec)
    said = capsys.readouterr().out
    assert "weight_sd = filled  (a number above 0, or None)" in said
    assert "Methods: exact, nuts, advi, laplace." in said
