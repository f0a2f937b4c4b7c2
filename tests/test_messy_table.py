"""From a messy CSV file to a report and a prediction, by the one command that the error prints."""

import json
import shlex
import sys

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.cli import tables
from ardvark.cli.app import main
from ardvark.inference.fits import datatree
from tests.inference.comparison.quick import Prior, registered
from tests.support import rng

pytestmark = pytest.mark.usefixtures("few_penalties")

N = 80
QUICK = ["--methods", "prior", "--draws", "50", "--chains", "2"]


@pytest.fixture(scope="module", autouse=True)
def methods():
    """Methods that cost nothing, and no figures."""
    with pytest.MonkeyPatch.context() as patch:
        registered(patch, Prior, type("Other", (Prior,), {"NAME": "other"}))
        patch.setattr(av.inference.Comparison, "pictures", lambda comparison: {})
        yield


def messy():
    """A table of 80 rows and 30 columns as people have them."""
    generator = rng(0)
    frame = pd.DataFrame(
        generator.normal(size=(N, 21)).round(3), columns=[f"marker {k}" for k in range(21)]
    )
    active = frame["marker 0"] + generator.normal(size=N) > 0
    frame.insert(0, "patient", [f"P{k:03d}" for k in range(N)])
    frame.insert(1, "visited", pd.date_range("2024-01-03", periods=N).strftime("%d.%m.%Y"))
    frame["sex"] = generator.choice(["female", "male"], N)
    frame["site"] = generator.choice(["Lund", "Oslo", "Turku"], N)
    frame["dose, mg"] = generator.normal(10, 2, N).round(1).astype(str)
    frame["sparse"] = np.where(np.arange(N) < 60, np.nan, 1.5)
    frame["batch"] = 1
    frame["note"] = [f"seen by {k // 2}" for k in range(N)]
    frame["status"] = np.where(active, "ill", "well")
    frame.loc[[5, 15, 25], "status"] = "unsure"
    frame.loc[40, "status"] = None
    frame.loc[[3, 30], "dose, mg"] = ["<5", "?"]
    frame.loc[[2, 4, 8, 50], "marker 3"] = np.nan
    frame.loc[[9, 61], "site"] = None
    frame.loc[11, "marker 7"] = np.inf
    assert frame.shape == (80, 30)
    return frame


def printed_command(stderr):
    words = shlex.split(stderr.split(":\n\n")[-1].strip())
    assert words[0] == "ardvark"
    return words[1:]


