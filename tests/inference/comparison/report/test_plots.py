"""The curve over sizes: P(|effect| > t) of the leading features, beside the prior's."""

import numpy as np
import pytest
import xarray as xr

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.comparison.report import plots
from ardvark.inference.comparison.report.forest import leaders
from ardvark.inference.fits.activity import SIZES
from tests.inference.fits.weights import prior_draws, selected


@pytest.fixture
def problem(small_data):
    return av.problem("rfvm", small_data(N=14, D=5))


def lines_of(axis, style):
    return [line.get_xydata() for line in axis.get_lines() if line.get_linestyle() == style]


def test_each_line_is_the_curve_of_a_leading_feature(problem):
    """Under every method those that lead under the reference; grey is the prior, of all alike."""
    a, b = (selected(problem, **prior_draws(problem, number=n, draws=40)) for n in (0, 1))
    picture = plots.curve({"b": b, "a": a}, "a", "x on y", leading=3)
    order = leaders(a, "feature", 3)
    axes = picture.figure.axes
    assert [axis.get_title() for axis in axes] == ["a (reference)", "b"]
    for axis, tree in zip(axes, (a, b), strict=True):
        found = tree["selection"]
        prior, *drawn = lines_of(axis, "-")
        np.testing.assert_array_equal(prior[:, 1], found["prior_curve_feature"][:, 0])
        np.testing.assert_array_equal(np.stack(drawn)[..., 1], found["curve_feature"][:, order].T)
        assert all(line[:, 0].tolist() == list(SIZES) for line in (prior, *drawn))
        (threshold,) = lines_of(axis, ":")
        assert (threshold[:, 0] == 0.5).all()
        assert axis.get_xlabel() == "size t of an effect per sd"
    legend = [t.get_text() for t in picture.figure.legends[0].get_texts()]
    names = [problem.data.feature_names[k] for k in order]
    assert legend == [*names, "prior"]
    curve = a["selection"]["curve_feature"]
    counts = [f"{int((curve.sel(t=t) > 0.5).sum())} at t = {t:g}" for t in (0.1, 0.5, 1.0)]
    title = picture.figure.get_suptitle().replace("\n", " ")
    said = f"{', '.join(counts)} under a"
    assert title == f"x on y: features more likely than not to have an effect above t: {said}"
    assert picture.alt.startswith(f"P(|effect| > t) of 3 features. Above one half: {said}; ")
    spot = picture.spots[3]
    p = float(curve.sel(t=0.5)[order[0]])
    assert (spot.x, spot.y) == (0.5, p)
    assert spot.text == f"{names[0]}, a: P(|effect| > 0.5) = {p:.2f}"


def test_priors_that_differ_are_not_drawn(problem):
    tree = selected(problem, **prior_draws(problem))
    tree["selection"]["prior_curve_feature"].values[3, 0] += 0.1
    picture = plots.curve({"a": tree})
    assert len(lines_of(picture.figure.axes[0], "-")) == 5
    del tree["selection"]["prior_curve_feature"]
    assert len(lines_of(plots.curve({"a": tree}).figure.axes[0], "-")) == 5


def test_without_a_selection_there_is_no_curve():
    with pytest.raises(InputError, match=r"no fit has P\(\|effect\| > t\)"):
        plots.curve({"a": xr.DataTree()})
