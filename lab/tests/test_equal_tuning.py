"""Equal tuning: every method has the same folds, and a scale is chosen on training rows alone."""

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from lab.findings import equal_tuning


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    return av.Dataset.from_arrays(X, (X[:, 0] + 0.1 * rng.normal(size=60) > 0).astype(int))


@pytest.fixture
def run(monkeypatch, tmp_path, data):
    """Run a table whose exact fits are replaced: scale 3 has the best score in every fold."""
    asked = []

    def fit_exact(model, scale, of, split, options=None):
        asked.append((model, scale, of.N, options))
        p = np.full(len(split[1]), {1.0: 0.4, 3.0: 0.5, 9.0: 0.1}[scale])
        return equal_tuning._kept("finished", p, of.y[split[1]])

    monkeypatch.setattr(equal_tuning, "STORED", tmp_path / "rows.csv")
    monkeypatch.setattr(equal_tuning, "TABLES", {"made": "pfcvm"})
    monkeypatch.setattr(equal_tuning, "load", lambda name, fetch: data)
    monkeypatch.setattr(equal_tuning, "fit_exact", fit_exact)
    few = equal_tuning.Penalised(equal_tuning._ridge, {"model__C": (0.1, 1.0)})
    monkeypatch.setattr(equal_tuning, "PENALISED", dict.fromkeys(equal_tuning.PENALISED, few))
    monkeypatch.setattr(equal_tuning, "report", lambda: None)
    equal_tuning.main()
    return asked


def test_the_chosen_scale_and_the_default_are_fitted_to_all_training_rows(run, data):
    found = equal_tuning.outer(equal_tuning.stored(), "made")
    assert all(len(fits) == equal_tuning.OUTER for fits in found.values())
    assert set(found[equal_tuning.TUNED]["scale"]) == {3.0}
    assert set(found[equal_tuning.DEFAULT]["scale"]) == {1.0}
    inner = [x for x in run if x[3] == equal_tuning.FIRST]
    assert len(inner) == 5 * 3 * 3
    assert {n for _, _, n, _ in inner} == {48}, "inner folds lie within the training rows"


def test_a_run_goes_on_where_it_was_ended(run):
    before = equal_tuning.stored()
    done = len(run)
    equal_tuning.main()
    assert len(run) == done
    pd.testing.assert_frame_equal(before, equal_tuning.stored())


def test_differences_are_paired_by_row(run, data):
    scored = equal_tuning.scored(equal_tuning.stored(), "made")
    frame = equal_tuning.differences(scored).set_index(["first", "second"])
    gap = scored[equal_tuning.TUNED]["log_score"] - scored["ridge"]["log_score"]
    mine = frame.loc[(equal_tuning.TUNED, "ridge")]
    assert len(gap) == data.N
    assert mine["log_score"] == pytest.approx(gap.mean())
    assert mine["log_score_error"] == pytest.approx(gap.std(ddof=1) / np.sqrt(data.N))
    judged = dict.fromkeys(equal_tuning.COMPARED[:3], -1) | dict.fromkeys(equal_tuning.DESCRIBED, 0)
    assert frame["clear"].loc[list(judged)].to_dict() == judged


def test_a_table_without_all_its_fits_is_not_reported(run, data, monkeypatch):
    held = equal_tuning.stored()
    assert equal_tuning.complete(held) == ["made"]
    for lost in (held.index[0], held.index[-1], held[held["inner"].notna()].index[0]):
        assert equal_tuning.complete(held.drop(index=lost)) == []
    found = equal_tuning.all_scored(held)
    shown = equal_tuning.scores(held, found).set_index("method")
    assert shown.loc["exact pfcvm, tuned", "scales"] == "5 x 3"
    assert len(equal_tuning.beside(found)) == 8


def test_a_scale_is_that_of_the_hyperparameter():
    assert equal_tuning.hypers("pfcvm", 3.0) == {"slab": 3.0}
    assert equal_tuning.hypers("fsklr", 3.0)["xi"] ** -0.5 == pytest.approx(3.0)
    assert equal_tuning.hypers("horseshoe", 1.0) == {}


def test_the_page_says_what_the_rows_say():
    page = equal_tuning.PAGE.read_text()
    held = equal_tuning.stored()
    found = equal_tuning.all_scored(held)
    for line in equal_tuning.tables.markdown(equal_tuning.beside(found)).splitlines():
        assert line in page
    gaps = {
        name: equal_tuning.differences(x).set_index(["first", "second"])
        for name, x in found.items()
    }
    judged = pd.concat([frame.loc[list(equal_tuning.COMPARED)] for frame in gaps.values()])
    assert f"behind in none of the {len(judged)} differences" in page
    assert not (judged["clear"] == -1).any()
    assert f"clearly ahead in {(judged['clear'] == 1).sum()}:**" in page
    kernel = (equal_tuning.TUNED, "kernel ridge")
    for name in ("ionosphere", "sonar"):
        mine = gaps[name].loc[kernel]
        assert f"by {-mine['log_score']:.3f} ± {mine['log_score_error']:.3f} on {name}" in page
    default = {
        n: g.loc[(equal_tuning.TUNED, equal_tuning.DEFAULT), "log_score"] for n, g in gaps.items()
    }
    assert max(abs(default[name]) for name in ("colon", "heart", "sonar")) < 0.0025
    ended = {
        method: sum(
            (equal_tuning.outer(held, n)[method]["status"] != "finished").sum() for n in found
        )
        for method in (equal_tuning.TUNED, equal_tuning.HORSESHOE)
    }
    inner = held[held["inner"].notna()]
    short = (inner["status"] != "finished").sum()
    assert f"{ended[equal_tuning.TUNED]} of 20 last fits of the tuned posterior" in page
    assert f"{ended[equal_tuning.HORSESHOE]} of 20 of the horseshoe" in page
    assert f"{short} of the {len(inner)} short fits" in page
