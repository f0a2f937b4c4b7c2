"""The method `exact` on real problems: its choice, its draws, what it says, and going on."""

import json
from dataclasses import replace

import numpy as np
import pymc as pm
import pytest

import ardvark as av
from ardvark.common import memory
from ardvark.inference.comparison import study
from ardvark.inference.fits import activity, chains
from ardvark.inference.fits.convergence import EXACT, lacking
from ardvark.inference.fits.datatree import read, save
from ardvark.inference.fits.mixing import mixing, mixing_of
from ardvark.inference.samplers.exact.rule import RULE, SAMPLERS, pick, refusal, text
from ardvark.inference.samplers.gradient import starts
from ardvark.inference.target import length
from ardvark.inference.target.backend import FitFailed, Job
from ardvark.inference.target.length import Length, needed
from ardvark.inference.target.reasons import joined
from ardvark.inference.target.sampling import Sampling
from ardvark.inference.target.target import Target
from ardvark.models import ZOO
from tests.inference.samplers.gradient.targets import normals
from tests.support import rng, seed, z_limit

X = rng(0).normal(size=(24, 3))
Y = X[:, 0] + 0.3 * X[:, 1] > 0
SHORT = {"progressbar": False, "ess": 200.0}
SAMPLED = {"nuts": "rfvm", "gibbs": "sparse_probit"}  # a model of each sampler
each_sampler = pytest.mark.parametrize("sampler", list(SAMPLED))


def small(sampler):
    """A problem of few weights, whose posterior the sampler knows soon."""
    return av.problem(SAMPLED[sampler], X, Y, basis=[3, 10, 17] if sampler == "nuts" else None)


def fit(target, number=1, **given):
    return av.fit(target, "exact", random_seed=seed(number), **SHORT | given)


@pytest.mark.parametrize("model", [*ZOO])
def test_every_model_has_an_exact_sampler_and_the_reason_for_it(model):
    problem = av.problem(model, X, Y)
    target = Target(problem)
    assert refusal(target) is None
    picked = pick(target)
    assert SAMPLERS[picked.name].supports(target) is None
    assert picked.reason
    if problem.spec.masked:
        assert picked.name == "gibbs"


@pytest.mark.parametrize(
    ("model", "hypers", "D", "sampler"),
    [
        ("rfvm", {}, 30, "nuts"),
        ("rfvm", {}, 31, "gibbs"),
        ("pfcvm", {}, 30, "nuts"),
        ("pfcvm", {}, 31, "gibbs"),
        ("pfcvm", {"kernel": "rbf"}, 2, "gibbs"),
        ("pfcvm", {"kernel": "polynomial"}, 2, "gibbs"),
        ("jcfo", {"scale": "fixed"}, 31, "nuts"),
        ("jcfo", {}, 30, "nuts"),
        ("jcfo", {}, 31, "gibbs"),
        ("jcfo", {"kernel": "rbf"}, 2, "gibbs"),
        ("jcfo", {"degree": 2}, 2, "gibbs"),
        ("sparse_probit", {"scale": "fixed"}, 31, "gibbs"),
        ("sparse_probit", {}, 3, "gibbs"),
        ("rvm", {}, 31, "nuts"),
        ("horseshoe", {}, 3, "gibbs"),
        ("horseshoe", {}, 31, "gibbs"),
    ],
)
def test_the_choice_depends_on_model_kernel_and_size(model, hypers, D, sampler):
    x = rng(1).normal(size=(10, D))
    assert pick(Target(av.problem(model, x, x[:, 0] > 0, **hypers))).name == sampler