@pytest.mark.parametrize("target", [["--target", "status"], []])
def test_the_first_error_prints_the_command_that_leads_to_a_report(
    target, tmp_path, command, caplog, snapshot
):
    frame = messy()
    frame.to_csv(tmp_path / "messy.csv", index=False)
    first = command("compare", "rfvm", "messy.csv", *target, *QUICK, cwd=tmp_path)
    assert first.returncode == 2
    assert not (tmp_path / "results").exists()
    snapshot("messy-table" if target else "messy-table-without-target", first.stderr)
    report = first.stderr.split("This mends")[0]
    assert max(map(len, report.splitlines())) <= 80
    mended = printed_command(first.stderr)
    assert mended[:3] == ["compare", "rfvm", "messy.csv"]
    assert mended[mended.index("--target") + 1] == "status"
    if target != ["--target", "status"]:
        return
    assert "--drop" not in mended
    answers = ["--classes", "ill,well", "--drop", "visited,note,sparse,batch", "--na", "inf,<5,?"]
    done = command(*mended, *answers, "--test-size", 0.25)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "results" / "rfvm-messy"
    page = " ".join((folder / "report.html").read_text().split())
    for part in ("site: site=Lund, site=Oslo, site=Turku", "sex: sex=male (0 is female)"):
        assert part in page
    study = json.loads((folder / "study.json").read_text())
    assert study["cleaning"]["row_names"] == "patient"
    new = frame.tail(3).drop(columns=["status", "note", "batch"]).assign(more=1)
    new["patient"] = ["new a", "new b", "new c"]
    new.loc[79, "site"] = None
    new.to_csv(tmp_path / "new.csv", index=False)
    predicted = command("predict", folder, tmp_path / "new.csv")
    assert predicted.returncode == 0, predicted.stderr
    assert "not used: more" in caplog.text
    assert "P(well)" in predicted.stdout
    assert "new a" in predicted.stdout
    assert max(map(len, predicted.stdout.splitlines())) <= 80 + len(str(folder))
    table = pd.read_csv(folder / "predicted-new.csv", index_col="row")
    assert table.index.tolist() == ["new a", "new b", "new c"]
    assert set(table["label"]) <= {"ill", "well"}
    assert ((table["low"] <= table["P(well)"]) & (table["P(well)"] <= table["high"])).all()
    # by hand: the same rows through the Python functions
    data = av.table(tmp_path / "messy.csv", **study["table"])
    train, _ = data.split(0.25, random_seed=0)
    problem = av.problem("rfvm", train)
    fit = datatree.read(folder / "prior.nc")
    p = av.predict(problem, fit, train.clean(tmp_path / "new.csv")).mean(("chain", "draw"))
    np.testing.assert_allclose(table["P(well)"], p, rtol=1e-10)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """A folder with a study of a table, and the table."""
    folder = tmp_path_factory.mktemp("study")
    frame = messy()[["marker 0", "marker 1", "site", "status"]].dropna()
    frame = frame[frame["status"] != "unsure"]
    frame.to_csv(folder / "own.csv", index=False)
    words = ["compare", "rfvm", folder / "own.csv", "--target", "status", "--encode", "onehot"]
    words += ["--out", folder / "out", "--keep", "shared", *QUICK]
    words[words.index("prior")] = "prior,other"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["ardvark", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    return folder, frame


def predict(command, study, rows, *words):
    folder, _ = study
    rows.to_csv(folder / "new.csv", index=False)
    return command("predict", folder / "out", folder / "new.csv", *words)


def test_prediction_needs_one_fit_by_name_if_none_is_exact(study, command):
    _, frame = study
    done = predict(command, study, frame.head(2))
    assert done.returncode == 2
    assert "no exact posterior. Name the fit to predict with: --method prior" in done.stderr
    done = predict(command, study, frame.head(25), "--method", "Prior", "--out", study[0] / "p.csv")
    assert done.returncode == 0, done.stderr
    assert "The first 20 of 25 rows" in done.stdout
    assert len(pd.read_csv(study[0] / "p.csv")) == 25
    wrong = predict(command, study, frame.head(2), "--method", "nuts")
    assert "unknown fit 'nuts'" in wrong.stderr


def test_new_rows_that_cannot_be_predicted_are_one_line(study, command):
    done = predict(command, study, study[1].head(2).drop(columns="site"), "--method", "prior")
    assert done.returncode == 2
    assert "lack 1 of 3 columns: site" in done.stderr
    assert done.stderr.count("ardvark: ") == 1


def test_a_table_that_is_gone_is_one_line(study, command, tmp_path):
    folder, frame = study
    (folder / "own.csv").rename(tmp_path / "kept.csv")
    try:
        done = predict(command, study, frame.head(2), "--method", "prior")
    finally:
        (tmp_path / "kept.csv").rename(folder / "own.csv")
    assert done.returncode == 2
    assert "own.csv does not exist" in done.stderr


def test_a_study_of_a_named_data_set_predicts_as_well(command, tmp_path):
    words = ["compare", "rfvm", "digits38", "--out", tmp_path / "out", *QUICK, "--draws", 10]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    data = av.load("digits38")
    frame = pd.DataFrame(data.X[:3], columns=list(data.feature_names), index=["a", "b", "c"])
    frame.to_csv(tmp_path / "new.csv")
    done = command("predict", tmp_path / "out", tmp_path / "new.csv")
    assert done.returncode == 0, done.stderr
    table = pd.read_csv(tmp_path / "out" / "predicted-new.csv", index_col="row")
    assert table.index.tolist() == ["a", "b", "c"]
    assert "P(8)" in table


# --- the words of a command line ------------------------------------------------------------------


def test_settings_come_back_from_the_words_of_a_command():
    asked = {
        "target": "y, z",
        "drop": ["a,b", 'q"', "-c"],
        "drop_missing": True,
        "classes": ["u", "v"],
        "encode": "onehot",
        "impute": "mean",
        "row_names": "patient",
        "na": ["-999", "?"],
        "measured": ["2-Sep"],
        "reference": ["site=A", "sex=m, f"],
        "decimal": ",",
    }
    typed = ["compare", "rfvm", "my file.csv", "--drop", "x", "--target=w", "--drop-missing"]
    words = shlex.split(tables.mended_command([*typed, "--draws", "5"], asked))
    assert words[1:6] == ["compare", "rfvm", "my file.csv", "--draws", "5"]
    assert "--na=-999,?" in words
    value = {
        name: words[words.index(flag) + 1]
        for name in tables.ARGUMENTS
        if (flag := tables.flag(name)) in words and name != "drop_missing"
    }
    value |= {name: [value[name]] for name in ("drop", "measured", "reference")}
    value |= {"drop_missing": "--drop-missing" in words, "na": ["-999 , ?"]}
    rest = dict.fromkeys(("sep", "positive", "groups"))
    assert tables.declared(**value, **rest) == asked


def test_the_options_of_a_table_are_a_group_of_their_own(command):
    done = command("compare", "--help")
    assert tables.PANEL in done.stdout
    rest = done.stdout.split(tables.PANEL)[1]
    for name in tables.ARGUMENTS:
        assert f"{tables.flag(name)} " in rest
