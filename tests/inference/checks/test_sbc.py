"""Simulation-based calibration itself: its p-values, and posteriors that are known, or wrong.

A right sampler fails with probability `ALARM` at most, for the p-values are corrected for the
number of quantities. A wrong one is run with more replicates than `detectable` asks for.
"""

import pickle

import numpy as np
import pytest
from scipy import stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference import BACKENDS
from ardvark.inference.checks import ranks as ranking
from ardvark.inference.checks.joint import NutsKernel
from ardvark.inference.checks.replicates import Trial, draw_basis_labels
from ardvark.inference.checks.sbc import relabelled
from ardvark.inference.methods import registry
from tests.inference.checks.toy import Conjugate, make_toy, sbc
from tests.support import ALARM, rng, seed, z_limit


@pytest.fixture
def toy():
    return make_toy()


# --- what is looked at ----------------------------------------------------------------------------


def test_quantities_by_hand():
    """Three points at once; five samples, four centres, three features, and latent noise."""
    problem = av.problem("rfvm", (rng(1).normal(size=(5, 3)), np.arange(5) % 2), basis=[3, 0, 4, 1])
    points = [problem.simulate(rng(number)) for number in range(3)]
    names = ranking.shared_names(problem, points[0], {**points[0], "other": 1})
    assert set(names) >= {"feature_weight", "sample_weight", "bias", "tau", "u", "eta"}
    assert "y" not in names
    y = np.array([1, 1, 0, 1, 0])
    stack = {n: np.stack([p[n] for p in points]) for n in points[0]}
    found = ranking.quantities(problem, stack, y, names)
    for k, p in enumerate(points):
        product = p["feature_weight"] * sum(
            a * z for a, z in zip(p["sample_weight"], problem.Z, strict=True)
        )
        want = {
            "bias": p["bias"],
            "feature_weight[0]": p["feature_weight"][0],
            "sample_weight[3]": p["sample_weight"][3],
            "product[2]": product[2],
            "mean |product|^1/2": np.mean([abs(v) ** 0.5 for v in product]),
            "mean s u": np.mean([v if label else -v for v, label in zip(p["u"], y, strict=True)]),
        }
        for name, value in want.items():
            assert found[name][k] == pytest.approx(value, abs=1e-9), name
        of_labels = problem.spec.log_predictive(y, p["eta"], p, problem.hypers)
        assert found["log likelihood"][k] == pytest.approx(of_labels.sum(), abs=1e-9)
        assert found["log likelihood[0]"][k] == pytest.approx(of_labels[0], abs=1e-9)
    assert not {"bias[0]", "feature_weight[1]", "feature_weight[3]"} & set(found)


def test_basis_labels_of_a_replicate():
    data = (rng(1).normal(size=(40, 2)), np.arange(40) % 2)
    pcvm, rvm = (av.problem(name, data, basis=range(30)) for name in ("pcvm", "rvm"))
    coins = draw_basis_labels(pcvm, rng(2))
    assert coins.shape == (30,)
    assert set(coins) == {-1.0, 1.0}
    assert draw_basis_labels(rvm, rng(2)) is None
    y = 1 - pcvm.y
    model = relabelled(pcvm, y, coins).fitted_model
    np.testing.assert_array_equal(model["label"].get_value(), y)
    np.testing.assert_array_equal(model["basis_labels"].get_value(), coins)


# --- the p-values ---------------------------------------------------------------------------------


@pytest.mark.statistical
def test_p_values_of_uniform_ranks():
    """P(p < a) <= a: two Kolmogorov-Smirnov tests share the level.

    And not much less: it is at least a / 2, the first test's share. Exact binomial tests.
    """
    runs = 500
    p = np.array([ranking.uniformity(u) for u in rng(0).random((runs, 60))])
    for level in (0.01, 0.1, 0.5):
        count = int((p < level).sum())
        assert stats.binomtest(count, runs, level, "greater").pvalue > ALARM / 6
        assert stats.binomtest(count, runs, level / 2, "less").pvalue > ALARM / 6


def test_holm_by_hand():
    adjusted = ranking.holm(np.array([0.03, 0.01, 0.04, 0.9]))
    np.testing.assert_allclose(adjusted, [0.09, 0.04, 0.09, 0.9])


