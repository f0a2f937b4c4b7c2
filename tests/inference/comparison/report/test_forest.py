"""The forest draws the signed effects of the selection, and their probabilities; or weights."""

import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.comparison.report import forest
from ardvark.inference.fits.diagnostics import inclusion
from tests.inference.comparison.report.test_figures import fit
from tests.inference.fits.selections import selection
from tests.inference.fits.weights import prior_draws, selected
from tests.support import rng


@pytest.fixture
def problem(small_data):
    return av.problem("rfvm", small_data(N=14, D=5))


def segments(axis):
    """Return the horizontal lines of a panel as rows (y, left, right)."""
    found = []
    for lines in axis.collections:
        for (x0, y0), (x1, y1) in getattr(lines, "get_segments", list)():
            if y0 == y1:
                found.append((y0, x0, x1))
    return np.array(found)


def test_bars_are_the_effects_of_the_selection(problem):
    """In the order of the reference's P(effect); a row of each method at its own height."""
    a, b = (selected(problem, **prior_draws(problem, number=n, draws=40)) for n in (0, 1))
    picture = forest.forest({"b": b, "a": a}, "a", leading=3)
    table, other = av.effects(a), av.effects(b)
    order = np.lexsort((-table["size"], -table["p_active"]))[:3]
    left, right = picture.figure.axes
    names = [label.get_text() for label in left.get_yticklabels()]
    assert names == [f"{table.index[k]}   {table['p_active'].iloc[k]:.2f}" for k in order]
    points = [line.get_xydata() for line in right.get_lines() if line.get_marker() in ("o", "s")]
    np.testing.assert_allclose(points[0][:, 0], table["effect"].iloc[order])
    np.testing.assert_allclose(points[1][:, 0], other["effect"].iloc[order])
    assert (np.diff(points[0][:, 1]) == -1.0).all()  # rows run down
    assert (points[0][:, 1] > points[1][:, 1]).all()  # the reference above
    assert (points[1][:, 1] > points[0][:, 1] - 1.0).all()
    wide = segments(right)[:3]  # of the first method
    np.testing.assert_allclose(wide[:, 1], table["low"].iloc[order])
    np.testing.assert_allclose(wide[:, 2], table["high"].iloc[order])
    shown = [line.get_xdata() for line in left.get_lines() if line.get_marker() in ("o", "s")]
    np.testing.assert_allclose(shown[0], table["p_active"].iloc[order])
    np.testing.assert_allclose(shown[1], other["p_active"].iloc[order])
    prior = [s[0][0] for s in left.collections[0].get_segments()]
    np.testing.assert_allclose(prior, table["prior"].iloc[order])
    legend = [t.get_text() for t in picture.figure.legends[0].get_texts()]
    assert legend == ["a (reference)", "b", "prior"]
    handles = picture.figure.legends[0].legend_handles
    assert [handle.get_marker() for handle in handles] == ["o", "s", "|"]  # read in grey
    assert left.get_xlabel() == "P(|effect| > 0.5)"
    assert right.get_xlabel() == (
        "effect on eta towards 'ill', log odds before the latent noise\n"
        "per sd of the feature: mean, 50 % and 90 % intervals"
    )
    assert picture.alt.startswith("Forest of the 3 leading features, effect on eta towards")
    first = table.iloc[order[0]]
    assert f"(P {first['p_active']:.2f}, prior {first['prior']:.2f})" in picture.alt
    spot = picture.spots[0]
    assert (spot.x, spot.y) == (pytest.approx(first["effect"]), points[0][0, 1])
    assert spot.text.startswith(f"{table.index[order[0]]}, a: mean {first['effect']:.3g}, ")
    assert (
        picture.spots[1].text.split(",")[1] == " b: mean " + f"{other['effect'].iloc[order[0]]:.3g}"
    )


def test_leaders_are_those_of_p_active_and_then_of_mean_size():
    """A large weight without effect comes last; of equal ones the larger; without P, the size."""
    weight = np.tile([0.2, -9.0, 0.3, 0.1], (2, 5, 1))
    tree = fit(feature_weight=weight)
    assert forest.leaders(tree, "feature", 3).tolist() == [1, 2, 0]
    tree["selection"] = xr.DataTree(selection([0.7, 0.0, 0.7, 0.25]))
    assert forest.leaders(tree, "feature", 4).tolist() == [2, 0, 3, 1]


