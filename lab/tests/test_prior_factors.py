"""The factors of the priors: what a factor changes, the error of an effect, the page's claims."""

import csv

import numpy as np
import pytest

import ardvark as av
from lab import problems, records
from lab.priors import prior_factors as pf

RECORD = records.read(records.RESULTS / "prior_factors.json")


def row(model, factor, data, fold, scores, rhat=1.0):
    key = {"model": model, "factor": factor, "data": data, "fold": fold}
    return key | {"scores": " ".join(map(str, scores)), "rhat_eta": rhat}


def test_an_effect_is_the_mean_of_paired_rows_and_of_sets():
    """A difference of means, or rows that are paired across folds, would give another error."""
    found = pf.Cells(
        [
            row("rfvm", "default", "sonar", 0, [-1.0, -2.0, -4.0]),
            row("rfvm", "slab x3", "sonar", 0, [-0.5, -1.0, -2.5]),
            row("rfvm", "default", "sonar", 1, [-9.0]),  # its pair is not there yet
            row("rfvm", "default", "heart", 0, [-1.0, -1.0]),
            row("rfvm", "slab x3", "heart", 0, [-1.0, -1.5], rhat=1.2),
        ]
    )
    one, other = ("rfvm", "slab x3"), ("rfvm", "default")
    mean, error, loose = found.effect(one, other, ("sonar",))
    assert (mean, error) == pytest.approx((1.0, 0.5 / 3**0.5))
    assert not loose
    mean, error, loose = found.effect(one, other, ("sonar", "heart"))
    assert mean == pytest.approx((1.0 - 0.25) / 2)
    assert error == pytest.approx(np.hypot(0.5 / 3**0.5, 0.25) / 2)
    assert loose
    assert found.effect(one, other, ("sonar", "messidor")) is None


def test_the_errors_of_sets_of_the_same_patients_do_not_shrink():
    names = pf.CLASSES[pf.SAME_PATIENTS]
    rows = [
        row("rfvm", factor, data, 0, scores)
        for data in names
        for factor, scores in (("default", [-1.0, -2.0]), ("slab x3", [-1.0, -1.0]))
    ]
    _, error, _ = pf.Cells(rows).effect(("rfvm", "slab x3"), ("rfvm", "default"), names)
    assert error == pytest.approx(0.5)


@pytest.mark.parametrize("model", pf.MODELS)
def test_each_factor_is_a_prior_that_the_model_takes_and_changes_what_it_names(model):
    X = np.random.default_rng(0).normal(size=(20, 12))
    y = np.arange(20) % 2
    own = av.problem(model, X, y)
    names = [factor.name for factor in pf.FACTORS if model in factor.models]
    assert len(names) == len(set(names))
    for factor in pf.FACTORS:
        if model in factor.models:
            settings = factor.change(own)
            changed = av.problem(model, X, y, **settings).hypers
            assert {k: vars(changed)[k] for k in settings} == settings
            assert any(vars(own.hypers)[k] != v for k, v in settings.items()), factor.name


def test_a_number_of_features_stays_below_their_number_and_a_scale_is_squared():
    X = np.random.default_rng(0).normal(size=(20, 12))
    y = np.arange(20) % 2
    assert pf.by(active_features=4)(av.problem("rfvm", X, y)) == {"active_features": 0.8 * 12}
    jcfo = problems.problem("jcfo", X, y)
    (scale,) = (f for f in pf.FACTORS if f.name == "feature weights' scale x10")
    ratio = scale.change(jcfo)["gamma2"] ** -0.5 / jcfo.hypers.gamma2**-0.5
    assert ratio == pytest.approx(10.0)


# --- the words of the page ------------------------------------------------------------------------


def number(title, name, column):
    (table,) = (held for held in RECORD.measured if held.title.startswith(title))
    effect, _, error = records.found(table, name, column).rstrip("*").partition(" ± ")
    return float(effect), float(error)


SEPARATE, LACKS = "nearly separate", "What a default lacks"


def clear(found):
    effect, error = found
    return effect > 2 * error


def factors_of(model):
    return [factor.name for factor in pf.FACTORS if model in factor.models]


def test_what_jcfo_and_fsklr_lack_is_mostly_the_scale_of_their_weights():
    for model, factor, share in (
        ("jcfo", "feature weights' scale x10", 0.7),
        ("fsklr", "coefficients' scale x3", 0.5),
        ("fsklr", "linear kernel", 0.5),
    ):
        lacking = number(LACKS, model, SEPARATE)
        effect = number(model, factor, SEPARATE)
        assert clear(lacking)
        assert clear(effect)
        assert effect[0] > share * lacking[0]


@pytest.mark.parametrize("model", ["rfvm", "pfcvm"])
def test_rfvm_and_pfcvm_gain_by_a_learned_scale_and_by_more_expected_weights(model):
    best = ("scale learned", "features, samples x4")
    gains = {name: number(model, name, SEPARATE) for name in factors_of(model)}
    assert set(sorted(gains, key=lambda name: -gains[name][0])[:2]) == set(best)
    assert clear(gains["features, samples x4"])
    assert gains["scale learned"][0] > 1.9 * gains["scale learned"][1]
    for name, (effect, error) in gains.items():
        assert name in best or effect < 0.02 or effect < 2 * error, name
    assert not clear(number(LACKS, model, SEPARATE))
    assert clear(number(model, "slab x3", "small tables"))


@pytest.mark.parametrize("model", ["rfvm", "pfcvm"])
def test_without_allaml_only_more_expected_weights_help_clearly(model):
    kept = (records.RESULTS.parent / "tables/prior_factors.csv").read_text()
    rows = list(csv.DictReader(kept.splitlines()))
    for factor, helps in (("scale learned", False), ("features, samples x4", True)):
        added = [
            (float(row["added"]), float(row["error"]))
            for row in rows
            if (row["model"], row["factor"]) == (model, factor)
            and row["data"] in ("golub", "leukemia_discrete")
        ]
        assert len(added) == 2
        assert clear(np.mean(added, axis=0)) == helps  # the same patients: errors do not shrink


def test_the_sets_differ_as_the_page_says():
    scores = {row[0]: dict(zip(pf.SETS, row[1:], strict=True)) for row in RECORD.measured[0].rows}
    better = {data: max(scores[m][data] for m in pf.PENALISED) for data in pf.SETS}
    for model in ("rfvm", "pfcvm"):
        assert scores[model]["leukemia_discrete"] < better["leukemia_discrete"] - 0.05
        assert abs(scores[model]["golub"] - better["golub"]) < 0.02
        assert scores[model]["allaml"] > better["allaml"]
    for model in pf.MODELS:
        lacks = [better[data] - scores[model][data] for data in pf.CLASSES["small tables"]]
        assert lacks[2] > 0.6 * sum(max(x, 0.0) for x in lacks)
        assert 0.03 <= number(LACKS, model, "small tables")[0] <= 0.06
    assert abs(better["messidor"] - scores["horseshoe"]["messidor"]) < 0.01


def test_on_colon_no_default_is_below_and_nothing_clearly_helps_three_models():
    for model in pf.MODELS:
        assert number(LACKS, model, "colon")[0] < 0
    for model in ("rfvm", "pfcvm", "jcfo"):
        for name in factors_of(model):
            assert not clear(number(model, name, "colon")), (model, name)
