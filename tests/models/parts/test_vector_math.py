"""exp and log1p as arithmetic: right to two units in the last place, and in every density."""

import numba
import numpy as np
import pymc as pm
import pytensor
import pytensor.tensor as pt
import pytest
from pytensor.compile.mode import get_mode
from scipy import stats

from ardvark.inference.target.density import Density
from ardvark.models.parts import vector_math

MODE = get_mode("NUMBA").including(vector_math.REWRITE)
EXP = np.concatenate(
    [
        np.linspace(-708.0, 709.7, 20_001),
        np.linspace(-3.0, 3.0, 20_001),
        (np.arange(-1021, 1024) + 0.5) * np.log(2.0),  # where n changes
        np.ldexp(1.0, -np.arange(60)),
        [0.0, -0.0],
    ]
)
LOG1P = np.concatenate(
    [
        np.linspace(-1.0, 3.0, 20_001)[1:],
        np.geomspace(1e-300, 1e300, 20_001),
        -np.geomspace(1e-300, 0.99, 20_001),
        np.sqrt(2.0) * np.ldexp(1.0, np.arange(-3, 60)) - 1.0,  # where k changes
        [0.0, -0.0, 1.7e308],
    ]
)


@numba.njit
def each(function, x):
    return np.array([function(v) for v in x])


@pytest.mark.parametrize(
    ("ours", "library", "x"),
    [(vector_math.exp, np.exp, EXP), (vector_math.log1p, np.log1p, LOG1P)],
    ids=["exp", "log1p"],
)
def test_is_right_to_the_last_places(ours, library, x):
    """NumPy's own functions are right to one unit."""
    known = library(x)
    assert np.all(np.abs(each(ours, x) - known) <= 3.0 * np.spacing(np.abs(known)))


@pytest.mark.parametrize(
    ("function", "x", "value"),
    [
        ("exp", np.inf, np.inf),
        ("exp", 710.0, np.inf),
        ("exp", -709.0, 0.0),
        ("exp", -np.inf, 0.0),
        ("exp", np.nan, np.nan),
        ("log1p", np.inf, np.inf),
        ("log1p", -1.0, -np.inf),
        ("log1p", -1.5, np.nan),
        ("log1p", -np.inf, np.nan),
        ("log1p", np.nan, np.nan),
    ],
)
def test_at_the_ends(function, x, value):
    np.testing.assert_equal(getattr(vector_math, function)(x), value)


def kinds(function):
    """Return the classes of a compiled function's operations, those inside loops as well."""
    found, todo = set(), [function.maker.fgraph]
    while todo:
        for node in todo.pop().apply_nodes:
            op = getattr(node.op, "scalar_op", node.op)
            found.add(type(op).__name__)
            if hasattr(op, "fgraph"):
                todo.append(op.fgraph)
    return found


def test_a_graph_with_the_rewrite_has_the_values_of_one_without():
    x = pt.dvector("x")
    outputs = [pt.exp(x), pt.log1p(x), pt.exp(-x).sum(), pt.grad((1.0 / (1.0 + x**-0.5)).sum(), x)]
    ours = pytensor.function([x], outputs, mode=MODE)
    plain = pytensor.function([x], outputs, mode="NUMBA")
    values = np.random.default_rng(0).gamma(1.0, size=1001)
    for a, b in zip(ours(values), plain(values), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
    assert {"Exp", "Log1p", "Pow"} <= kinds(plain)
    assert not {"Exp", "Log1p", "Pow"} & kinds(ours)


def test_scalars_and_other_powers_stay_as_they_are():
    x, y = pt.dscalar("x"), pt.dvector("y")
    compiled = pytensor.function([x, y], [pt.exp(x), y**-1.25], mode=MODE)
    assert {"Exp", "Pow"} <= kinds(compiled)
    np.testing.assert_allclose(compiled(1.0, [2.0])[1], 2.0**-1.25)


def test_every_density_is_compiled_with_it(monkeypatch):
    """A model's own compilation is not: its graph in another place is PyMC's."""
    with pm.Model() as model:
        x = pm.Normal("x", shape=40)
        pm.Potential("bent", -pt.exp(x).sum())
    compiled = []

    def keep(*args, **kwargs):
        compiled.append(pm.pytensorf.compile(*args, **kwargs))
        return compiled[-1]

    monkeypatch.setattr("ardvark.inference.target.compiled.compile_graph", keep)
    at = np.random.default_rng(0).normal(size=40)
    exact = (stats.norm.logpdf(at) - np.exp(at)).sum()
    assert Density(model).logp_grad(at)[0] == pytest.approx(exact, rel=1e-12)
    assert "VectorFunction" in kinds(compiled[0])
