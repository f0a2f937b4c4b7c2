"""What the first sentences of the pages of records claim in words, from the records."""

import re

import numpy as np
import pandas as pd
from scipy import stats

from lab import records

STORED = records.everything()


def frame(name, table=0):
    held = STORED[name].measured[table]
    return pd.DataFrame(held.rows, columns=held.columns)


def says(page, *sentences):
    text = (records.HERE / page).read_text().partition("| of |")[0]
    assert not [sentence for sentence in sentences if sentence not in text]


def numbers(name, goal):
    return [float(x) for x in re.findall(r"\d+\.?\d*", STORED[name].goals[goal].measured)]


def test_what_a_user_waits_for():
    says(
        "SPEED.md", "4 to 12 seconds", "up to 3.4 minutes", "not converge in 15 minutes",
        "one run of 18", "1.1 to 4.7 times", "less than half the time", "below 3 GB",
    )  # fmt: skip
    exact = frame("exact_speed-exact")
    gibbs = exact[(exact["by"] == "gibbs") & exact["model"].isin(["pfcvm", "rfvm"])]
    colon = gibbs[gibbs["data"].isin(["colon", "colon_discrete"])]["seconds"]
    assert colon.between(4, 12).all()
    genes = gibbs[gibbs["D"].isin([5966, 7129])]
    assert genes["seconds"].max() / 60 < 3.4
    assert (len(genes), (genes["ended"] == "converged").sum()) == (18, 17)
    assert set(exact[exact["D"] == 100_000]["ended"]) == {"time"}
    peers = pd.to_numeric(frame("peers-nuts")["times"])
    assert (peers.min(), peers.max()) == (1.1, 4.7)
    sampled = frame("exact_speed-samplers").pivot_table("seconds", "model", "by")
    assert (sampled["nuts"] < 0.5 * sampled["gibbs"]).all()
    memory = frame("memory")
    assert memory[memory["D"] == 7129]["GB"].max() < 3


def test_how_far_the_algorithms_are_from_what_is_possible():
    says(
        "ALGORITHMS.md", "on three of six", "less than 0.06 s",
        "at most about as the number of features",
    )  # fmt: skip
    assert max(numbers("papers_speed-rfvm", 0)) < 0.06
    assert max(numbers("papers_speed-pfcvm", 0)) < 0.06
    jcfo = frame("papers_speed-jcfo")
    first = jcfo[jcfo["what"].str.startswith("first ten iterations")]["measured"].item()
    assert max(float(x) for x in re.findall(r"[\d.]+", first)) < 0.06
    for name in ("rfvm", "pfcvm", "jcfo"):
        goals = [g for g in STORED[f"papers_speed-{name}"].goals if g.goal.startswith("growth")]
        assert [goal.met for goal in goals] == [True]
    moves = frame("gibbs_speed-moves").set_index("moves")
    assert moves["zeta ESS"]["no swaps"] < 0.01 * moves["zeta ESS"]["all"]
    settings = frame("nuts_speed-settings")
    low = settings[settings["target, tuning"] == "0.8, 400"]["divergences"]
    assert (len(low), (low > 0).sum()) == (6, 3)


def test_how_well_samplers_are_calibrated():
    says("CALIBRATION.md", "Every row of an exact sampler passes", "13 problems", "states on 6")
    assert numbers("calibration", 0)[:2] == [53.0, 53.0]
    assert STORED["calibration"].goals[1].met
    assert len(frame("exact_calibration-sbc")) == 13
    assert all(goal.met for goal in STORED["exact_rule"].goals)
    assert len(STORED["exact_rule"].goals) == 6
    scored = frame("calibration", 3)
    laplace = scored["row"].str.contains("laplace|paper")
    assert pd.to_numeric(scored[laplace]["p"]).max() < 1e-30


def test_what_the_prior_costs():
    says("PRIORS.md", "NUTS does not sample it in 1000 draws for RFVM on colon, PFCVM with the rbf")
    missed = [goal.goal for goal in STORED["sparsity-sampling"].goals if not goal.met]
    assert [goal.split(",")[0].split(" on ")[0] for goal in missed] == [
        "RFVM", "PFCVM (rbf)", "golub and allaml"
    ]  # fmt: skip
    assert STORED["estimator"].goals[0].met


def test_how_often_the_judge_is_wrong():
    says("JUDGE.md", "for its size alone: 300 right ones", "Nine in ten defects below the limit")
    says("JUDGE.md", "at most 0.4 % of such wrong", "at most 1.0 % of right ones")
    hits = {which: [numbers(name, which) for name in ("judge", "judge_second")] for which in (0, 1)}
    for which, most in ((0, 0.004), (1, 0.010)):
        wrong, cases = np.sum(hits[which], axis=0)
        assert stats.beta.ppf(0.975, wrong + 1.0, cases - wrong) < most
    for name in ("judge", "judge_second"):
        below = frame(name).set_index("size of the defect")["share"]["below the limit"]
        assert 0.85 < below < 0.95
    assert numbers("judge", 0) == [0.0, 706.0]
    assert numbers("judge_second", 0) == [0.0, 300.0]
    readme = (records.HERE.parent / "README.md").read_text()
    assert f"Of {706 + 300} posteriors wrong by twice the limit or more, none was" in readme
    assert numbers("judge_second", 1) == [0.0, 240.0]
    says("JUDGE.md", "no fit by `exact` that is off", "over one of 30 by `nuts`", "two far modes")
    known = frame("known_moments").set_index(["method", "target"])
    assert not (known.loc["exact", "off, converged"] > 3.6).any()
    assert known.loc["exact", "converged"].sum() > 0
    off = known.loc["nuts"][known.loc["nuts", "off, converged"] > 3.6]
    assert off["converged"].to_dict() == {"modes": 1}
    assert known.loc["nuts", "runs"].sum() == 30


def test_what_the_tests_see():
    says("TESTS.md", "19 passed whole", "tests were added for the others")
    assert STORED["reseed"].goals[0].measured.startswith("19 rounds passed whole")
    assert frame("hand_made")["survive"].sum() == 0
    assert STORED["interrupts"].goals[0].met


def test_what_the_search_of_fsklr_finds():
    says("FSKLR_MASKS.md", "**No.", "It predicts about as well")
    for table in (0, 4):
        held = frame("fsklr_masks", table).set_index("")
        score, error = held.loc["log score", "fsklr_savb"].split(" +- ")
        exact = held.loc["log score", "gibbs"].split(" +- ")[0]
        assert abs(float(score) - float(exact)) < float(error)
        shared = frame("fsklr_masks", table + 2)["value"]
        assert (shared[:2] < 0.6).all()


def test_what_choose_and_panel_are_worth():
    says(
        "ONE_TABLE.md", "about as good as the best candidate", "better than the full posterior",
        "On no table is a model of the zoo clearly above",
    )  # fmt: skip
    mean = STORED["one_table-choose"].goals[1]
    assert mean.met, mean.measured
    above = frame("one_table-choose")["zoo - penalised"]
    for value, error in above[above != ""].str.split(" ± ").map(lambda x: map(float, x)):
        assert value < 2.0 * error
    panels = frame("one_table-panel")
    assert (panels["panel - full"] > 0.0).all()
    assert STORED["one_table-panel"].goals[2].met
    says("ONE_TABLE.md", "so it is never narrower than that", "agrees with plain NumPy to rounding")
    assert all(goal.met for goal in STORED["panel_intervals"].goals)
