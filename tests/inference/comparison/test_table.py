"""The table: each number is what its column says, checked on draws made by hand."""

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.comparison.entry import reference_of
from ardvark.inference.scoring.baselines import baselines
from ardvark.inference.scoring.columns import COLUMNS
from ardvark.inference.scoring.held_out import measures
from tests.inference.methods.foreign import paper_variables
from tests.made import drawn
from tests.support import rng

N, D = 30, 4


@pytest.fixture
def split(small_data):
    return small_data(N=40, D=D).split(0.25, random_seed=1)


@pytest.fixture
def problem(split):
    return av.problem("rfvm", split[0])


def made(problem, kind="mcmc", shift=0.0, scale=1.0, number=0, status="finished", shape=(4, 500)):
    """Return a fit with normal draws of known mean and sd."""
    generator = rng(number)
    arrays = {
        "feature_weight": np.abs(generator.normal(size=(*shape, D))),
        "eta": shift + scale * generator.normal(size=(*shape, N)),
        "sample_weight": generator.normal(size=(*shape, N)),
        "bias": generator.normal(size=shape),
        "tau": 1.0 + 1e-9 * generator.normal(size=shape),
    }
    told = {"model": problem.spec.name, "fingerprint": problem.fingerprint, "status": status}
    return drawn(arrays, kind, **told, seconds_run=1.0, seconds_compile=0.5)


def test_errors_worked_out_by_hand(problem):
    """Two components, four chains of two draws.

    The reference's own row is a noise floor, one half of its chains against the other: means 2 and
    5 of the first component, whose second half has the sd 2.5820; the second has 1 and 1.
    """
    a = [[[0.0, 0.0], [2.0, 2.0]], [[2.0, 1.0], [4.0, 1.0]]]
    b = [[[2.0, 0.0], [4.0, 0.0]], [[6.0, 2.0], [8.0, 2.0]]]
    eta = np.array(a + b)
    exact, other = made(problem), made(problem, "approximation")
    for tree, values in ((exact, eta), (other, eta + np.array([1.0, 0.0]))):
        group = xr.Dataset({"eta": (("chain", "draw", "obs"), values)})
        tree["posterior"] = xr.DataTree(group)
    table = av.compare({"a": exact, "b": other}).table
    assert [c.name for c in COLUMNS if c.name in table] == list(table)
    assert table.notna().any().all()  # what no row can fill has no column
    assert table.loc["a", "error_eta"] == pytest.approx(3.0 / np.std([2, 4, 6, 8], ddof=1))
    first = np.std([0, 2, 2, 4], ddof=1) / np.std([2, 4, 6, 8], ddof=1)
    second = np.std([0, 2, 1, 1], ddof=1) / np.std([0, 0, 2, 2], ddof=1)
    assert table.loc["a", "sd_ratio_eta"] == pytest.approx((first + second) / 2.0)
    # another fit is compared with all chains: a shift of 1 of the first component
    all_chains = np.std([0, 2, 2, 4, 2, 4, 6, 8], ddof=1)
    assert table.loc["b", "error_eta"] == pytest.approx(1.0 / all_chains)
    assert table.loc["b", "sd_ratio_eta"] == pytest.approx(1.0)


def test_the_reference_is_the_first_converged_chain(problem):
    bad = made(problem, status="not_converged")
    fits = {"q": made(problem, "approximation"), "bad": bad, "good": made(problem)}
    assert reference_of({k: fits[k] for k in ("q", "bad")}) == "bad"
    assert reference_of({"q": fits["q"]}) is None
    adopted = made(problem)
    adopted.attrs["method"] = "adopted"  # nobody knows of what its draws are
    assert reference_of({"a": adopted, **fits}) == "good"
    assert reference_of({"bad": bad, "a": adopted}) == "a"
    failed = xr.DataTree()
    failed.attrs = {"kind": "mcmc", "status": "failed", "method": "nuts"}
    assert reference_of({"failed": failed, "bad": bad}) == "bad"
    assert reference_of({"failed": failed}) is None
    found = av.compare(fits)
    assert found.reference == "good"
    assert found.table["status"].to_dict() == {
        "q": "finished", "bad": "not_converged", "good": "finished",
    }  # fmt: skip
    assert av.compare({k: fits[k] for k in ("q", "good")}, reference="q").reference == "q"


def test_coverage_in_the_table_is_counted_from_the_draws_alone(problem):
    """A narrow fit, well-centred: of the row with the least of the posterior in its interval."""
    exact, narrow = made(problem), made(problem, "approximation", scale=0.1, number=1)
    table = av.compare({"exact": exact, "narrow": narrow}, problem=problem).table
    posterior, own = (tree["posterior"]["eta"].values for tree in (exact, narrow))
    low, high = np.quantile(own, [0.05, 0.95], axis=(0, 1))
    counted = ((posterior >= low) & (posterior <= high)).mean(axis=(0, 1)).min()
    assert table.loc["narrow", "coverage_90_eta"] == pytest.approx(counted, abs=1e-12)
    assert counted < 0.2