def test_every_row_of_the_rule_decides_some_problem_and_is_printed():
    x = {D: rng(1).normal(size=(10, D)) for D in (3, 31)}
    every = {
        "masks": ("fsklr", 3, {}),
        "horseshoe": ("horseshoe", 3, {}),
        "probit": ("sparse_probit", 3, {}),
        "other kernel": ("pfcvm", 3, {"kernel": "rbf"}),
        "fat": ("rfvm", 31, {}),
        "few": ("rfvm", 3, {}),
        "fat and learned": ("jcfo", 31, {"kernel": "linear"}),
        "not primal": ("jcfo", 3, {"kernel": "rbf"}),
        "any": ("rvm", 3, {}),
    }
    first = [
        next(row for row in RULE if row.fits(av.problem(m, x[D], x[D][:, 0] > 0, **given)))
        for m, D, given in every.values()
    ]
    assert first == list(RULE)
    lines = text().splitlines()
    assert lines[0] == "| model | sampler | measured |"
    assert {line.count("|") for line in lines} == {4}
    assert len(lines) == 2 + len(RULE)
    assert lines[2] == "| any other; binary masks | gibbs | no other applies |"
    assert lines[6].startswith("| pfcvm, rfvm; D > 3 N | gibbs |")


def test_where_the_preferred_sampler_does_not_apply_the_other_is_taken(monkeypatch):
    target = Target(av.problem("horseshoe", X, Y))
    assert pick(target).name == "gibbs"
    monkeypatch.setattr(SAMPLERS["gibbs"], "supports", lambda target: "it is a test")
    picked = pick(target)
    assert (picked.name, picked.reason) == ("nuts", "gibbs does not apply to it")


def test_where_nothing_exact_applies_there_is_one_error():
    with pm.Model() as model:
        pm.Poisson("count", 3.0)
    with pytest.raises(av.InputError, match="to this model: NUTS takes no discrete variables"):
        av.fit(model, "exact", progressbar=False)


def test_a_sampler_that_was_asked_for_and_does_not_apply_is_refused():
    problem = av.problem("fsklr", X, Y)
    with pytest.raises(av.InputError, match="sampler='nuts' does not apply: NUTS takes"):
        av.fit(problem, "exact", sampler="nuts", progressbar=False)


def test_equal_seeds_give_equal_draws_on_any_number_of_cores():
    """Of NUTS, `test_generic_backends.py` says so."""
    model, short = small("gibbs"), {"ess": 100.0, "limit": 256}
    one, other = fit(model, cores=1, **short), fit(model, cores=4, **short)
    assert one["posterior"].to_dataset().identical(other["posterior"].to_dataset())
    assert one["sample_stats"].to_dataset().identical(other["sample_stats"].to_dataset())
    another = fit(model, 2, **short)["posterior"].to_dataset()
    assert not one["posterior"].to_dataset().identical(another)


@each_sampler
def test_a_fit_says_what_it_took_and_how_it_went(sampler, capsys):
    problem = small(sampler)
    found = fit(problem, sampler=sampler, progressbar=True)
    assert capsys.readouterr().err.startswith("exact (")  # and its seconds: no terminal, one line
    attrs, went = found.attrs, found["fit"].to_dataset()
    assert (attrs["status"], attrs["ended"], attrs["reason"]) == ("finished", "converged", "")
    assert (attrs["method"], attrs["sampler"]) == ("exact", sampler)
    assert attrs["sampler_reason"] == "it was asked for"
    assert attrs["iterations"] == went["judged_iterations"].values[-1]
    stored = mixing_of(found)
    assert lacking(stored, replace(EXACT, bulk=200.0, tail=200.0)) == []
    assert went["judged_ess_bulk"].values[-1] == stored.ess_bulk.value
    # the last judgement is that of the draws that the fit holds
    assert stored.ess_bulk.value == pytest.approx(mixing(problem, found).ess_bulk.value)


def test_where_draws_are_thinned_the_stored_mixing_is_the_one_that_decided(monkeypatch):
    """The selection looks at ten times the draws, here at all, which may say otherwise."""
    for budget in ("FEATURE_BUDGET", "SAMPLE_BUDGET"):
        monkeypatch.setattr(activity, budget, 1e7)  # of all draws' effects: about 2.4e6
    monkeypatch.setattr(activity, "FEWEST", 40)
    found = fit(av.problem("fsklr", X, Y), limit=256)
    stored, went = mixing_of(found), found["fit"].to_dataset()
    assert stored.only("effect").table["ess_bulk"].isna().all()  # they were thinned
    assert found["selection"].attrs["thin_features"] == 1  # and here they were not
    assert went["judged_rhat"].values[-1] == stored.rhat.value
    lacks = joined(lacking(stored, replace(EXACT, bulk=200.0, tail=200.0)))
    assert found.attrs["reason"].startswith(lacks or "the last judgement passed")


