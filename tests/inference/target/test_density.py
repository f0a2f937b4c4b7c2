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
from ardvark.inference.target.density import Density
from ardvark.inference.target.target import Target
from tests.support import rng

PYTHON = "FAST_COMPILE"  # nothing that numba made
SHAPES = [(9, 4), (5, 12)]  # of the data: one piece of code serves both
ZOO = {
    "rfvm": ("rfvm", {}),
    "pfcvm": ("pfcvm", {}),
    "pfcvm rbf": ("pfcvm", {"kernel": "rbf", "parametrization": "hierarchical"}),
    "jcfo": ("jcfo", {}),
}
LONG = ("pfcvm", "pfcvm rbf", "jcfo")
each_model = pytest.mark.parametrize(
    "case", [pytest.param(k, marks=[pytest.mark.slow] if k in LONG else []) for k in ZOO]
)


def wide():
    """A bare model of everything that a zoo model does not have; "row" has no coordinates."""
    with pm.Model(coords={"column": ["a", "b", "c"]}) as model:
        flag = pm.Data("flag", np.array([True, False, True, True]), dims="row")
        count = pm.Data("count", np.array([2, 0, 1, 3], dtype=np.int8), dims="row")
        p = pm.Dirichlet("p", np.array([1.0, 2.0, 3.0]), dims="column")  # a shorter value
        m = pm.Normal("m", 0.0, 2.0, dims=("row", "column"))
        s = pm.HalfNormal("s", pm.Data("scale", 1.5), shape=2)  # no dims
        mean = pm.Deterministic("mean", (m * p).sum(axis=-1) + s.sum() * flag, dims="row")
        pm.Deterministic("outer", s[:, None] * p)
        pm.Potential("y", -((count - mean) ** 2).sum())
    return model


def zoo(case, shape):
    name, hypers = ZOO[case]
    N, D = shape
    return av.problem(name, (rng(1).normal(size=(N, D)), np.arange(N) % 2), **hypers).model


def check(density, model):
    """Density, gradient and variables are those of the functions that PyMC compiles for it."""
    by_pymc = model.logp_dlogp_function(ravel_inputs=True, mode=PYTHON)
    by_pymc.set_extra_values({})
    layout = DictToArrayBijection.map(model.initial_point()).point_map_info
    assert [*density.blocks] == [name for name, *_ in layout]
    names = [n for n in ("p", "outer", "mean", "eta", "feature_weight") if n in density.names]
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
    np.testing.assert_array_equal(
        density.logp(x[[3, 1]]), [density.logp_grad(x[s])[0] for s in (3, 1)]
    )
    return names


@pytest.fixture(scope="module")
def bare():
    """The density of `wide`, which no test changes."""
    model = wide()
    yield Density(model)
    del model  # not before: a density goes with its model


def test_values_are_those_of_pymc(bare):
    model = wide()
    check(bare, model)
    at = {name: [bare.label(i) for i in range(b.start, b.stop)] for name, b in bare.blocks.items()}
    assert at["p_simplex__"] == ["p_simplex__[0]", "p_simplex__[1]"]
    assert at["s_log__"] == ["log s[0]", "log s[1]"]
    assert at["m"][:4] == ["m[0,a]", "m[0,b]", "m[0,c]", "m[1,a]"]
    with pytest.raises(IndexError, match=str(bare.size)):
        bare.label(bare.size)


@each_model
def test_one_piece_of_code_has_the_values_of_pymc_at_every_shape(case):
    models = [zoo(case, shape) for shape in SHAPES]
    with models[1]:  # a column after the other, as a data frame has them
        pm.set_data({k: np.asfortranarray(models[1][k].get_value()) for k in ("X", "Z")})
    assert not models[1]["X"].get_value(borrow=True).flags.c_contiguous
    first, second = made = [Density(model) for model in models]
    names = check(second, models[1])
    assert first.size != second.size
    assert len({d.function.address for d in made}) == 1
    assert len({d.expansion(names).address for d in made}) == 1
    at = dict(zip((v.name for v in second.data.variables), second.data.addresses[1:], strict=True))
    assert at["X"] == at["Z"]  # every row is a basis centre: one copy
    assert len({at["X"], at["label"]}) == 2
    assert Target(models[1]).free_size == second.size


def test_data_are_looked_up_anew():
    """A chain starts where the present data put it, not those that a process saw first."""
    model = wide()
    density = Target(model).density
    before, start = density.logp_grad(density.start)[0], density.start
    with model:
        pm.set_data({"count": np.array([5, 0, 1, 3], dtype=np.int8), "scale": 6.0})
    assert Target(model).density is density
    moved = np.zeros(density.size)
    moved[density.blocks["s_log__"]] = np.log(4.0)
    np.testing.assert_allclose(density.start - start, moved, atol=1e-12)
    expected = model.compile_logp(mode=PYTHON)(model.initial_point())
    np.testing.assert_allclose(density.logp_grad(density.start)[0], expected, rtol=1e-12)
    assert abs(expected - before) > 0.1
    flag, count = np.arange(6) % 2 == 0, np.arange(6, dtype=np.int8)
    with model:  # of another length: another vector
        pm.set_data({"flag": flag, "count": count})
    longer = Target(model).density
    assert Target(model).sizes["m"] == 6 * 3
    assert longer.shapes(["m", "p"]) == {"m": (6, 3), "p": (3,)}
    assert longer.size == density.size + 2 * 3
    expected = model.compile_logp(mode=PYTHON)(model.initial_point())
    np.testing.assert_allclose(longer.logp_grad(longer.start)[0], expected, rtol=1e-12)


def test_a_likelihood_written_plainly_has_a_slope_far_out():
    """e^800 is infinite: the logarithm is rewritten before its slope is taken."""
    with pm.Model() as model:
        x = pm.Flat("x")
        pm.Potential("y", -pt.log(1.0 + pt.exp(-x)))
    value, gradient = Density(model).logp_grad(np.array([-800.0]))
    assert (value, gradient[0]) == (-800.0, 1.0)


def test_a_density_goes_with_its_model():
    """Code of every problem that a process has seen would fill its memory: 25 MB each."""
    model = wide()
    gone = weakref.ref(Target(model).density)
    assert Target(model).density is gone()
    del model
    gc.collect()
    assert gone() is None


def test_a_density_that_fails(bare):
    with pm.Model() as model:
        x = pm.Flat("x")
        pm.Potential("root", pt.sqrt(x))
    density = Density(model)
    assert density.function.address != bare.function.address  # another model is other code
    value, gradient = np.empty(1), np.empty(1)
    arguments = (gradient, value, density.data.addresses)
    assert density.function(1, np.array([4.0]), *arguments) == 0
    assert (value[0], gradient[0]) == (2.0, 0.25)
    assert density.function(1, np.array([0.0]), *arguments) == 3  # an infinite gradient
    assert density.function(1, np.array([-1.0]), *arguments) == 4
    assert np.isnan(density.logp_grad(np.array([-1.0]))[0])


def test_bad_input(bare):
    with pytest.raises(ValueError, match=r"x has shape \(3,\), the model needs \(16,\)"):
        bare.logp_grad(np.zeros(3))
    with pm.Model() as model:
        x = pm.Normal("x", shape=(3, 1))
        S = pytensor.shared(scipy.sparse.csr_matrix(np.eye(3)), name="S")
        pm.Potential("p", pytensor.sparse.structured_dot(S, x).sum())
    with pytest.raises(InputError, match="S of the model is a SparseTensorSharedVariable, not an"):
        Density(model)