def test_accuracy_log_score_and_baselines(problem, split):
    """A prediction worked out by hand, and the two rows of scikit-learn beside it."""
    train, test = split
    tree = made(problem)
    found = av.compare({"a": tree}, problem=problem, test=test)
    table, scores = found.table, found.scores
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
    for name in ("majority", "L1 logistic", "linear SVM"):
        assert table.loc[name, "kind"] == "baseline"
    svm = scores[scores["fit"] == "linear SVM"].set_index("measure")["value"]
    assert not {"log_score", "brier", "ece"} & set(svm.index)
    assert table.loc["linear SVM", "auc"] > 0.5
    expected = measures(test.y, mean > 0.5, p=mean)
    own = scores[scores["fit"] == "a"].set_index("measure")
    for name in ("accuracy", "log_score", "brier", "auc", "f1", "kappa", "ece"):
        assert own.loc[name, "value"] == expected[name]
        known = expected.get(f"{name}_se", np.nan)
        np.testing.assert_array_equal(own.loc[name, "se"], known)
    assert own.loc["ece", "floor"] == expected["ece_floor"]
    assert table.loc["a", "auc"] == expected["auc"]


def test_a_score_is_no_probability(split):
    """A model of squared errors: its score orders the rows, and its sign is the class."""
    train, test = split
    problem = av.problem("fs_skr", train)
    tree = av.adopt(problem, paper_variables(problem, 2, 5), "approximation")
    comparison = av.compare({"a": tree}, problem=problem, test=test)
    row = comparison.scores.set_index(["fit", "measure"])["value"]
    row = row["a"]
    score = av.predict(problem, tree, test).mean(("chain", "draw")).values
    assert row["auc"] == pytest.approx(roc_auc_score(test.y, score))
    assert row["f1"] == pytest.approx(f1_score(test.y, score > 0.0))
    assert row["accuracy"] == np.mean((score > 0.0) == test.y)
    assert not {"log_score", "brier", "ece"} & set(row.index)
    assert np.isnan(comparison.table.loc["a", "log_score"])
    with pytest.raises(InputError, match="needs held-out samples"):
        comparison.plot("reliability")


def test_the_majority_answers_always_the_same(small_data):
    """Of 3 to 1 training rows: right where the test row is of that class, and knows nothing."""
    data = small_data(N=40, D=D)
    zeros, ones = (np.flatnonzero(data.y == k) for k in (0, 1))
    train = data.take(np.r_[zeros[:5], ones[:15]])
    test = data.take(np.r_[zeros[5:9], ones[15:18]])
    row = baselines(train, test)["majority"].row
    assert row["accuracy"] == pytest.approx(3 / 7)
    assert row["log_score"] == pytest.approx((3 * np.log(0.75) + 4 * np.log(0.25)) / 7)
    assert (row["auc"], row["kappa"]) == (0.5, 0.0)
    assert row["f1"] == pytest.approx(6 / 10)  # TP 3, FP 4, FN 0
    assert row["ece"] == pytest.approx(abs(0.75 - 3 / 7))
    assert row["brier"] == pytest.approx((3 * 0.25**2 + 4 * 0.75**2) / 7)
    few = data.take(np.r_[zeros[:1], ones[:15]])
    assert list(baselines(few, test)) == ["majority"]


def scaled(X, rows):
    return (X - rows.mean(axis=0)) / rows.std(axis=0)


def refit(model, X, y, C):
    return model.set_params(C=C).fit(scaled(X, X), y)


def best_C(model, train, loss):
    """Return the C of the least mean loss over five inner folds, each scaled on its own rows."""
    folds = list(StratifiedKFold(5, shuffle=True, random_state=0).split(train.X, train.y))

    def mean_loss(C):
        losses = []
        for rows, held in folds:
            X, y = train.X[rows], train.y[rows]
            fitted = refit(model, X, y, C)
            losses.append(loss(fitted, scaled(train.X[held], X), train.y[held]))
        return np.mean(losses)

    return min(np.logspace(-3, 2, 11), key=mean_loss)


def mean_log_p(fitted, X, y):
    return fitted.predict_log_proba(X)[np.arange(len(y)), y].mean()