@pytest.mark.statistical
@pytest.mark.parametrize("kind", ["normal", "bit", "count"])
@pytest.mark.parametrize("L", [1, 20])
def test_ranks_are_uniform_with_ties_broken_at_random(kind, L):
    generator = rng(1)
    size = (2000, L + 1, 1)
    draw = {
        "normal": lambda: generator.standard_cauchy(size),
        "bit": lambda: generator.binomial(1, 0.3, size).astype(float),
        "count": lambda: generator.binomial(4, 0.2, size).astype(float),
    }[kind]
    values = draw()
    u = np.array([ranking.rank(v[0], v[1:], generator)[0] for v in values])
    assert ranking.uniformity(u) > ALARM
    # negative control: ties always count as below. With L = 1 they are 0.35 of the counts, and u
    # is then below 1/2: 0.17 too often, 15 times the standard error of 2000 (more for the others)
    below = np.array([((v[1:] < v[0]).sum() + generator.random()) / (L + 1) for v in values])
    assert (ranking.uniformity(below) > ALARM) == (kind == "normal")


def normal_ranks(generator, replicates, *, shift=0.0, factor=1.0):
    """Ranks of z ~ N(0, 1) among draws of N(shift, factor^2): a posterior wrong by that much."""
    z = generator.normal(size=(replicates, 1))
    others = generator.normal(shift, factor, (replicates, 100))
    return ((others < z).sum(1) + generator.random(replicates)) / 101


@pytest.mark.statistical
@pytest.mark.parametrize("wrong", [{"factor": 1.2}, {"factor": 1 / 1.2}, {"shift": 0.25}])
def test_a_posterior_20_percent_too_wide_or_a_quarter_sd_off_is_caught(wrong):
    """The distribution functions are 0.08 apart: seven standard errors at 8000 replicates.

    The limit is at three, and the distance has a standard deviation of half of one.
    """
    generator = rng(2)
    right, bad = (normal_ranks(generator, 8000, **w) for w in ({}, wrong))
    tests = 20  # as if one of twenty quantities
    assert tests * ranking.uniformity(right) > ALARM
    assert tests * ranking.uniformity(bad) < ALARM
    folded = np.abs(2 * bad - 1).mean() - 0.5
    if "factor" in wrong:
        assert np.sign(folded) == np.sign(1.0 - wrong["factor"])


@pytest.mark.statistical
def test_what_is_detectable_is_detected_half_of_the_time():
    """The critical value is the supremum's: the power at that effect is a half and more (0.75).

    At half the effect it is below 0.1 (0.02). Exact binomial tests over 200 runs.
    """
    generator = rng(3)
    replicates, tests, level, runs = 200, 20, 1e-4, 200
    shift, factor = ranking.detectable(replicates, tests, level)

    def caught(**wrong):
        ranks = (normal_ranks(generator, replicates, **wrong) for _ in range(runs))
        return sum(tests * ranking.uniformity(u) < level for u in ranks)

    for full, half in (
        ({"shift": shift}, {"shift": shift / 2}),
        ({"factor": factor}, {"factor": np.sqrt(factor)}),
    ):
        assert stats.binomtest(caught(**full), runs, 0.5, "less").pvalue > ALARM / 4
        assert stats.binomtest(caught(**half), runs, 0.1, "greater").pvalue > ALARM / 4
    assert ranking.detectable(10 * replicates, tests) < (shift, factor)


# --- a model whose posterior is known -------------------------------------------------------------


@pytest.fixture
def conjugate(monkeypatch):
    monkeypatch.setattr(registry, "BACKENDS", dict(BACKENDS))
    av.inference.register_backend(Conjugate)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("wrong", "sizes", "quantity"),
    [
        ({}, {}, None),
        ({"factor": 2.5}, {}, "theta"),
        ({"deaf": True}, {}, "log likelihood"),
        # one frozen set of draws: nothing is wrong on average over seeds, but there is one seed
        ({"seeded": False}, {"draws": 3, "chains": 1}, None),
    ],
)
def test_sbc_of_a_known_posterior(toy, conjugate, wrong, sizes, quantity):
    """Over twelve seeds -log10 of a wrong posterior's p-value is 29, 48, 31 on average.

    Its standard deviation is 4, and the limit is at 5.5.
    """
    replicates = 200
    settings = {"replicates": replicates, "random_seed": seed()}
    found = sbc(toy, "conjugate", **settings, **sizes, **wrong)
    assert found.failed == 0
    assert found.ranks.shape == (replicates, len(found.names))
    assert set(found.names) >= {"theta", "bit", "eta[0]", "eta[3]", "log likelihood"}
    assert (found.p_value > ALARM) == (not wrong)
    if quantity:
        assert quantity in found.table.index[:3]
    if "factor" in wrong:
        assert found.table.loc["theta", "width"] < 0.5
    if "deaf" in wrong:  # what does not look at y sees nothing
        assert found.table.loc[["theta", "bit"], "p_value"].min() > ALARM / 2
    np.testing.assert_array_equal(toy.model["label"].get_value(), toy.y)  # its own labels again


