"""The summary of a long run, the bar it has to clear, and whether two runs agree."""

import numpy as np
import pytest
import xarray as xr
from scipy import signal, stats

from lab.references import bar as reference_bar
from lab.references.bar import QUOTED, agreement, bar, summarise
from tests.support import ALARM, rng, z_limit

K = 3


def run(number, draws=4000, chains=4, memory=0.0, **groups):
    """A chain of K standard normal components, remembering itself, as a fit has it."""
    generator = rng(number)
    steps = generator.normal(size=(chains, draws + 500, K)) * np.sqrt(1.0 - memory**2)
    x = signal.lfilter([1.0], [1.0, -memory], steps, axis=1)[:, 500:]
    return fit(x, **groups)


def fit(eta, masked="", **stats):
    tree = xr.DataTree.from_dict(
        {
            "/posterior": xr.Dataset(
                {
                    "eta": (("chain", "draw", "obs"), eta),
                    "feature_weight": (("chain", "draw", "feature"), 1.0 * (eta > 0.5)),
                    "bias": (("chain", "draw"), eta[..., 0]),
                }
            ),
            "/sample_stats": xr.Dataset({n: (("chain", "draw"), v) for n, v in stats.items()}),
        }
    )
    tree.attrs["masked"] = masked
    return tree


def lines(tree, thin=40):
    return {line.what: line for line in bar(tree, summarise(tree), thin)}


@pytest.mark.statistical
def test_a_summary_is_that_of_the_draws():
    tree = run(0, memory=0.5)
    found = summarise(tree)
    assert set(found) == {"eta", "feature_weight", "bias"}
    x = tree["posterior"]["eta"].values.reshape(-1, K)
    of = {str(s): found["eta"].sel(statistic=s).values for s in found["statistic"].values}
    np.testing.assert_allclose(of["mean"], x.mean(0))
    np.testing.assert_allclose(of["sd"], x.std(0, ddof=1))
    np.testing.assert_allclose(of["q95"], np.quantile(x, 0.95, axis=0))
    # an AR(1) chain's mean has the variance (1 + m) / (1 - m) / S; its estimate is good to a tenth
    exact = np.sqrt(3.0 / len(x))
    np.testing.assert_allclose(of["mcse_mean"], exact, rtol=0.3)
    assert (np.abs(of["mean"]) < z_limit(K) * exact).all()


def test_what_never_moves_has_no_diagnostics():
    eta = np.repeat(rng(1).normal(size=(4, 50, 1)), K, axis=2)
    eta[..., 1] = 2.0
    found = summarise(fit(eta))["eta"]
    assert found.sel(statistic="mean").values[1] == 2.0
    assert np.isnan(found.sel(statistic=["mcse_mean", "ess_bulk", "rhat"]).values[:, 1]).all()
    assert not np.isnan(found.values[:, 0]).any()


@pytest.mark.statistical
def test_independent_draws_clear_the_bar():
    """16 000 draws: ESS has an sd of some hundreds, the autocorrelation one of 0.008."""
    generator = rng(2)
    still = {"diverging": np.zeros((4, 4000), bool), "energy": generator.normal(size=(4, 4000))}
    found = lines(run(3, **still))
    assert all(line.met for line in found.values()), found
    assert {"chains", "R-hat", "bulk ESS", "tail ESS", "divergences", "E-FMI"} < set(found)


def defects():
    shifted = run(4)
    shifted["posterior"]["bias"][0] += 0.5
    diverging = np.zeros((4, 4000), bool)
    diverging[2, 7] = True
    walk = rng(5).normal(size=(4, 4000)).cumsum(axis=1)
    return {
        "chains": run(4, chains=2),
        "R-hat": shifted,
        "bulk ESS": run(4, draws=500),
        "tail ESS": run(4, draws=500),
        "autocorrelation": run(4, memory=0.995),  # 0.82 at a distance of 40
        "divergences": run(4, diverging=diverging),
        "E-FMI": run(4, energy=walk),
    }


