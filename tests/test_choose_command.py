"""`ardvark choose`: one screen, its files, and the errors of a table."""

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.inference.choosing.candidates import Zoo
from ardvark.inference.target.backend import FitFailed
from tests.support import rng

pytestmark = pytest.mark.usefixtures("few_penalties")


@pytest.fixture
def own_csv(tmp_path):
    generator = rng(0)
    frame = pd.DataFrame(generator.normal(size=(40, 3)), columns=["height", "weight", "age"])
    frame["state"] = np.where(frame["height"] + generator.normal(size=40) > 0, "ill", "well")
    frame.insert(0, "sex", np.where(np.arange(40) % 2, "f", "m"))
    frame.to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path / "patients.csv"


def test_a_table_is_chosen_for_on_one_screen_and_stored(own_csv, tmp_path, command):
    out = tmp_path / "out"
    words = ["choose", own_csv, "--target", "state", "--encode", "onehot", "--folds", 4]
    words += ["--candidates", "ridge,share", "--seed", 3, "--out", out]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if str(tmp_path) not in line]
    assert len(lines) <= 30
    assert max(map(len, lines)) <= 80
    data = av.table(own_csv, "state", encode="onehot")
    words = {"candidates": ["ridge", "share"], "folds": 4, "progressbar": False, "random_seed": 3}
    choice = av.choose(data, folder=out, **words)
    assert choice.sentence.split() == done.stdout.partition("\n\n")[2].split("Report:")[0].split()
    table = pd.read_csv(out / "choice.csv", index_col="candidate")
    assert set(table.index) == {"ridge", "share"}
    np.testing.assert_allclose(table["log_score"], choice.table["log_score"])
    assert (out / "choice.png").read_bytes().startswith(b"\x89PNG")
    page = (out / "choice.html").read_text()
    assert "--folds 4" in page  # the command
    assert av.choose(data, **words).table["log_score"].equals(choice.table["log_score"])


def test_the_results_of_other_data_are_not_written_over(own_csv, tmp_path, command):
    words = ["--target", "state", "--encode", "onehot", "--candidates", "share"]
    first = pd.read_csv(own_csv)
    first.to_csv(tmp_path / "own.2024.csv", index=False)
    first.head(30).to_csv(tmp_path / "own.2025.csv", index=False)
    for year in (2024, 2025, 2024):
        done = command("choose", f"own.{year}.csv", *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "results" / f"choose-own.{year}" / "choice.csv").exists()
    again = ["--out", "results/choose-own.2024"]
    done = command("choose", "own.2025.csv", *words, *again, cwd=tmp_path)
    assert done.returncode == 2
    assert "has the results of other data" in done.stderr
    (about,) = (tmp_path / "results" / "choose-own.2024").glob("*.json")
    about.write_text("{")  # of nobody knows what
    done = command("choose", "own.2024.csv", *words, *again, cwd=tmp_path)
    assert "has the results of other data" in done.stderr


def test_a_patient_is_in_one_fold(own_csv, tmp_path, command):
    frame = pd.read_csv(own_csv).assign(patient=np.repeat([f"P{k:02d}" for k in range(20)], 2))
    frame.to_csv(own_csv, index=False)
    words = ["choose", own_csv, "--target", "state", "--encode", "onehot"]
    done = command(*words)
    assert done.returncode == 2
    assert "--groups patient (its rows stay together)" in " ".join(done.stderr.split())
    words += ["--groups", "patient", "--candidates", "share", "--out", tmp_path / "out"]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    data = av.table(own_csv, "state", encode="onehot", groups="patient")
    choice = av.choose(data, candidates=["share"], progressbar=False)
    table = pd.read_csv(tmp_path / "out" / "choice.csv", index_col="candidate")
    np.testing.assert_allclose(table["log_score"], choice.table["log_score"])
    pairs = set(zip(data.groups, choice.folds[:, 0], strict=True))
    assert len(pairs) == 20  # one fold for each patient
    by_array = av.choose(
        data.X, data.y, groups=data.groups, candidates=["share"], progressbar=False
    )
    np.testing.assert_array_equal(by_array.folds, choice.folds)


def test_columns_that_are_always_in_reach_the_models(own_csv, tmp_path, command, monkeypatch):
    """By the names of the table, a column of text among them; plain classifiers have no such."""

    asked = []

    def failing(self, *_):
        asked.append(self.asked)
        raise FitFailed("its settings are all that is asked here")

    monkeypatch.setattr(Zoo, "predict", failing)
    words = ["choose", own_csv, "--target", "state", "--encode", "onehot", "--folds", 2]
    words += ["--candidates", "sparse_probit,share"]
    done = command(*words, "--always", "sex,age", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert asked == 2 * [{"model": "sparse_probit", "always": ["sex", "age"]}]