def test_baselines_are_fitted_on_the_training_rows_alone(small_data):
    """Fitted again by hand: the choice of C, the scaling and the fit see no test row."""
    train, test = small_data(N=60, D=D).split(0.5, random_seed=1)
    found = baselines(train, test)
    free = {"random_state": 0, "max_iter": 1_000_000, "tol": 1e-10}
    logistic = LogisticRegression(l1_ratio=1.0, solver="saga", **free)
    C = best_C(logistic, train, lambda f, X, y: -mean_log_p(f, X, y))
    fitted, X = refit(logistic, train.X, train.y, C), scaled(test.X, train.X)
    row = found["L1 logistic"].row
    assert row["log_score"] == pytest.approx(mean_log_p(fitted, X, test.y), rel=1e-6)
    assert row["accuracy"] == (fitted.predict(X) == test.y).mean()

    svm = SVC(kernel="linear")
    C = best_C(svm, train, lambda f, X, y: (f.predict(X) != y).mean())
    fitted, row = refit(svm, train.X, train.y, C), found["linear SVM"].row
    assert row["accuracy"] == (fitted.predict(X) == test.y).mean()
    assert "log_score" not in row


def test_a_sure_baseline_that_is_wrong_has_a_finite_log_score(small_data):
    """P of the true class is exactly 0 far out: the score takes the smallest normal number."""
    train = small_data(N=40, D=D)
    test = av.Dataset.from_arrays(1e6 * train.X, 1 - train.y)
    found = baselines(train, test)["L1 logistic"]
    true = np.where(test.y == 1, found.p, 1.0 - found.p)
    assert (true == 0.0).any()
    tiny = np.finfo(float).tiny
    assert found.row["log_score"] == pytest.approx(np.log(np.maximum(true, tiny)).mean(), rel=1e-6)


def test_pictures(problem):
    fits = {"exact": made(problem), "b": made(problem, "approximation", shift=0.5, number=1)}
    comparison = av.compare(fits, problem=problem)
    rows, eta = comparison.plot("forest", leading=3), comparison.plot("eta")
    labels = [t.get_text() for t in rows.legends[0].get_texts()]
    assert labels == ["exact (reference)", "b"]
    assert len(rows.axes[0].get_yticklabels()) == 3
    assert eta.axes[0].get_xlabel() == "eta under exact"
    with pytest.raises(InputError, match="kind must be one of 'eta', 'forest'"):
        comparison.plot("violin")
    assert list(comparison.pictures()) == ["eta", "forest", "samples"]
    fits["exact"]["selection"] = xr.DataTree(av.select(problem, fits["exact"]))
    shown = av.compare(fits, problem=problem).pictures()
    assert list(shown) == ["eta", "forest", "curve", "samples"]


def test_a_figure_that_fails_costs_no_other(problem, monkeypatch, caplog):
    """Whatever the error is: a report of a long run is written."""
    comparison = av.compare({"exact": made(problem), "b": made(problem, number=1)}, problem=problem)
    right = type(comparison)._picture

    def picture(self, kind):
        return 1 / 0 if kind == "eta" else right(self, kind)

    monkeypatch.setattr(type(comparison), "_picture", picture)
    assert list(comparison.pictures()) == ["forest", "samples"]
    assert "no eta figure: ZeroDivisionError: division by zero" in caplog.text


def test_rows_that_are_wrong_and_sure_stand_in_the_table(split, problem):
    """Counted from the predictions; a baseline has no draws that could be sure."""
    fits = {"a": made(problem), "point": made(problem, "point", shape=(1, 1), number=1)}
    table = av.compare(fits, problem=problem, test=split[1]).table
    for name, tree in fits.items():
        p = av.predict(problem, tree, split[1].X).values.reshape(-1, split[1].N)
        wrong = (p.mean(0) > 0.5) != split[1].y
        sure = np.abs(np.sign(np.quantile(p, [0.05, 0.95], axis=0) - 0.5).sum(0)) == 2
        assert 0 < wrong.sum() < split[1].N
        assert table.loc[name, "wrong"] == wrong.sum()
        assert table.loc[name, "wrong_sure"] == (wrong & sure).sum()
    assert table.loc["point", "wrong_sure"] == table.loc["point", "wrong"]
    assert np.isnan(table.loc["majority", "wrong_sure"])


def test_a_frame_is_matched_by_column_names(problem, split):
    """By a 3-cycle, which is not its own inverse, and with a column more in the middle."""
    tree = made(problem)
    X = pd.DataFrame(split[1].X, columns=list(split[1].feature_names))
    shuffled = X.iloc[:, [1, 2, 0, 3]]
    shuffled.insert(1, "unused", 1.0)
    a, b = av.predict(problem, tree, X), av.predict(problem, tree, shuffled)
    np.testing.assert_array_equal(a, b)
    data = av.Dataset.from_arrays(shuffled, split[1].y)
    np.testing.assert_array_equal(av.predict(problem, tree, data), a)
    with pytest.raises(InputError, match=r"lacks 1 feature\(s\)"):
        av.predict(problem, tree, X.drop(columns=X.columns[0]))
