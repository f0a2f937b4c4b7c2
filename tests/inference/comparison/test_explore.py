"""The menus of a comparison: what each chooses, and what is drawn then."""

import numpy as np
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.comparison import explore as module
from ardvark.inference.report.look import Picture
from ardvark.inference.report.marginal import component, marginal

ipywidgets = pytest.importorskip("ipywidgets")


@pytest.fixture(scope="module")
def comparison():
    problem = av.problem("pfcvm", av.load("digits38").take(range(40)))
    fits = {m: av.fit(problem, m, random_seed=0, progressbar=False) for m in ("paper", "laplace")}
    return av.compare(fits, reference="paper", problem=problem)


@pytest.fixture
def box(comparison):
    return av.explore(comparison, widgets=True)


def parts(box):
    """The controls by their description, the note, and both images."""
    controls, note, upper, lower = box.children
    chosen, column = controls.children
    return {w.description: w for w in (chosen, *column.children)}, note, upper, lower


def test_without_a_notebook_the_forest_is_a_picture(comparison):
    assert isinstance(av.explore(comparison), Picture)
    assert "leading features" in repr(av.explore(comparison, widgets=False))


def test_the_threshold_filters_features_in_the_order_of_their_probability(comparison, box):
    controls, note, upper, _ = parts(box)
    table = av.effects(comparison.fits["paper"], "feature")
    p = dict(zip(map(str, table.index), table["p_active"], strict=True))
    before = upper.value
    for least in (0.0, 0.9):
        controls["P(active) ≥"].value = least
        names = list(controls["of"].options)
        assert set(names) == {n for n in p if p[n] >= least}
        assert (np.diff([p[n] for n in names]) <= 0).all()
        assert f"{len(names)} features have" in note.value
    assert upper.value != before


def test_each_menu_draws_anew(box):
    controls, _, upper, lower = parts(box)
    controls["P(active) ≥"].value = 0.0
    seen = [bytes(lower.value)]
    for name, value in (
        ("of", controls["of"].options[3]),
        ("prior beside posterior", False),
        ("quantity", "bias"),
        ("quantity", "eta"),
    ):
        controls[name].value = value
        seen.append(bytes(lower.value))
    assert len(set(seen)) == len(seen)
    assert all(bytes(picture).startswith(b"\x89PNG") for picture in seen)
    both = upper.value
    controls["methods"].value = ("laplace",)
    assert upper.value != both
    controls["methods"].value = ()  # nothing chosen: the first method
    assert bytes(upper.value).startswith(b"\x89PNG")


def test_the_prior_is_that_of_the_component(comparison):
    problem = comparison.problem
    module._prior.cache_clear()
    draws = module._prior(problem, "feature_weight")
    assert draws.shape == (module.DRAWS, problem.data.D)
    assert module._prior(problem, "no such") is None
    assert module._prior(problem, "eta").shape == (module.DRAWS, problem.data.N)
    drawn = module.posterior_of(comparison, ["paper"], "feature_weight", "pixel_0_2", True)
    axis = drawn.figure.axes[0]
    assert [t.get_text() for t in axis.get_legend().get_texts()] == ["prior", "paper (reference)"]


def test_the_marginal_says_what_it_shows(comparison):
    tree = comparison.fits["paper"]
    x = tree["posterior"]["feature_weight"].sel(feature="pixel_0_2").values.ravel()
    np.testing.assert_array_equal(component(tree, "feature_weight", "pixel_0_2"), x)
    text = repr(marginal(comparison.fits, "paper", "feature_weight", "pixel_0_2"))
    assert f"paper: mean {x.mean():.2f}, sd {x.std():.2f}" in " ".join(text.split())
    assert component(tree, "bias", None).shape == x.shape
    with pytest.raises(InputError, match="no component 'pixel'; it has 'pixel_0_0' to"):
        component(tree, "feature_weight", "pixel")
    with pytest.raises(InputError, match="no fit has 'nothing'"):
        marginal(comparison.fits, None, "nothing")


def test_menus_without_ipywidgets_are_refused(comparison, monkeypatch):
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="pip install"):
        av.explore(comparison, widgets=True)