def test_a_long_run_by_gibbs_keeps_every_so_many_th_draw_of_the_same_chain():
    target, method = Target(small("gibbs")), SAMPLERS["gibbs"]
    options, length = method.Options(tune=10), Length(limit=96, room=96)
    job = Job(seed=seed(2), chains=2)

    def run(*legs):
        with method.chains(target, options, job, length, None) as running:
            for iterations, every in legs:
                running.advance(iterations, every, lambda done: None)
            return running.read(24), running.last()

    (dense, dense_stats), last = run((96, 1))
    (thin, thin_stats), same = run((32, 1), (64, 2), (96, 4))
    for name, x in dense.items():
        np.testing.assert_array_equal(thin[name], x[:, 3::4], err_msg=name)
    for name, x in dense_stats.items():
        np.testing.assert_array_equal(thin_stats[name], x[:, 3::4], err_msg=name)
    for name, x in last.items():
        np.testing.assert_array_equal(same[name], x, err_msg=name)
    assert dense["eta"].shape[:2] == (2, 72)
    assert not np.array_equal(*dense["eta"])  # each chain has a stream of its own


@pytest.fixture(scope="module", params=["gibbs", pytest.param("nuts", marks=pytest.mark.slow)])
def resumed(request, tmp_path_factory):
    """A sampler, its problem, a run that was ended early and stored, and the one that went on.

    A run by NUTS goes on in `test_a_fit_keeps_as_many_draws_as_other_methods` too.
    """
    problem = small(request.param)
    short = fit(problem, 3, sampler=request.param, ess=1000.0, limit=256)
    path = tmp_path_factory.mktemp("exact") / "short.nc"
    save(short, path)
    return request.param, problem, read(path), av.resume(problem, short, progressbar=False)


def test_a_run_that_reached_its_limit_goes_on_from_what_it_has(resumed):
    sampler, problem, short, whole = resumed
    assert short.attrs["status"] == "not_converged"
    assert "after 256 iterations a chain; go on with ardvark.resume" in short.attrs["reason"]
    assert whole.attrs["status"] == "finished" or whole.attrs["iterations"] == 1024
    assert whole.attrs["sampler"] == sampler
    assert json.loads(whole.attrs["options"])["limit"] == 4 * 256
    assert not whole.attrs["reproducible"]
    one, again = (av.resume(problem, short, progressbar=False, limit=384) for _ in range(2))
    assert one["posterior"].to_dataset().identical(again["posterior"].to_dataset())
    assert json.loads(one.attrs["options"])["limit"] == 384
    # the draws of the short run are still there, thinned, without those that are now warm-up
    old, share = short["posterior"]["eta"].values, SAMPLERS[sampler].WARM_UP
    for more in (whole, one):
        iterations, every = more.attrs["iterations"], more.attrs["every"]
        kept = np.arange(every, iterations + 1, every)
        kept = kept[kept > share * iterations]
        if "kept_iteration" in more["fit"]:  # of more than were asked for, some are left out
            kept = more["fit"]["kept_iteration"].values
        new = more["posterior"]["eta"].values
        assert new.shape[1] == len(kept)
        from_short = kept[kept <= 256]
        where = (from_short - share * 256 - 1).astype(int)
        np.testing.assert_array_equal(new[:, : len(where)], old[:, where])
    assert len(where) == (160 if sampler == "gibbs" else 256)


