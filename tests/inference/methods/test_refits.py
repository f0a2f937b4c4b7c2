"""Problems that share a compiled model: each is bound to its own data and numbers."""

import numpy as np
import pytest

import ardvark as av
from ardvark.data import Dataset
from ardvark.inference.methods.refits import Sharing
from ardvark.models import ZOO
from tests.models.forms import Compiled
from tests.support import rng

FORMS = [(n, s.choices()[0]) for n, s in ZOO.items()]
OTHERS = [pytest.param(n, s.choices()[-1], marks=pytest.mark.slow) for n, s in ZOO.items()]


@pytest.mark.parametrize(
    ("name", "choice"),
    [*FORMS, *OTHERS],
    ids=lambda v: v if isinstance(v, str) else "-".join(v.values()),
)
def test_one_compiled_model_serves_every_fold(name, choice):
    """Nothing a density depends on is left behind: rebound, it is the `log_joint` of the fold."""
    generator = rng(0)
    data = Dataset.from_arrays(generator.normal(size=(9, 3)), np.arange(9) % 2)
    problem = av.problem(name, data, **choice)
    models, compiled = {}, None
    for i in (0, 4, 1):
        fold = Sharing.of(problem.take(np.arange(9) != i), models)
        compiled = compiled or Compiled(fold)
        compiled.problem = fold
        assert fold.fitted_model is compiled.model
        np.testing.assert_array_equal(fold.model["label"].get_value(), fold.y)
        for _ in range(3):
            point = fold.simulate(generator) | {"y": fold.y}
            if name == "jcfo":  # z has the sign of its label
                point["z"] = np.abs(point["z"]) * (2 * fold.y - 1)
            found = compiled.density(point)
            assert found == pytest.approx(fold.log_density(point), rel=1e-7)
    assert len(models) == 1


def test_what_is_not_data_has_a_model_of_its_own(dataset):
    models = {}
    rows = av.problem("rfvm", dataset, basis=[2, 5])
    for i in (2, 3, 5):
        assert Sharing.of(rows.take(np.arange(24) != i), models).fitted_model
    assert len(models) == 2  # two sizes of the basis
    models = {}
    filled = [{"slab": 1.0}, {"active_features": 1.0}]
    same = [{}, *filled, {"basis_labels": np.ones(24)}]  # these are data
    other = [{"kernel": "rbf"}, {"bias_sd": 2.0}, {"sample_shape": 2.0}, {"kernel": "polynomial"}]
    for settings in (*same, *other, {"kernel": "polynomial", "degree": 3}):
        assert Sharing.of(av.problem("pfcvm", dataset, **settings), models).fitted_model
    assert len(models) == 1 + 5
