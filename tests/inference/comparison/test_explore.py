"""The menus of a comparison: what each chooses, and what is drawn then."""

import sys

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.comparison import explore as module
from ardvark.inference.comparison.report.look import Picture
from ardvark.inference.comparison.report.marginal import component, marginal
from ardvark.inference.comparison.table import Comparison
from tests.inference.methods.foreign import paper_variables
from tests.models.forms import make

ipywidgets = pytest.importorskip("ipywidgets")

P = [0.3, 0.95, 0.06, 0.6, 0.0]
"""P(active) of the features under the reference."""


@pytest.fixture(scope="module")
def comparison():
    problem, fits = make("pfcvm", N=9, D=5), {}
    for number, name in enumerate(("laplace", "paper")):
        fits[name] = av.adopt(problem, paper_variables(problem, 2, 20, number), "approximation")
    fits["paper"]["selection"]["p_active_feature"].values[:] = P
    return Comparison(pd.DataFrame(), fits, "paper", problem)


class Drawn(tuple):
    """Stands for a picture: its bytes are what it was asked to show."""

    def _repr_png_(self):
        return repr(tuple(self)).encode()


def test_without_a_notebook_the_forest_is_a_picture(comparison, monkeypatch):
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
    drawn = av.explore(comparison)
    assert isinstance(drawn, Picture)
    assert "leading features" in repr(drawn)
    monkeypatch.setitem(sys.modules, "ipykernel", pytest)
    assert repr(av.explore(comparison, widgets=False)) == repr(drawn)


def test_each_menu_draws_anew(comparison, monkeypatch):
    """Features in the order of P(active), down to the least that is chosen."""

    def below(fits, reference, quantity, at, beside):
        prior = None if beside is None else round(float(np.mean(beside)), 9)
        return Drawn([*fits, reference, quantity, at, prior])

    monkeypatch.setattr(
        module, "forest", lambda fits, reference, leading: Drawn([*fits, reference, leading])
    )
    monkeypatch.setattr(module, "marginal", below)
    box = av.explore(comparison, widgets=True)
    (chosen, column), note, upper, lower = box.children[0].children, *box.children[1:]
    least, quantity, of, prior = column.children
    names = comparison.problem.data.feature_names
    means = module._prior(comparison.problem, "feature_weight").mean(axis=0)
    draws = [round(float(mean), 9) for mean in means]
    both = ("paper", "laplace")

    def shown(above, under):
        assert bytes(upper.value) == repr((*above, "paper", *under[:1])).encode()
        assert bytes(lower.value) == repr((*above, "paper", *under[1:])).encode()

    assert chosen.options == both
    assert list(of.options) == [names[k] for k in (1, 3, 0)]
    shown(both, (3, "feature_weight", names[1], draws[1]))
    least.value = 0.5
    assert list(of.options) == [names[k] for k in (1, 3)]
    assert note.value == "2 features have a P(active) of at least 0.50."
    of.value = names[3]
    shown(both, (2, "feature_weight", names[3], draws[3]))
    least.value = 0.0  # what is chosen stays, where it is listed
    assert list(of.options) == [names[k] for k in (1, 3, 0, 2, 4)]
    shown(both, (5, "feature_weight", names[3], draws[3]))
    prior.value = False
    shown(both, (5, "feature_weight", names[3], None))
    quantity.value = "bias"
    shown(both, (5, "bias", None, None))
    quantity.value = "eta"
    assert list(of.options) == list(comparison.problem.data.sample_names)
    chosen.value = ("laplace",)
    shown(("laplace",), (5, "eta", of.options[0], None))
    chosen.value = ()  # the first method
    shown(("paper",), (5, "eta", of.options[0], None))


def test_the_prior_is_that_of_the_component(comparison):
    problem = comparison.problem
    assert module._prior(problem, "feature_weight").shape == (module.DRAWS, problem.data.D)
    assert module._prior(problem, "no such") is None
    assert module._prior(problem, "eta").shape == (module.DRAWS, problem.data.N)
    name = problem.data.feature_names[2]
    drawn = module.posterior_of(comparison, ["paper"], "feature_weight", name, True)
    axis = drawn.figure.axes[0]
    assert [t.get_text() for t in axis.get_legend().get_texts()] == ["prior", "paper (reference)"]


def test_the_marginal_says_what_it_shows(comparison):
    tree, name = comparison.fits["paper"], comparison.problem.data.feature_names[2]
    x = tree["posterior"]["feature_weight"].values[..., 2].ravel()
    np.testing.assert_array_equal(component(tree, "feature_weight", name), x)
    text = repr(marginal(comparison.fits, "paper", "feature_weight", name))
    assert f"paper: mean {x.mean():.2f}, sd {x.std():.2f}" in " ".join(text.split())
    assert component(tree, "bias", None).shape == x.shape
    with pytest.raises(InputError, match=r"no component 'pixel'; it has '\w+' to"):
        component(tree, "feature_weight", "pixel")
    with pytest.raises(InputError, match="no fit has 'nothing'"):
        marginal(comparison.fits, None, "nothing")


def test_menus_without_ipywidgets_are_refused(comparison, monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install"):
        av.explore(comparison, widgets=True)