def test_where_nothing_is_active_the_leading_one_is_named(problem):
    tree = selected(problem, **prior_draws(problem))
    tree["selection"] = xr.DataTree(selection([0.1, 0.0, 0.4, 0.25, 0.0]))
    title = " ".join(forest.forest({"a": tree}).figure.get_suptitle().split())
    name = problem.coords["feature"][2]
    assert title.endswith(
        "No feature has |effect| above 0.5 more probably than not under a; the leading one is "
        f"{name} with 0.40"
    )


def test_samples_and_slopes_have_their_own_labels(small_data):
    problem = av.problem("jcfo", small_data(N=12, D=3), kernel="rbf")
    tree = selected(problem, **prior_draws(problem))
    features = forest.forest({"a": tree})
    samples = forest.forest({"a": tree}, leading=4, what="sample")
    label = features.figure.axes[1].get_xlabel()
    assert label.startswith(
        "average partial effect towards 'ill', probit units\nper sd of the feature"
    )
    label = samples.figure.axes[1].get_xlabel()
    assert label.startswith(
        "effect on eta towards 'ill', probit units\nper sd of the basis function"
    )
    assert len(samples.spots) == 4


def test_weights_are_drawn_where_asked_for_or_where_there_are_no_effects(problem):
    tree = selected(problem, **prior_draws(problem, draws=40))
    weights = forest.forest({"a": tree}, of="weight")
    v = tree["posterior"]["feature_weight"].values.reshape(-1, 5)
    table = av.effects(tree)
    order = np.lexsort((-table["size"], -table["p_active"]))
    points = weights.figure.axes[1].get_lines()[-1].get_xdata()
    np.testing.assert_allclose(points, v.mean(0)[order])
    np.testing.assert_allclose(
        segments(weights.figure.axes[1])[:5, 1:], np.quantile(v, [0.05, 0.95], axis=0).T[order]
    )
    bare = fit(feature_weight=v[None])
    alone = forest.forest({"a": bare}).figure
    assert len(alone.axes) == 1  # no P(effect), no panel of it
    largest = v.mean(0).argmax()
    said = f"The leading feature under a is f{largest}, {v.mean(0)[largest]:.2g}"
    assert alone.get_suptitle() == said
    both = forest.forest({"bare": bare, "a": tree}, "a")
    assert [t.get_text() for t in both.figure.legends[0].get_texts()] == ["a (reference)", "prior"]
    with pytest.raises(InputError, match="no fit has signed effects"):
        forest.forest({"a": bare}, of="effect")
    with pytest.raises(InputError, match="no fit has 'sample_weight'"):
        forest.forest({"a": bare}, what="sample")
    with pytest.raises(InputError, match="of must be one of 'effect', 'weight'"):
        forest.forest({"a": tree}, of="size")


def test_a_mask_is_a_probability_and_what_it_switches_off_is_not():
    """Bars of a mask are two Monte Carlo errors, those of a weight its quantiles."""
    random = rng(2)
    mask = (random.uniform(size=(2, 200, 3)) < [0.9, 0.5, 0.1]).astype(float)
    tree = fit(feature_weight=mask, sample_weight=-3.0 * mask)
    tree.attrs["masked"] = "feature_weight sample_weight"
    features = forest.forest({"a": tree}, "a")
    samples = forest.forest({"a": tree}, "a", what="sample")
    assert features.alt.startswith("Forest of the 3 leading features, inclusion probability. f0")
    assert samples.alt.startswith("Forest of the 3 leading samples, sample weight. s0")
    assert samples.spots[0].text.endswith("-3 to 0")
    error = float(inclusion(tree["posterior"]["feature_weight"])["mcse"][0])
    mean = mask[..., 0].mean()
    ends = f"{mean - 2 * error:.3g} to {mean + 2 * error:.3g}"
    assert features.spots[0].text == f"f0, a: mean {mean:.3g}, {ends}"


def test_long_names_are_cut_and_told_in_full(problem):
    tree = selected(problem, **prior_draws(problem))
    long = ["a feature with a name that no row has room for", *"bcde"]
    for name in ("posterior", "selection"):
        tree[name] = xr.DataTree(tree[name].to_dataset().assign_coords(feature=long))
    picture = forest.forest({"a": tree})
    labels = [t.get_text() for t in picture.figure.axes[0].get_yticklabels()]
    assert any(t.startswith("a feature with a name t…  ") for t in labels)
    assert any(spot.text.startswith(long[0]) for spot in picture.spots)
