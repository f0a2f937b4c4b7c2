"""The trials of the judge in their smallest form, and what their rows say."""

import dataclasses

import pytest
from scipy import stats

from lab import rows, tables
from lab.judge import judge, judge_right, judge_second, report
from lab.judge.report import CLASSES
from lab.judge.trial import CASES, Trial


@pytest.mark.parametrize(
    ("module", "kinds"),
    [
        (judge, ("narrow", "stuck chains", "lost mode")),
        (judge_second, ("tempered", "slow direction")),
    ],
)
def test_a_trial_runs_in_its_smallest_form(module, kinds, tmp_path):
    catalogue = {kind: module.TRIAL.catalogue[kind] for kind in kinds}
    small = Trial(catalogue, (), CASES[-1:], (200,), tmp_path / "pools", pool=150, reference=200)
    found = rows.computed(tmp_path / "rows.csv", small.work(seed=1))
    assert [row["kind"] for row in found] == list(kinds)
    assert all(row["right"] in report.LEVELS for row in found)
    again = dataclasses.replace(small, folder=tmp_path / "none")  # a stopped run goes on
    assert rows.computed(tmp_path / "rows.csv", again.work(seed=1))[0]["kind"] == kinds[0]
    assert not again.folder.exists()
    name = module.__name__.rpartition(".")[2]
    rows.write(tmp_path / name / "rows-1.csv", found)
    (tmp_path / report.PAGE.name).write_bytes(report.PAGE.read_bytes())
    judge.run(name, small, 1, work=tmp_path, out=tmp_path)
    right = tmp_path / f"{name}_right.csv"
    assert tables.read(right)["runs"].tolist() == [len(kinds)]
    assert f"python -m {module.__name__} --seed 1" in tables.said(right)
    assert tables.read(tmp_path / f"{name}_kinds.csv")["kind"].tolist() == list(kinds)
    assert (tmp_path / f"{name}.png").exists()


def test_real_runs_are_judged(tmp_path):
    work = judge_right.work(CASES[-2:-1], ("another seed",), seeds=1, draws=100)
    found = rows.computed(tmp_path / "rows.csv", work)
    made = judge_right.tables_of(found)
    assert made["right"]["runs"].tolist() == [1]
    assert list(made["condemned"]) == ["problem", "draws", "reason"]


def of(problem="rvm small", kind="narrow", draws=1000, **cells):
    row = {"problem": problem, "kind": kind, "draws": draws, "right": "trust", "right words": "",
           "right codes": "", "right reason": ""}  # fmt: skip
    row |= {f"level {size}": "with care" for size in range(4)}
    return row | {f"severity {size}": 0.5 * 2**size for size in range(4)} | cells


def test_a_defect_has_the_size_that_many_draws_show():
    few, many = of(**{"level 3": "trust"}), of(draws=4000, **{"severity 3": 1.5})
    (found,) = (x for x in report.told([few, many]) if (x.draws, x.size) == (1000, 3))
    assert (found.severity, found.group, found.level) == (1.5, CLASSES[1], "trust")
    made = report.of_trial([few, many])["trusted"].set_index("size of the defect")
    assert made["hits"].tolist() == [0, 1, 0]
    assert made["cases"].tolist() == [2, 4, 2]


@pytest.mark.parametrize(
    ("cells", "alarm"),
    [
        ({}, False),
        ({"right": "do not use"}, True),
        ({"right words": "good rough"}, True),
        ({"right words": "good rough", "right codes": "eta, ess"}, False),
        ({"right words": "good rough", "draws": 200}, False),
        ({"right words": "bad", "draws": 200}, True),
        ({"draws": 20}, True),
        ({"draws": 20, "right": "not judged"}, False),
    ],
)
def test_a_right_fit_is_condemned_by_more_than_few_draws(cells, alarm):
    assert report.alarm(of(**cells)) == alarm
    assert len(report.condemned([of(**cells)])) == alarm


def test_a_share_has_an_interval_of_its_problems():
    share, low, high = report.interval({"a": 0}, {"a": 36})
    assert (share, low) == (0.0, 0.0)
    assert (1.0 - high) ** 36 == pytest.approx(0.025)  # none of 36 is as likely as that
    share, low, high = report.interval({"a": 5, "b": 0}, {"a": 10, "b": 10})
    assert share == 0.25
    assert (low, high) == (0.0, 1.0)  # all in one problem of two: nothing is known


def test_the_page_has_the_stored_tables(tmp_path):
    for path in [report.PAGE, *report.PAGE.parent.glob("*.csv")]:
        (tmp_path / path.name).write_bytes(path.read_bytes())
    tables.show(tmp_path / "JUDGE.md", report.FORMATS)
    assert (tmp_path / "JUDGE.md").read_text() == report.PAGE.read_text()


def stored(name):
    return tables.read(report.PAGE.parent / f"{name}.csv")


def test_what_the_page_and_the_readme_say_first():
    page = report.PAGE.read_text().partition("## ")[0]
    wrong, right = [], []
    for name in ("judge", "judge_second"):
        by_size = stored(f"{name}_trusted").set_index("size of the defect")
        assert 0.85 < by_size["share"][CLASSES[0]] < 0.95
        wrong.append(by_size.loc[CLASSES[2], ["hits", "cases"]].astype(int))
        by_draws = stored(f"{name}_right")
        right.append(by_draws[by_draws["draws"] >= 400][["hits", "cases"]].sum())
    assert f"{wrong[0]['hits']} of {wrong[0]['cases']} were" in page
    assert f"{wrong[1]['hits']} of {wrong[1]['cases']} in a second" in page
    assert f"{right[0]['hits']} of {right[0]['cases']} was" in page
    assert f"{right[1]['hits']} of {right[1]['cases']} in the second" in page
    for counts, said in ((wrong, "at most 0.4 % of such"), (right, "at most 1.6 % of right")):
        hits, cases = (sum(c[name] for c in counts) for name in ("hits", "cases"))
        assert stats.beta.ppf(0.975, hits + 1.0, cases - hits) < float(said.split()[2]) / 100.0
        assert said in page
    readme = (report.PAGE.parents[2] / "README.md").read_text()
    cases = sum(count["cases"] for count in wrong)
    assert f"Of {cases} posteriors wrong by twice the limit or more, none was" in readme


def test_what_the_page_says_of_known_quantiles():
    known = stored("known_moments").set_index(["method", "target"])
    assert not (known.loc["exact", "off, converged"] > 3.6).any()
    assert known.loc["exact", "converged"].sum() > 0
    off = known.loc["nuts"][known.loc["nuts", "off, converged"] > 3.6]
    assert off["converged"].to_dict() == {"modes": 1}
    assert known.loc["nuts", "runs"].sum() == 30