def test_every_leg_of_a_run_has_random_numbers_of_its_own(monkeypatch):
    seeds, right = [], SAMPLERS["gibbs"].chains

    def chains(target, options, job, length, start):
        seeds.append(job.seed)
        return right(target, options, job, length, start)

    monkeypatch.setattr(SAMPLERS["gibbs"], "chains", chains)
    problem = small("gibbs")
    given = {"sampler": "gibbs", "chains": 2, "ess": 1e5, "progressbar": False}
    found = av.fit(problem, "exact", limit=256, random_seed=1, **given)
    for limit in (384, 512):
        found = av.resume(problem, found, progressbar=False, limit=limit)
    assert len({*seeds}) == len(seeds) == 3


def test_a_thinned_run_goes_on_where_more_draws_are_asked_for():
    """The draws that it left out are not to be had, so those of both keep their distance."""
    problem = av.problem("fsklr", X, Y)
    given = {"sampler": "gibbs", "chains": 2, "progressbar": False}
    thin = av.fit(problem, "exact", ess=100.0, draws=50, limit=768, random_seed=1, **given)
    more = av.resume(problem, thin, progressbar=False, ess=1e4, limit=1024)
    assert more.attrs["every"] == thin.attrs["every"]
    assert more["posterior"].sizes["draw"] * more.attrs["every"] <= 0.75 * more.attrs["iterations"]


def test_a_fit_keeps_as_many_draws_as_other_methods(tmp_path):
    """As many as were asked for, evenly spaced, and the mixing that is stored is theirs."""
    problem = small("nuts")
    found = fit(problem, ess=1000.0)
    assert (found.attrs["draws"], found["posterior"].sizes["draw"]) == (1000, 1000)
    assert found.attrs["iterations"] >= 1024
    at = found["fit"]["kept_iteration"].values
    assert at[-1] == found.attrs["iterations"]
    assert {*np.diff(at)} == {found.attrs["every"], 2 * found.attrs["every"]}
    assert mixing_of(found).ess_bulk.value == pytest.approx(mixing(problem, found).ess_bulk.value)
    # what was left out is counted when a run goes on
    more = av.resume(problem, found, ess=4000.0, limit=found.attrs["iterations"] * 2)
    assert more.attrs["iterations"] > found.attrs["iterations"]
    assert more.attrs["draws"] == more["posterior"].sizes["draw"]


def test_few_draws_are_counted_and_those_asked_for_are_known():
    problem = small("gibbs")
    short = fit(problem, ess=1e4, limit=256)
    assert (short.attrs["draws"], short.attrs["draws_asked"]) == (192, 1000)


def test_only_a_model_of_ones_own_starts_where_scouts_end(monkeypatch):
    """What scouts find is in the example of `scouted`; a model of the zoo needs none."""
    started = []

    def chains(target, options, job, length, start):
        started.append(start)
        raise FitFailed("this is far enough")

    monkeypatch.setattr(SAMPLERS["nuts"], "chains", chains)
    monkeypatch.setattr(starts, "scouted", lambda nuts, target, job: "where they ended")
    for target in (small("nuts"), normals(np.zeros(2), np.ones(2))):
        assert fit(target, sampler="nuts").attrs["status"] == "failed"
    assert started == [None, "where they ended"]


def test_a_model_of_ones_own_goes_on():
    model = normals(np.zeros(2), np.ones(2))
    short = fit(model, ess=4000.0, limit=256)
    assert short.attrs["status"] == "not_converged"
    more = av.resume(model, short, progressbar=False)
    assert more.attrs["iterations"] > 256


def test_memory_bounds_the_draws_of_all_chains_that_are_kept(monkeypatch):
    """Room for 600 draws a chain of the shared quantities; of all variables 512 are too many."""
    problem = av.problem("fsklr", X, Y, basis=[3, 10, 17])
    numbers = len(X) + X.shape[1] + 3  # eta, and the weights of features and samples
    monkeypatch.setattr(length, "LARGEST", 600.0 * 2 * numbers)
    given = {"sampler": "gibbs", "chains": 2, "ess": 1e5, "limit": 512}
    every = [fit(problem, keep=k, **given).attrs["every"] for k in ("shared", "all")]
    assert every == [1, 2]