@pytest.mark.statistical
@pytest.mark.parametrize("what", list(defects()))
def test_a_defect_misses_its_line(what):
    missed = lines(defects()[what])[what]
    assert not missed.met
    assert np.isfinite(missed.value)


@pytest.mark.statistical
def test_chains_that_disagree_in_a_bit_miss_the_bar():
    """Bits of 4 x 4000 independent draws have R-hats below 1.01 with probability 1 - 1e-12.

    At 0.5 against 0.31 R-hat is 1.017 with an sd of 0.0015.
    """
    tree = run(6, masked="feature_weight")
    assert lines(tree)[QUOTED].met
    assert lines(tree)["fewest flips of a bit of feature_weight"].value > 1000
    tree["posterior"]["feature_weight"][0] = 1.0 * (tree["posterior"]["eta"][0].values > 0.0)
    line = lines(tree)[QUOTED]
    assert not line.met
    assert line.value == K


# --- two runs -------------------------------------------------------------------------------------


def stored(tree):
    """A run as it is stored: what `agreement` reads."""
    weight = tree["posterior"]["feature_weight"].values
    batches = weight[:, :3969].reshape(4 * 63, 63, K).mean(1)
    error = batches.std(0, ddof=1) / np.sqrt(len(batches))
    selection = xr.Dataset(
        {
            "p_active_feature": ("feature", weight.mean((0, 1))),
            "mcse_feature": ("feature", np.where(error > 0.0, error, np.nan)),
        },
        attrs={"batches_features": 4 * 63},
    )
    return xr.DataTree.from_dict({"/summary": summarise(tree), "/selection": selection})


@pytest.mark.statistical
@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_two_runs_of_one_posterior_agree(monkeypatch, memory):
    monkeypatch.setattr(reference_bar, "ALARM", ALARM)
    found = agreement(stored(run(7, memory=memory)), stored(run(8, memory=memory)))
    assert found["agrees"].all()
    assert found["numbers"].sum() == 2 * (K + K + 1) + K
    assert (found["z"] > 0.0).all()  # they are not one run


@pytest.mark.statistical
def test_a_difference_is_named(monkeypatch):
    """Of 16 000 draws a mean is known to 0.008 and an sd to 0.006: 0.2 is 17 standard errors."""
    monkeypatch.setattr(reference_bar, "ALARM", ALARM)
    first = stored(run(9))
    for change, names in (
        (lambda x: x + 0.2, {"mean of eta", "mean of bias", "P(active) of features"}),
        (lambda x: 1.2 * x, {"sd of eta", "sd of bias"}),
    ):
        found = agreement(first, stored(fit(change(run(10)["posterior"]["eta"].values))))
        assert names <= set(found.index[~found["agrees"]])
        assert (found.loc[sorted(names), "z"] > found.loc[sorted(names), "limit"]).all()


def test_the_limit_is_that_of_the_shorter_run():
    """Student's t with the smaller effective size less one, in whatever order the two come."""
    trees = [
        xr.DataTree.from_dict({"/summary": summarise(run(n, draws=500, memory=memory))})
        for n, memory in ((11, 0.0), (12, 0.95))
    ]
    ess = min(float(t["summary"]["bias"].sel(statistic="ess_bulk")) for t in trees)
    assert ess < 200.0
    for first, second in (trees, trees[::-1]):
        found = agreement(first, second)
        known = stats.t.isf(reference_bar.ALARM / (2 * found["numbers"].sum()), ess - 1.0)
        assert found.loc["mean of bias", "limit"] == pytest.approx(known, rel=1e-9)
        assert found.loc["sd of bias", "limit"] == pytest.approx(known, rel=1e-9)


def test_what_moved_in_one_run_only():
    """Its error is taken for both; still in both, the two must be the same."""
    z = reference_bar._z
    one, none = np.array([0.1]), np.array([np.nan])
    assert z(np.array([1.0]), np.array([0.0]), one, none) == pytest.approx(1.0 / (0.1 * 2**0.5))
    assert z(np.array([0.0]), np.array([0.0]), none, none) == 0.0
    assert z(np.array([1.0]), np.array([0.0]), none, none) == np.inf
