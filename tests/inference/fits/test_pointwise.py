"""The pointwise likelihood is where ArviZ reads it only if its terms predict."""

import arviz as az
import numpy as np
import pytest

import ardvark as av
from ardvark.inference import read, save
from ardvark.inference.fits.datatree import pointwise, with_derived, without_derived
from ardvark.models import ZOO
from tests.support import rng


@pytest.mark.parametrize(
    ("name", "kind"), [("pfcvm", "mcmc"), ("pfcvm", "point"), ("pcvm", "approximation")]
)
def test_refused_where_labels_are_in_the_basis(name, kind, dataset, tmp_path):
    """ArviZ finds no terms to take for predictions."""
    problem, random = av.problem(name, dataset), rng(3)
    points = [problem.simulate(random) for _ in range(40)]
    draws = {n: np.stack([p[n] for p in points]).reshape(2, 20, *np.shape(points[0][n]))
             for n in problem.shapes if n in points[0]}  # fmt: skip
    fit = av.adopt(problem, draws, kind)
    save(fit, tmp_path / "fit.nc")
    for tree in (fit, read(tmp_path / "fit.nc"), with_derived(problem, without_derived(fit))):
        with pytest.raises(TypeError, match="log likelihood not found"):
            az.loo(tree)
        with pytest.raises(Exception, match="Encountered error trying to compute ELPD"):
            az.compare({"one": tree, "other": tree})
        want = problem.log_likelihood(draws)
        np.testing.assert_allclose(pointwise(tree)["y"], want, rtol=1e-6, atol=1e-9)


def test_every_model_with_labels_in_its_basis_says_so():
    assert {name for name, spec in ZOO.items() if spec.labels_in_basis} == {"pfcvm", "pcvm"}
