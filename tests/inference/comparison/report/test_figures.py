"""Each figure draws what it says, of draws made by hand; its words and spots are the numbers."""

import base64

import matplotlib
import numpy as np
import pandas as pd
import pytest
import xarray as xr

from ardvark.common.validate import InputError
from ardvark.inference.comparison.report import judging_plots, plots, style
from ardvark.inference.scoring.held_out import HeldOut
from tests.support import rng


def fit(kind="mcmc", **variables):
    """A fit of draws (chain, draw, k), by variable."""
    dims = {"feature_weight": "feature", "sample_weight": "basis", "eta": "obs"}
    posterior = xr.Dataset({
        name: (("chain", "draw", dims[name]), np.asarray(values, dtype=float))
        for name, values in variables.items()
    })  # fmt: skip
    short = {"feature": "f", "basis": "s", "obs": "row"}
    coords = {d: [f"{short[d]}{k}" for k in range(n)] for d, n in posterior.sizes.items()
              if d in short}  # fmt: skip
    tree = xr.DataTree.from_dict({"/posterior": posterior.assign_coords(coords)})
    tree.attrs = {"kind": kind}
    return tree


def test_a_settings_file_of_the_user_changes_nothing_and_is_not_changed():
    with matplotlib.rc_context({"font.size": 40, "axes.spines.top": True}):
        with style.style():
            assert matplotlib.rcParams["font.size"] == 9.5
        assert matplotlib.rcParams["font.size"] == 40


@pytest.mark.parametrize(("panels", "rows"), [(1, [1]), (3, [3]), (4, [3, 1]), (8, [3, 3, 2])])
def test_at_most_three_panels_in_a_row(panels, rows):
    figure, axes = style.blank(panels)
    tops = [round(axis.get_position().y1, 3) for axis in axes]
    assert [tops.count(t) for t in sorted(set(tops), reverse=True)] == rows
    assert len(figure.axes) == panels
    assert figure.get_size_inches()[0] == style.WIDTH


def test_a_spot_lies_where_its_mark_is():
    """In shares of the picture, from the upper left; outside of it there is none."""
    figure, (axis,) = style.blank()
    axis.set(xlim=(0, 10), ylim=(0, 1))
    spots = [style.Spot(axis, 10, 1, "corner"), style.Spot(axis, 5, 0.5, "middle")]
    picture = style.Picture(figure, "", [*spots, style.Spot(axis, 50, 0.5, "outside")])
    (x1, y1, corner), (x2, y2, _) = picture.places()
    assert corner == "corner"
    box = axis.get_position()
    assert (x1, 1 - y1) == pytest.approx((box.x1, box.y1))
    assert (x2, 1 - y2) == pytest.approx(((box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2))


def test_a_picture_without_its_title_has_more_room_and_gets_it_back():
    figure, (axis,) = style.blank()
    style.entitle(figure, "one finds a rather long sentence " * 4, "x on y")
    picture = style.Picture(figure, "")
    title = figure.get_suptitle()
    figure.draw_without_rendering()
    before = axis.get_position().y1
    with picture.untitled() as text:
        figure.draw_without_rendering()
        assert axis.get_position().y1 > before + 0.1
        assert text == " ".join(title.split())
        assert title.startswith("x on y: one finds")
    figure.draw_without_rendering()
    assert axis.get_position().y1 == before
    assert figure.get_suptitle() == title
    assert figure.texts[0].get_position()[0] < 0.05


def test_a_picture_shows_itself_in_a_notebook_and_its_words_in_a_terminal():
    """Not the names of its fields."""
    figure, _ = style.blank()
    picture = style.Picture(figure, "Two points " + "and more words " * 10)
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert base64.b64decode(picture.png()).startswith(b"\x89PNG")
    assert " ".join(repr(picture).split()) == picture.alt.strip()
    assert max(map(len, repr(picture).splitlines())) <= 80


def test_eta_says_how_far_means_are_off():
    """Means 0 and 4 with sd 1 and 2, against 1 and 5: off by 1 and 0.5 sd."""
    z = np.array([-1.0, 1.0])
    exact = np.stack([z, 4 + 2 * z], axis=-1)[None]
    fits = {"a": fit(eta=exact), "q": fit("approximation", eta=1 + exact)}
    picture = plots.eta(fits, "a")
    assert (
        "q: the median error is 0.75 sd and the largest 1.00 sd; the median sd is 1.50"
        in picture.alt
    )
    assert picture.spots[0].text == "row0: a 0.00 (sd 1.00), q 1.00 (sd 1.00)"
    with pytest.raises(InputError, match="needs a reference"):
        plots.eta(fits, None)


def title_of(picture):
    return " ".join(picture.figure.get_suptitle().split())


def marks(picture):
    """Return the marks of a rank figure: collections of points beside the lines of the chains."""
    return [c for axis in picture.figure.axes for c in axis.collections if len(c.get_offsets()) > 1]


def test_the_frontier_is_the_table():
    rows = {"nuts": (10.0, 0.1), "q": (2.0, 1.5), "none": (1.0, np.nan), "base": (0.1, np.nan)}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["seconds_run", "error_eta"])
    picture = judging_plots.frontier(table, "nuts")
    assert [(s.x, s.y) for s in picture.spots] == [(10.0, 0.1), (2.0, 1.5)]
    assert "q: 2.0 s, error 1.50 sd; the two halves of nuts differ by 0.10 sd" in picture.alt
    drawn = [line.get_xydata().tolist() for line in picture.figure.axes[0].get_lines()[:2]]
    assert drawn == [[[10.0, 0.1]], [[2.0, 1.5]]]
    for reference, part in ((None, table), ("nuts", table.drop(index="q"))):
        with pytest.raises(InputError, match="needs a reference and another fit"):
            judging_plots.frontier(part, reference)


