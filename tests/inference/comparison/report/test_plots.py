"""Pixels as an image: each weight and each probability lands at its own row and column."""

import numpy as np
import pytest
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.inference.comparison.report import plots

NAMES = [f"pixel_{r}_{c}" for r in range(2) for c in range(3)]


def fit(names, weight, probability=None, effect=None):
    """A fit whose two draws are the weight, with its P(active) and signed effects."""
    feature = {"feature": list(names)}
    draws = np.tile(weight, (1, 2, 1)).astype(float)
    groups = {
        "/posterior": xr.Dataset({"feature_weight": (("chain", "draw", "feature"), draws)}, feature)
    }
    if probability is not None:
        p = ("feature", np.asarray(probability, dtype=float))
        groups["/selection"] = xr.Dataset({"p_active_feature": p}, feature)
        if effect is not None:
            groups["/selection"]["effect_feature"] = ("feature", np.asarray(effect, dtype=float))
    return xr.DataTree.from_dict(groups)


def pictures(figure):
    return [axis.images[0].get_array().data for axis in figure.axes if axis.images]


def test_pixels_lie_where_their_names_say():
    effect, probability = np.arange(6.0) - 2.0, np.linspace(0.0, 1.0, 6)
    order = [4, 0, 5, 2, 1, 3]  # names in any order
    tree = fit([NAMES[k] for k in order], np.ones(6), probability[order], effect[order])
    picture = plots.image({"a": tree}, "a")
    drawn = pictures(picture.figure)
    np.testing.assert_allclose(drawn[0], effect.reshape(2, 3))
    np.testing.assert_allclose(drawn[1], probability.reshape(2, 3))
    # under the pointer, where columns run to the right and rows down: the most probable first
    assert [(s.x, s.y, s.text.partition(",")[0]) for s in picture.spots] == [
        (k % 3, k // 3, NAMES[k]) for k in range(5, -1, -1)
    ]
    assert picture.spots[0].text == "pixel_1_2, a: P(active) 1.00, effect +3"


def test_all_methods_share_one_scale_that_is_even_about_zero():
    """A method with small effects is pale, whatever is largest in it."""
    one = fit(NAMES, np.ones(6), np.ones(6), [-4.0, 1.0, 0.0, 0.0, 0.0, 0.0])
    two = fit(NAMES, np.ones(6), np.zeros(6), np.full(6, 0.01))
    figure = plots.image({"a": one, "b": two}, "a").figure
    scales = [axis.images[0].get_clim() for axis in figure.axes if axis.images]
    assert scales == [(-4.0, 4.0), (-4.0, 4.0), (0.0, 1.0), (0.0, 1.0)]


def test_pixels_with_negative_effects_are_barred():
    """Not where the effect is too small to be seen; white where the pixel is dark."""
    tree = fit(NAMES, np.ones(6), np.ones(6), [4.0, -4.0, -1.0, -0.1, 0.0, 2.0])
    axis = plots.image({"a": tree}).figure.axes[0]
    bars = [lines.get_segments()[0].mean(axis=0).tolist() for lines in axis.collections]
    assert bars == [[1.0, 0.0], [2.0, 0.0]]
    assert [lines.get_color()[0, 0] for lines in axis.collections] == [1.0, 0.0]


def test_the_title_says_how_far_the_effects_are_apart():
    one = fit(NAMES, np.ones(6), np.ones(6), [-4.0, 3.0, 0.0, 0.0, 0.0, 0.0])
    two = fit(NAMES, np.ones(6), np.zeros(6), np.zeros(6))
    title = plots.image({"a": one, "b": two}, "a", "x on y").figure.get_suptitle()
    assert title.replace("\n", " ") == (
        "x on y: distance from the effects under a, relative to them: 100 % under b"
    )
    alone = plots.image({"a": one}).figure.get_suptitle()
    assert alone == "The largest of the effects is that of pixel_0_0, -4"
    none = plots.image({"b": two, "a": one}, "b").figure.get_suptitle()
    assert none == "Effects are zero for all pixels under b"


def test_the_reference_comes_first_and_fits_without_p_active_are_left_out():
    one, two = fit(NAMES, np.ones(6), np.zeros(6)), fit(NAMES, np.ones(6), np.ones(6))
    figure = plots.image({"b": one, "a": two, "c": fit(NAMES, np.ones(6))}, "a").figure
    titles = [axis.get_title().replace("\n", " ") for axis in figure.axes if axis.get_title()]
    assert titles == ["a (reference)", "b"]
    assert [p.sum() for p in pictures(figure)] == [6.0, 0.0]  # without effects P(active) alone


@pytest.mark.parametrize(
    "names",
    [
        ["age", "weight", "height", "a", "b", "c"],
        [*NAMES[:5], "age"],  # one is no pixel
        [*NAMES[:5], "pixel_7_7"],  # no rectangle
        [*NAMES[:5], "other_0_0"],  # two at one place
    ],
)
def test_other_features_are_no_image(names):
    with pytest.raises(InputError, match="the features are not pixels"):
        plots.image({"a": fit(names, np.ones(6), np.ones(6))})


def test_without_p_active_there_is_nothing_to_draw():
    with pytest.raises(InputError, match="no fit has P"):
        plots.image({"a": fit(NAMES, np.ones(6))})
