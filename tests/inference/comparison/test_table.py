"""The table: each number is what its column says, checked on draws made by hand."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference.comparison.columns import COLUMNS, table_text
from ardvark.validate import InputError

N, D = 30, 4


@pytest.fixture
def split(small_data):
    return small_data(N=40, D=D).split(0.25, random_seed=1)


@pytest.fixture
def problem(split):
    return av.problem("rfvm", split[0])


def made(problem, kind="mcmc", shift=0.0, scale=1.0, seed=0, weight=None, status="ok"):
    """Return a DataTree with normal draws of known mean and sd."""
    rng = np.random.default_rng(seed)
    shape = (4, 500)
    v = np.abs(rng.normal(size=(*shape, D))) if weight is None else np.tile(weight, (*shape, 1))
    eta = shift + scale * rng.normal(size=(*shape, N))
    posterior = {
        "feature_weight": (("chain", "draw", "feature"), v),
        "sample_weight": (("chain", "draw", "basis"), rng.normal(size=(*shape, N))),
        "bias": (("chain", "draw"), rng.normal(size=shape)),
        "tau": (("chain", "draw"), np.ones(shape) + 1e-9 * rng.normal(size=shape)),
        "eta": (("chain", "draw", "obs"), eta),
    }
    groups = {"/posterior": xr.Dataset(posterior), "/sample_stats": xr.Dataset()}
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {
        "kind": kind, "status": status, "reason": "", "method": "made",
        "fingerprint": problem.fingerprint, "seconds_run": 1.0, "seconds_compile": 0.5,
    }  # fmt: skip
    return tree


def test_errors_against_the_reference(problem):
    exact, other = made(problem), made(problem, "approximation", shift=0.5, scale=2.0, seed=1)
    table = av.compare({"a": exact, "b": other}).table
    assert tuple(table.columns) == tuple(c.name for c in COLUMNS)
    # largest of 30 shifts of 0.5 sd, each seen with error sqrt((1 + 4) / 2000) = 0.05
    assert 0.5 < table.loc["b", "error_eta"] < 0.5 + 4.5 * 0.05
    assert table.loc["b", "sd_ratio_eta"] == pytest.approx(2.0, abs=0.05)
    # the reference's own row is the noise floor: halves of 1000 draws, error sqrt(2 / 1000)
    assert 0.0 < table.loc["a", "error_eta"] < 4.5 * np.sqrt(2 / 1000)
    # a Markov chain's diagnostics are not for an approximation, whose draws are independent
    assert table.loc["a", "ess_bulk"] > 0
    assert pd.isna(table.loc["b", ["rhat", "rhat_eta", "ess_bulk", "divergences"]]).all()


def test_the_reference_is_the_first_converged_chain(problem):
    bad = made(problem, status="not_converged")
    fits = {"q": made(problem, "approximation"), "bad": bad, "good": made(problem)}
    assert av.compare(fits).reference == "good"
    assert av.compare({k: fits[k] for k in ("q", "bad")}).reference == "bad"
    assert av.compare({"q": fits["q"]}).reference is None
    assert av.compare(fits, reference="q").reference == "q"


def test_selection_counts(problem):
    """A feature above 0.01 of the largest mean weight is selected; at or below it is not."""
    weight = np.array([1.0, 0.011, 0.0099, 0.0])
    row = av.compare({"a": made(problem, weight=weight)}).table.loc["a"]
    assert row["features"] == 2


def test_a_single_draw_has_no_sd(problem):
    point = made(problem, "point")
    one = xr.DataTree.from_dict(
        {
            "/posterior": point["posterior"].to_dataset().isel(chain=[0], draw=[0]),
            "/sample_stats": xr.Dataset(),
        }
    )
    one.attrs = point.attrs
    row = av.compare({"exact": made(problem), "point": one}).table.loc["point"]
    assert np.isnan(row["sd_ratio_eta"])
    assert row["error_eta"] > 0


def test_accuracy_log_score_and_baselines(problem, split):
    """A prediction worked out by hand, and the two rows of scikit-learn beside it."""
    train, test = split
    tree = made(problem)
    table = av.compare({"a": tree}, problem=problem, test=test).table
    posterior = tree["posterior"]
    w = posterior["feature_weight"].values * (posterior["sample_weight"].values @ problem.Z)
    X = (test.X - train.X.mean(0)) / train.X.std(0)
    eta = posterior["bias"].values[..., None] + w @ X.T
    # noise of sd 1 integrated by brute force over a grid
    e = np.linspace(-8, 8, 801)
    phi = np.exp(-0.5 * e**2) / np.sqrt(2 * np.pi) * (e[1] - e[0])
    sigmoid = 1 / (1 + np.exp(-(eta[:, ::50, :, None] + e)))
    p = (sigmoid @ phi).mean(axis=(0, 1))
    ours = av.predict(problem, tree, test)
    assert ours.dims == ("chain", "draw", "obs")
    np.testing.assert_allclose(ours[:, ::50].mean(("chain", "draw")), p, atol=1e-9)
    mean = ours.mean(("chain", "draw")).values
    true = np.where(test.y == 1, mean, 1 - mean)
    assert table.loc["a", "log_score"] == pytest.approx(np.log(true).mean())
    assert table.loc["a", "accuracy"] == (true > 0.5).mean()
    for name in ("L1 logistic", "linear SVM"):
        assert table.loc[name, "kind"] == "baseline"
        assert 0.5 <= table.loc[name, "accuracy"] <= 1.0
    assert pd.isna(table.loc["linear SVM", "log_score"])


def test_a_failed_fit_keeps_its_row(problem):
    failed = made(problem, status="failed")
    failed["posterior"] = xr.DataTree(xr.Dataset())
    failed.attrs["reason"] = "it ran out of luck"
    table = av.compare({"good": made(problem), "bad": failed}).table
    assert table.loc["bad", "status"] == "failed"
    assert table.loc["bad", "reason"] == "it ran out of luck"
    assert pd.isna(table.loc["bad", "error_eta"])


def test_what_cannot_be_compared(problem, small_data, split):
    other = av.problem("rfvm", small_data(seed=9))
    with pytest.raises(InputError, match="fits is empty"):
        av.compare({})
    with pytest.raises(InputError, match="different problems"):
        av.compare({"a": made(problem), "b": made(other)})
    with pytest.raises(InputError, match="unknown reference 'nats'"):
        av.compare({"nuts": made(problem)}, reference="nats")
    with pytest.raises(InputError, match="pass problem="):
        av.compare({"a": made(problem)}, test=split[1])


def test_pictures_and_page(problem, tmp_path):
    fits = {"exact": made(problem), "b": made(problem, "approximation", shift=0.5, seed=1)}
    comparison = av.compare(fits, problem=problem)
    forest, eta = comparison.plot("forest", leading=3), comparison.plot("eta")
    labels = [t.get_text() for t in forest.axes[0].get_legend().get_texts()]
    assert labels == ["exact (reference)", "b"]
    assert len(forest.axes[0].get_yticklabels()) == 3
    assert eta.axes[0].get_xlabel() == "eta under exact"
    with pytest.raises(InputError, match="kind must be one of 'forest', 'eta'"):
        comparison.plot("violin")
    page = comparison.to_html(tmp_path / "page.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "Relevance Feature and Vector Machine on small" in page
    for outside in ('src="http', "href=", "<script"):  # self-contained
        assert outside not in page


def test_the_printed_table_is_short_and_blank_where_nothing_is_known(problem):
    shown = table_text(av.compare({"a": made(problem), "q": made(problem, "point")}).table)
    assert shown.loc["draws", "a"] == "2000"
    assert shown.loc["worst R-hat", "q"] == ""
    assert float(shown.loc["worst R-hat", "a"]) < 1.05
    assert not shown.astype(str).map(lambda s: "nan" in s.lower()).to_numpy().any()


class TestPrediction:
    def test_a_frame_is_matched_by_column_names(self, problem, split):
        tree = made(problem)
        X = pd.DataFrame(split[1].X, columns=list(split[1].feature_names))
        shuffled = X[X.columns[::-1]].assign(unused=1.0)
        a, b = av.predict(problem, tree, X), av.predict(problem, tree, shuffled)
        np.testing.assert_array_equal(a, b)
        with pytest.raises(InputError, match=r"lacks 1 feature\(s\).*'x0'|lacks 1 feature"):
            av.predict(problem, tree, X.drop(columns=X.columns[0]))

    def test_wrong_inputs(self, problem, small_data, split):
        tree = made(problem)
        with pytest.raises(InputError, match="X_new has 3 features and the training data 4"):
            av.predict(problem, tree, np.ones((2, 3)))
        with pytest.raises(InputError, match="NaN or infinite"):
            av.predict(problem, tree, np.full((2, D), np.nan))
        with pytest.raises(InputError, match="this fit is of another problem"):
            av.predict(av.problem("rfvm", small_data(seed=9)), tree, split[1])
        with pytest.raises(InputError, match="rule must be one of"):
            av.predict(problem, tree, split[1], rule="mode")
        with pytest.raises(InputError, match="has no own predictor"):
            av.predict(problem, tree, split[1], rule="paper")

    def test_the_papers_own_rule(self, problem, split):
        tree = av.fit(problem, "paper", random_seed=1, progressbar=False)
        p = av.predict(problem, tree, split[1], rule="paper")
        q = av.predict(problem, tree, split[1]).mean(("chain", "draw"))
        assert p.shape == (1, 1, split[1].N)
        # eq. (24) approximates the mean over q by a probit: near, never equal
        assert 0.0 < float(np.abs(p.values[0, 0] - q.values).max()) < 0.05
