"""The compiled density: PyMC's own values, from one piece of code for every shape of the data."""

import gc
import weakref

import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
import scipy.sparse
from pymc.blocking import DictToArrayBijection

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.contract.density import Density
from ardvark.inference.contract.target import Target
from tests.support import rng

PYTHON = "FAST_COMPILE"  # nothing that numba made
ZOO = [
    ("pfcvm", {}),
    ("pfcvm", {"kernel": "rbf", "parametrization": "hierarchical"}),
    ("rfvm", {}),
    ("jcfo", {}),
]


def wide():
    """A bare model of everything that a zoo model does not have."""
    with pm.Model(coords={"row": range(4), "column": ["a", "b", "c"]}) as model:
        flag = pm.Data("flag", np.array([True, False, True, True]), dims="row")
        count = pm.Data("count", np.array([2, 0, 1, 3], dtype=np.int8), dims="row")
        p = pm.Dirichlet("p", np.array([1.0, 2.0, 3.0]), dims="column")  # a shorter value
        m = pm.Normal("m", 0.0, 2.0, dims=("row", "column"))
        s = pm.HalfNormal("s", 1.5, shape=2)  # no dims
        mean = pm.Deterministic("mean", (m * p).sum(axis=-1) + s.sum() * flag, dims="row")
        pm.Deterministic("outer", s[:, None] * p)
        pm.Potential("y", -((count - mean) ** 2).sum())
    return model


def zoo(name, hypers):
    return lambda: av.problem(name, (rng(1).normal(size=(9, 4)), np.arange(9) % 2), **hypers).model


MODELS = {"bare": wide} | {f"{name} {hypers}": zoo(name, hypers) for name, hypers in ZOO}


def some_names(density):
    """The variables that are looked at, of those that the model has."""
    return [n for n in ("w", "p", "outer", "mean", "eta", "feature_weight") if n in density.names]


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_values_are_those_of_pymc(make):
    """Density, gradient and variables, against the functions PyMC compiles for this shape."""
    model = make()
    density = Density(model)
    by_pymc = model.logp_dlogp_function(ravel_inputs=True, mode=PYTHON)
    by_pymc.set_extra_values({})
    layout = DictToArrayBijection.map(model.initial_point()).point_map_info
    assert [*density.blocks] == [name for name, *_ in layout]
    names = some_names(density)
    variables = model.compile_fn(
        model.replace_rvs_by_values([model[n] for n in names]),
        inputs=model.value_vars,
        mode=PYTHON,
        point_fn=False,
        on_unused_input="ignore",
    )
    x = density.start + rng(2).normal(size=(5, density.size))
    found = density.constrain(x, names)
    assert found.keys() == {*names}
    for s, row in enumerate(x):
        value, gradient = density.logp_grad(row)
        expected, by_hand = by_pymc(row)
        np.testing.assert_allclose(value, expected, rtol=1e-12)
        np.testing.assert_allclose(gradient, by_hand, rtol=1e-10, atol=1e-12)
        point = [row[density.blocks[name]].reshape(shape) for name, shape, *_ in layout]
        for name, expected in zip(names, variables(*point), strict=True):
            np.testing.assert_allclose(found[name][s], expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("name", "hypers"), ZOO)
def test_another_shape_is_not_compiled_again(name, hypers):
    random = rng(3)
    shapes = [(8, 3), (11, 7), (5, 12)]
    sets = [(random.normal(size=shape), np.arange(shape[0]) % 2) for shape in shapes]
    models = [av.problem(name, data, **hypers).model for data in sets]
    made = [Density(model) for model in models]
    assert len({d.size for d in made}) == 3
    assert len({d.function.address for d in made}) == 1
    assert len({d.expansion(some_names(d)).address for d in made}) == 1
    # negative control: another form of the model is other code
    if (name, hypers) == ("pfcvm", {}):
        other = av.problem(name, sets[0], **ZOO[1][1]).model
        assert Density(other).function.address != made[0].function.address


def test_data_are_looked_up_anew():
    model = wide()
    density = Density(model)
    x = density.start
    before = density.logp_grad(x)[0]
    with model:
        pm.set_data({"count": np.array([5, 0, 1, 3], dtype=np.int8)})
    assert density.refresh()
    expected = model.compile_logp(mode=PYTHON)(model.initial_point())
    np.testing.assert_allclose(density.logp_grad(x)[0], expected, rtol=1e-12)
    assert abs(expected - before) > 0.1


def test_a_chain_starts_where_the_present_data_put_it():
    """Otherwise its draws would depend on the data that a process saw first."""
    with pm.Model() as model:
        rate = pm.Data("rate", 1.0)
        pm.Gamma("x", 2.0, rate)
    assert Target(model).density.start == pytest.approx(np.log(2.0))
    with model:
        pm.set_data({"rate": 8.0})
    assert Target(model).density.start == pytest.approx(np.log(0.25))


def test_data_of_another_length_are_another_vector():
    model = wide()
    before = Target(model).density
    flag, count = np.arange(6) % 2 == 0, np.arange(6, dtype=np.int8)
    with model:
        pm.set_data({"flag": flag, "count": count}, coords={"row": range(6)})
    density = Target(model).density
    assert density.size == before.size + 2 * 3
    expected = model.compile_logp(mode=PYTHON)(model.initial_point())
    np.testing.assert_allclose(density.logp_grad(density.start)[0], expected, rtol=1e-12)
    assert Target(model).density is density


def test_a_density_goes_with_its_model():
    """Code of every problem that a process has seen would fill its memory: 25 MB each."""
    model = wide()
    gone = weakref.ref(Target(model).density)
    assert Target(model).density is gone()
    del model
    gc.collect()
    assert gone() is None


def test_a_density_that_fails():
    with pm.Model() as model:
        x = pm.Flat("x")
        pm.Potential("root", pt.sqrt(x))
    density = Density(model)
    value, gradient = np.empty(1), np.empty(1)
    arguments = (gradient, value, density.data.addresses)
    assert density.function(1, np.array([4.0]), *arguments) == 0
    assert (value[0], gradient[0]) == (2.0, 0.25)
    assert density.function(1, np.array([0.0]), *arguments) == 3  # an infinite gradient
    assert density.function(1, np.array([-1.0]), *arguments) == 4
    assert np.isnan(density.logp_grad(np.array([-1.0]))[0])


def test_bad_input():
    with pm.Model() as model:
        pm.Normal("x")
    density = Density(model)
    with pytest.raises(ValueError, match=r"x has shape \(3,\), the model needs \(1,\)"):
        density.logp_grad(np.zeros(3))
    with pm.Model() as model:
        x = pm.Normal("x", shape=(3, 1))
        S = pytensor.shared(scipy.sparse.csr_matrix(np.eye(3)), name="S")
        pm.Potential("p", pytensor.sparse.structured_dot(S, x).sum())
    with pytest.raises(InputError, match="S of the model is a SparseTensorSharedVariable, not an"):
        Density(model)