@pytest.mark.statistical
def test_a_chain_is_thinned_by_its_memory(toy, conjugate, monkeypatch):
    """Right draws that remember each other give ranks that are not uniform, unless thinned.

    Unthinned, -log10 p is 30 on average over twelve seeds with a standard deviation of 7, and the
    smallest 19: two chains of 200 that remember 1000 are two draws, counted as a hundred.
    """
    settings = {"replicates": 200, "memory": 0.999, "chains": 2, "draws": 200}
    settings["random_seed"] = seed()
    found = sbc(toy, "conjugate", **settings)  # taken as independent
    assert found.p_value < ALARM
    assert set(found.draws) == {100}
    monkeypatch.setattr(Conjugate, "KIND", "mcmc")
    found = sbc(toy, "conjugate", **settings)
    assert found.p_value > ALARM
    # half of the effective draws, of which there are one or two, overestimated by short chains
    assert np.median(found.draws) < 10


# --- refusals, storage, processes -----------------------------------------------------------------


def test_bad_calls_are_refused_before_any_work(toy, conjugate, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def refused(match, method="conjugate", error=InputError, **settings):
        with pytest.raises(error, match=match):
            sbc(toy, method, folder=out, **settings)

    refused("unknown method 'conjugat'", method="conjugat")
    refused("does not apply", method="nuts")  # the toy has a bit
    refused("has no option 'factors'", error=TypeError, factors=2)
    refused("replicates must be", replicates=0)
    refused("was registered in this process.*processes=1", processes=2)
    monkeypatch.setattr(Conjugate, "KIND", "point")
    refused("is a point: it returns no draws")
    with pytest.raises(InputError, match="toy has no NUTS kernel"):
        NutsKernel(toy)
    assert not out.exists()


def test_sbc_is_resumed(toy, conjugate, tmp_path):
    whole = sbc(toy, "conjugate", replicates=5)
    sbc(toy, "conjugate", replicates=2, folder=tmp_path)
    resumed = sbc(toy, "conjugate", replicates=5, folder=tmp_path)
    np.testing.assert_array_equal(resumed.ranks, whole.ranks)
    assert len(list(tmp_path.iterdir())) == 1
    for other in ({"factor": 2.0}, {"random_seed": 1}, {"draws": 20}):
        found = sbc(toy, "conjugate", replicates=2, folder=tmp_path, **other)
        assert not np.array_equal(found.ranks, whole.ranks[:2])
    assert len(list(tmp_path.iterdir())) == 4


def rfvm_problem():
    return av.problem("rfvm", (rng(11).normal(size=(8, 3)), np.arange(8) % 2))


@pytest.mark.slow
def test_processes_give_the_same_numbers(tmp_path, caplog):
    problem = rfvm_problem()
    settings = {"draws": 50, "chains": 1, "replicates": 6}
    two = sbc(problem, "paper", processes=2, folder=tmp_path, **settings)
    one = sbc(problem, "paper", **settings)
    np.testing.assert_array_equal(one.ranks, two.ranks)
    assert not caplog.records


def test_a_replicate_is_the_same_in_any_process_and_order(monkeypatch):
    """What another process gets is a copy, and does replicates of its own."""
    monkeypatch.setattr(Trial, "calibration", lambda trial, *_: trial)
    trial = sbc(rfvm_problem(), "paper", draws=50, chains=1)
    here, there = trial.start(), pickle.loads(pickle.dumps(trial)).start()
    rows = {r: here(r) for r in (0, 1, 2)}
    for r in (2, 0):
        assert there(r)["u"] == rows[r]["u"]
    assert rows[0]["u"] != rows[1]["u"]
    assert {"tau", "product[0]", "u[0]", "log likelihood"} <= set(rows[0]["u"])


def test_a_fit_that_has_not_converged_is_ranked_and_counted(tmp_path):
    """`exact` ends after two judgements, of which the second is at 384 iterations."""
    problem = av.problem("sklr", (rng(12).normal(size=(8, 3)), np.arange(8) % 2))
    for _ in ("computed", "stored"):
        found = sbc(problem, "exact", replicates=2, limit=256, folder=tmp_path)
        assert found.unconverged == len(found.ranks) == 2
        assert "2 replicates, of which 2 have not converged" in found.text()
    assert sbc(problem, "exact", replicates=2, ess=100.0).unconverged == 0


@pytest.mark.statistical
def test_an_approximation_is_scored():
    """RFVM's variational Bayes, without a compilation: its posteriors of eta are too narrow.

    The mean of |2u - 1| of two of them is near 0.68, 4 standard errors beyond the limit.
    """
    settings = {"draws": 50, "chains": 1, "random_seed": seed(), "replicates": 200}
    found = sbc(rfvm_problem(), "paper", **settings)
    assert found.failed == 0
    width = found.table.loc[[name for name in found.table.index if "eta[" in name], "width"]
    assert width.mean() - 0.5 > z_limit() * np.sqrt(1.0 / 12.0 / 200)