def few_draws(monkeypatch, problem, draws, **given):
    """Let a fit take as much memory as so many draws of each chain need."""
    size = needed(Target(problem), Job(seed=0, **given), draws)
    monkeypatch.setattr(memory, "allowed", lambda: size)


def test_draws_are_thinned_where_memory_is_short_and_the_fit_says_so(monkeypatch, caplog):
    problem = av.problem("fsklr", X, Y)
    given = {"chains": 2, "ess": 1e5, "limit": 512, "progressbar": False, "random_seed": 1}
    whole = av.fit(problem, "exact", **given)
    assert (whole.attrs["every"], whole.attrs["reproducible"]) == (1, 1)
    few_draws(monkeypatch, problem, 300, chains=2)
    caplog.clear()
    thin = av.fit(problem, "exact", **given)
    (line,) = [r.message for r in caplog.records if "held at once" in r.message]
    assert "at most 300 draws of each chain are held at once, for " in line
    assert line.endswith("equal seeds give other draws where memory is larger.")
    assert (thin.attrs["every"], thin.attrs["reproducible"]) == (2, 0)
    np.testing.assert_array_equal(
        thin["posterior"]["eta"].values, whole["posterior"]["eta"].values[:, 1::2]
    )
    # of a run that is over before there is too much to hold, nothing was thinned
    short = av.fit(problem, "exact", **given | {"limit": 256})
    assert (short.attrs["every"], short.attrs["reproducible"]) == (1, 1)


@pytest.mark.statistical
def test_a_resumed_run_has_the_posterior_of_one_that_ran_at_once(resumed):
    sampler, problem, _, more = resumed
    at_once = fit(problem, 4, sampler=sampler, ess=1000.0, limit=1024)
    means, errors = [], []
    for tree in (more, at_once):
        eta = tree["posterior"]["eta"].values
        sizes = chains.ess(eta, "mean")
        means.append(eta.mean((0, 1)))
        errors.append(eta.std((0, 1)) / np.sqrt(sizes))
    z = (means[0] - means[1]) / np.hypot(*errors)
    # the error's own error is about 5 % at an ESS of 1000
    assert np.abs(z).max() < 1.15 * z_limit(len(z))


def test_only_a_fit_by_exact_goes_on():
    problem = small("nuts")
    other = av.fit(problem, "paper", draws=2, chains=1, restarts=1, progressbar=False)
    with pytest.raises(av.InputError, match=r"only a fit by 'exact' can go on.*by 'rfvm_vb'"):
        av.resume(problem, other)


@pytest.mark.statistical
def test_a_model_of_ones_own_is_judged_by_all_its_variables():
    found = fit(normals(np.zeros(3), np.ones(3)), ess=1000.0)
    assert (found.attrs["status"], found.attrs["sampler"]) == ("finished", "nuts")
    assert found.attrs["target_accept"] == 0.95
    assert sorted({name.split("[")[0] for name in mixing_of(found).table.index}) == ["total", "x"]
    x = found["posterior"]["x"].values
    # the mean of at least 1000 effective standard normals
    assert abs(x.mean((0, 1))).max() < z_limit(3) / np.sqrt(1000.0)


def test_a_fit_that_the_clock_ended_is_not_reused(tmp_path):
    problem, sampling = small("gibbs"), Sampling(seed=seed(5), chains=2, draws=100)
    hasty = {"exact": {"minutes": 1e-9, "ess": 100.0, "limit": 4096}}
    fits = [study.run(problem, hasty, tmp_path, sampling)["exact"] for _ in range(2)]
    assert [t.attrs["ended"] for t in fits] == ["time"] * 2
    assert fits[0].attrs["seconds_run"] != fits[1].attrs["seconds_run"]
    assert "1e-09 minutes" in fits[0].attrs["reason"]
    assert not fits[0].attrs["reproducible"]
    calm = {"exact": {"ess": 100.0, "limit": 256}}
    fits = [study.run(problem, calm, tmp_path, sampling)["exact"] for _ in range(2)]
    assert fits[0].attrs["seconds_run"] == fits[1].attrs["seconds_run"]