def test_the_reliability_curve_is_an_isotonic_regression():
    """P of 0.2 and 0.8 where 30 and 60 of 100 are of y = 1: two steps, at these heights."""
    p = np.repeat([0.2, 0.8], 100)
    y = np.r_[np.repeat([1, 0], [30, 70]), np.repeat([1, 0], [60, 40])]
    names = tuple(map(str, range(200)))
    held = HeldOut(y, names, {"a": np.tile(p, (500, 1)), "sure": np.tile(p > 0.5, (500, 1))})
    picture = judging_plots.reliability(held, "a")
    assert "a: P above 0.9 for 0, of which 0 of y = 1" in picture.alt
    assert "sure: P above 0.9 for 100, of which 60 of y = 1; below 0.1 for 100, of which 30" in (
        picture.alt
    )
    sure = next(axis for axis in picture.figure.axes if axis.get_title() == "sure")
    assert (sure.get_xlabel(), sure.get_ylabel()) == ("P(y = 1)", "share of y = 1")
    curve = max((line.get_xydata() for line in sure.get_lines()), key=len)
    assert set(curve[:, 0]) == {0.0, 1.0}  # P is the horizontal axis
    assert curve[:100, 1] == pytest.approx(0.3)
    assert curve[100:, 1] == pytest.approx(0.6)
    with pytest.raises(InputError, match="needs held-out samples"):
        judging_plots.reliability(None, "a")


def test_ranks_watch_the_worst_eta_and_the_leading_weight():
    random = rng(1)
    eta, w = random.normal(size=(4, 100, 3)), np.abs(random.normal(size=(4, 100, 2)))
    eta[0, :, 1] += 5  # one chain elsewhere
    w[..., 1] += 3
    tree = fit(eta=eta, feature_weight=w)
    tree["sample_stats"] = xr.DataTree(xr.Dataset({"lp": (("chain", "draw"), np.ones((4, 100)))}))
    picture = judging_plots.ranks({"q": fit("approximation", eta=eta[:1]), "a": tree})
    assert [a.get_title() for a in picture.figure.axes] == ["eta of row1", "weight of f1"]
    assert picture.alt.startswith("Rank ECDF of each of the 4 chains of a")
    # a chain of the largest quarter: below all others by three quarters at rank 3/4
    assert "do not agree" in title_of(picture)
    assert marks(picture)
    low = min(line.get_ydata().min() for line in picture.figure.axes[0].get_lines())
    assert low == pytest.approx(-0.75, abs=0.05)
    # three values with the mean, the variance and the mean size of a normal: R-hat sees nothing in
    # them (it is above 1.01 with probability 1e-13), and the marks do
    eta = random.normal(size=(4, 1000, 1))
    values = random.choice([-1.253, 0.0, 1.253], p=[0.3185, 0.363, 0.3185], size=1000)
    eta[0, :, 0] = values + 0.01 * random.normal(size=1000)
    agreeing = judging_plots.ranks({"a": fit(eta=eta)})
    assert "the chains of a agree" in title_of(agreeing).lower()
    assert not marks(agreeing)
    with pytest.raises(InputError, match="several Markov chains"):
        judging_plots.ranks({"q": fit("approximation", eta=eta)})
