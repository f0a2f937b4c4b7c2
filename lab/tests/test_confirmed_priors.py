"""The recommended priors: they were chosen on other sets, by what the page says of those."""

import numpy as np
import pytest

from lab import problems, records
from lab.priors import confirmed_priors as cp
from lab.priors import prior_factors as pf

DEVELOPED = records.read(records.RESULTS / "prior_factors.json")
CONFIRMED = records.read(records.RESULTS / "confirmed_priors.json")


def test_the_sets_are_in_no_table_that_the_priors_were_chosen_by():
    assert not set(cp.SETS) & set(pf.SETS)
    assert len(set(cp.SETS)) == 6


def test_every_model_has_one_recommended_prior_that_changes_its_default():
    X = np.random.default_rng(0).normal(size=(20, 12))
    y = np.arange(20) % 2
    assert len(set(cp.MODELS)) == len(cp.MODELS)
    assert {*cp.MODELS, *cp.UNCHANGED} == {*pf.MODELS, *pf.ONE_PRODUCT}
    for prior in cp.RECOMMENDED:
        for model in prior.models:
            own = problems.problem(model, X, y)
            settings = prior.change(own)
            changed = problems.problem(model, X, y, **settings).hypers
            assert {k: vars(changed)[k] for k in settings} == settings
            assert any(vars(own.hypers)[k] != v for k, v in settings.items())
    for model in cp.UNCHANGED:
        assert cp.recommended(model) is None


def effects(model):
    (table,) = (t for t in DEVELOPED.measured if t.title.startswith(f"{model}: "))
    read = [[str(cell).rstrip("*").partition(" ± ") for cell in row[1:]] for row in table.rows]
    numbers = [[(float(value), float(error)) for value, _, error in row] for row in read]
    return {row[0]: row_of for row, row_of in zip(table.rows, numbers, strict=True)}


def test_the_arguments_are_those_of_the_development_sets():
    for model in ("rfvm", "pfcvm"):
        found = effects(model)
        learned = found["scale learned"]
        assert learned[0][0] == max(row[0][0] for row in found.values())
        assert all(effect > -2 * error for effect, error in learned)
    jcfo = effects("jcfo")
    assert jcfo["feature weights' scale x3"][1] > jcfo["feature weights' scale x10"][1]
    fsklr = effects("fsklr")
    kept = {name: row for name, row in fsklr.items() if name != "linear kernel"}
    for i in range(3):
        assert kept["coefficients' scale x3"][i][0] == max(row[i][0] for row in kept.values())
    assert fsklr["linear kernel"][0] > kept["coefficients' scale x3"][0]


def test_a_cell_that_failed_is_tried_again_and_the_others_are_kept(tmp_path):
    keys = [cp.Cell("rfvm", prior, "small", 0) for prior in ("default", "scale learned")]
    fits = cp.Fits(tmp_path / "cells.csv", quick=True)
    fits.put(keys[1], fits.failure(keys[1], "killed:\n out of memory"))
    first = fits.run(keys)
    assert first[keys[0]]["scores"] != first[keys[1]]["scores"]
    assert "scale learned" in str(first[keys[1]]["settings"])
    again = fits.run(keys)
    assert again == {key: fits.get(key) for key in keys}
    assert len(fits.path.read_text().splitlines()) == 4
    for key in keys:
        assert again[key]["log_score"] == pytest.approx(first[key]["log_score"])


def cell(model, factor, data, scores, rhat=1.0):
    key = {"model": model, "factor": factor, "data": data, "fold": 0}
    return key | {"scores": " ".join(map(str, scores)), "rhat_eta": rhat}


def test_the_goals_name_what_is_worse_than_the_default_and_what_loses_on_two_sets():
    one, two = cp.SETS[:2]
    rows = [cell("l1", "default", data, [-0.1, -0.2, -0.3], None) for data in (one, two)]
    rows += [cell("jcfo", "default", data, [-0.5, -0.6, -0.8]) for data in (one, two)]
    rows += [cell("jcfo", "scale learned", one, [-0.9, -1.1, -1.2])]
    rows += [cell("jcfo", "scale learned", two, [-0.4, -0.5, -0.7], rhat=1.2)]
    rows += [cell("elastic_net", "default", data, [-0.2, -0.3, -0.4], None) for data in (one, two)]
    mixed, worse, below = cp.goals(pf.Cells(rows), rows)
    assert mixed.measured == "0.75"
    assert not worse.met
    assert f"jcfo, {one} -0.433" in worse.measured
    assert two not in worse.measured
    assert not below.met
    assert "jcfo on 2" in below.measured


# --- the words of the page ------------------------------------------------------------------------

SCORES, ADDED, LACKING = CONFIRMED.measured[1:]


def number(table, model, column):
    effect, _, error = records.found(table, model, column).rstrip("*").partition(" ± ")
    return float(effect), float(error)


def clear(found):
    effect, error = found
    return effect > 2 * error


def test_all_gain_clearly_on_genes_but_pfcvm_and_on_small_tables_fsklr_alone():
    gains = {
        title: {m for m in cp.MODELS if clear(number(ADDED, m, title))} for title in cp.CLASSES
    }
    assert gains == {"genes": set(cp.MODELS) - {"pfcvm"}, "small tables": {"fsklr"}}
    assert all(abs(number(ADDED, "pfcvm", title)[0]) < 0.005 for title in cp.CLASSES)


def test_no_recommended_prior_is_clearly_below_the_default_or_penalised_regression():
    for column in (*cp.CLASSES, *cp.SETS):
        for m in cp.MODELS:
            effect, error = number(ADDED, m, column)
            assert effect > -2 * error, (m, column)
        for m in (*cp.MODELS, *cp.UNCHANGED):
            assert not clear(number(LACKING, m, column)), (m, column)
    z = {
        (m, data): np.divide(*number(LACKING, m, data))
        for m in (*cp.MODELS, *cp.UNCHANGED)
        for data in cp.SETS
    }
    above = {data for (m, data), at in z.items() if at < -2}
    assert above == {"duke_lymph"}
    coin = round(float(np.log(0.5)), 3)
    for row in SCORES.rows:
        both = [float(x) for x in row[1 + cp.SETS.index("duke_lymph")].split(", ")]
        assert max(both) <= (coin - 0.2 if row[0] in pf.PENALISED else coin)


def test_fits_that_have_not_mixed_are_of_three_models():
    loose = {
        (row[0], data)
        for table in (ADDED, LACKING)
        for row in table.rows
        for data in cp.SETS
        if records.found(table, row[0], data).endswith("*")
    }
    assert {m for m, _ in loose} == {"rfvm", "pfcvm", "horseshoe"}
    assert not CONFIRMED.goals[0].met
