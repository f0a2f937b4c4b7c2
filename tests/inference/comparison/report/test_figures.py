"""Each figure draws what it says, of draws made by hand; its words and spots are the numbers."""

import base64

import matplotlib
import numpy as np
import pytest

from ardvark.common.validate import InputError
from ardvark.inference.comparison.report import plots, reliability, style
from ardvark.inference.scoring.held_out import HeldOut
from tests.made import DIMS, drawn


def fit(kind="mcmc", **variables):
    """A fit of draws (chain, draw, k), by variable."""
    short = {"feature": "f", "basis": "s", "obs": "row"}
    sizes = {short[DIMS[name]]: (DIMS[name], np.shape(x)[2]) for name, x in variables.items()}
    coords = {dim: [f"{c}{k}" for k in range(n)] for c, (dim, n) in sizes.items()}
    return drawn(variables, kind, coords=coords)


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


def test_the_reliability_curve_is_an_isotonic_regression():
    """P of 0.2 and 0.8 where 30 and 60 of 100 are of y = 1: two steps, at these heights."""
    p = np.repeat([0.2, 0.8], 100)
    y = np.r_[np.repeat([1, 0], [30, 70]), np.repeat([1, 0], [60, 40])]
    names = tuple(map(str, range(200)))
    held = HeldOut(y, names, {"a": np.tile(p, (500, 1)), "sure": np.tile(p > 0.5, (500, 1))})
    picture = reliability.reliability(held, "a")
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
        reliability.reliability(None, "a")
