"""What a panel shows beside its own: effects of the full posterior, and rows that were left out."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from scipy import special

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.panels.projection import design
from ardvark.inference.panels.result import in_posterior
from tests.inference.comparison.quick import registered
from tests.inference.panels.ridge import Ridge, fitted, table


@pytest.fixture(autouse=True)
def ridge(monkeypatch):
    registered(monkeypatch, Ridge)


def by_numpy(fit, frame):
    """Return the effects (S, K) per unit of each column of a frame, from the draws of eta alone.

    Of a linear model with more rows than columns, eta is a linear function of the columns.
    """
    A = np.column_stack([np.ones(len(frame)), frame.to_numpy()])
    eta = fit["posterior"]["eta"].values.reshape(-1, len(frame))
    scale = np.abs(A).max(0)
    return (np.linalg.lstsq(A / scale, eta.T, rcond=None)[0].T / scale)[:, 1:]


def test_the_interval_beside_a_coefficient_is_the_posteriors(tmp_path):
    """Of members and of columns always in, in text, file and members, and none of another kind."""
    frame, y = table(8)
    problem, fit = fitted(frame, y, always=["x5"])
    panel = av.panel(problem, fit, sizes=3, folds=2, progressbar=False).at(3)
    low, high = np.quantile(by_numpy(fit, frame), [0.05, 0.95], axis=0)
    found = panel.coefficients
    assert found.attrs["unit"] == "log odds"
    assert found.columns.str.contains("low|high").sum() == 2
    assert list(found.index[:2]) == ["intercept", "x5"]
    assert found.loc["intercept", found.columns[2:]].isna().all()
    for name, row in found.iloc[1:].iterrows():
        k = frame.columns.get_loc(name)
        ends = row[["posterior_low", "posterior_high"]].to_numpy()
        np.testing.assert_allclose(ends, [low[k], high[k]], rtol=1e-6)
        assert f"{low[k]:.3g} to {high[k]:.3g}" in panel.text()
    pd.testing.assert_frame_equal(panel.members[found.columns], found.loc[list(panel.names)])
    panel.to_csv(tmp_path / "panel.csv")
    kept = pd.read_csv(tmp_path / "panel.csv", index_col="name").drop(columns="note")
    pd.testing.assert_frame_equal(kept, found)


def test_a_posterior_that_is_certain_of_its_labels_keeps_its_wide_intervals(monkeypatch):
    """60 features and 40 rows fit any labels: all draws have nearly the same projection.

    The spread of the projections is about a tenth of the interval of the column of noise.
    """
    monkeypatch.setattr(Ridge, "SD", 5.0)
    frame, y = table(9, N=40, D=60)
    frame = (frame - frame.mean()) / frame.std()
    problem, fit = fitted(frame.assign(sex=np.resize([0.0, 1.0, 1.0], 40)), y, always=["sex"])
    panel = av.panel(problem, fit, sizes=1, folds=2, progressbar=False).at(1)
    drawn = fit["posterior"]["covariate_weight"].values.ravel() / problem.covariates.scale
    own = np.quantile(drawn, [0.05, 0.95])
    projected = panel.predictions.submodel(panel.features).draws[:, 1] / problem.covariates.scale
    assert np.ptp(np.quantile(projected, [0.05, 0.95])) < np.ptp(own) / 5.0
    shown = panel.coefficients.loc["sex", ["posterior_low", "posterior_high"]]
    np.testing.assert_allclose(shown.to_numpy(float), own, rtol=1e-9)


def test_a_fit_without_selection_or_without_draws_of_its_own_shows_what_it_has():
    problem, fit = fitted(*table())
    bare = fit.copy()
    del bare["selection"]
    assert in_posterior(problem, bare).isna().all(axis=None)
    point = fit.copy()
    point.attrs = {**fit.attrs, "kind": "point"}
    known = in_posterior(problem, point)
    assert known["posterior_effect"].notna().all()
    assert known[["posterior_low", "posterior_high"]].isna().all(axis=None)


def test_rows_left_out_are_scored_by_the_fit_and_by_its_panels():
    """Formula and full posterior by their definitions; a column in another place is the same."""
    frame, y = table(10, N=130)
    train, rest = frame[:90], frame[90:]
    problem, fit = fitted(train, y[:90])
    asked = {"sizes": [0, 2], "folds": 2, "progressbar": False}
    test = av.Dataset.from_arrays(rest.to_numpy(), y[90:], feature_names=list(rest))
    panel = av.panel(problem, fit, test=test, **asked)
    full = av.predict(problem, fit, rest).mean(("chain", "draw")).values
    full = np.log(np.where(y[90:] == "well", full, 1.0 - full))
    known = panel.table.attrs
    assert known["test_rows"] == 40
    assert known["test_full"] == pytest.approx(full.mean())
    assert known["test_full_se"] == pytest.approx(full.std(ddof=1) / np.sqrt(40))
    p = panel.at(2).estimator().predict_proba(rest)
    formula = np.log(np.where(y[90:] == "well", p[:, 1], p[:, 0]))
    assert panel.table.loc[2, "test_formula"] == pytest.approx(formula.mean())
    A = design(problem.at(rest.to_numpy()).X[:, list(panel.path)])
    p = special.expit(panel.predictions.submodel(panel.path).draws @ A.T).mean(0)
    own = np.log(np.where(y[90:] == "well", p, 1.0 - p))
    row = panel.table.loc[2]
    assert row["test_log_score"] == pytest.approx(own.mean())
    assert row["test_log_score_se"] == pytest.approx(own.std(ddof=1) / np.sqrt(40))
    assert row["test_difference"] == pytest.approx((own - full).mean())
    assert row["test_se"] == pytest.approx((own - full).std(ddof=1) / np.sqrt(40))
    text = " ".join(panel.at(2).text().split())
    assert f"on 40 rows left out of the fit: size 2 {own.mean():.3f} ± " in text
    assert f"the full posterior {full.mean():.3f} ± " in text
    plain = av.panel(problem, fit, **asked)
    assert "left out" not in plain.text()
    pd.testing.assert_frame_equal(panel.table[plain.table.columns], plain.table)
    turned = av.Dataset.from_arrays(rest.to_numpy()[:, ::-1], y[90:], feature_names=[*rest][::-1])
    again = av.panel(problem, fit, test=turned, **asked)
    pd.testing.assert_frame_equal(again.table, panel.table)
    one = av.panel(problem, fit, test=test.take([0], both=False), **asked)
    assert np.isnan(one.table.loc[2, "test_log_score_se"])
    assert f"size 2 {own[0]:.3f} (folds" in one.at(2).text()
    with pytest.raises(InputError, match="their order decides what y = 1 is"):
        av.panel(problem, fit, test=dataclasses.replace(test, class_names=("well", "ill")))
