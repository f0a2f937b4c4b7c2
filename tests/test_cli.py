"""The command line, as a user calls it."""

import json
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.cli import compare, export, studies
from ardvark.common import memory
from ardvark.inference.fits import datatree
from ardvark.models import ZOO, docs, problem
from tests.inference.comparison.quick import Prior, registered
from tests.support import rng, seed

pytestmark = pytest.mark.usefixtures("few_penalties")


@pytest.fixture
def methods(monkeypatch):
    """Methods that cost nothing, one of which claims to be exact; and no figures."""
    registered(monkeypatch, Prior, type("Chain", (Prior,), {"NAME": "chain", "KIND": "mcmc"}))
    monkeypatch.setattr(av.inference.Comparison, "pictures", lambda comparison: {})


@pytest.fixture(scope="module")
def own_csv(tmp_path_factory):
    """A user's own table with string labels."""
    generator = rng(0)
    frame = pd.DataFrame(generator.normal(size=(40, 3)), columns=["height", "weight", "age"])
    frame["diagnosis"] = np.where(
        frame["height"].rank() + generator.normal(size=40) > 20, "ill", "well"
    )
    path = tmp_path_factory.mktemp("own") / "patients.csv"
    frame.to_csv(path, index=False)
    return path


def printed(done):
    """Return the lines of a comparison, but for the path of its report, which may be long."""
    return [line for line in done.stdout.splitlines() if not line.startswith("Report: ")]


def on_one_screen(done):
    assert len(done.stdout.splitlines()) <= 30
    assert max(map(len, printed(done))) <= 80


@pytest.mark.usefixtures("methods")
def test_compare_on_ones_own_table(own_csv, tmp_path, command, monkeypatch):
    """A path is typed as seen from here, and stored as seen from anywhere."""
    out = tmp_path / "out"
    monkeypatch.chdir(own_csv.parent)
    words = ["compare", "rfvm", own_csv.name, "--target", "diagnosis", "--test-size", 0.25]
    words += ["--methods", "paper,prior", "--draws", 50, "--chains", 2]
    words += ["--option", "paper.restarts=2"]
    words += ["--out", out]
    done = command(*words, "--set", "bias_sd=2")
    assert done.returncode == 0, done.stderr
    on_one_screen(done)
    assert "Few held-out samples" in done.stdout
    assert "L1 logistic" in done.stdout
    assert "'well'" in done.stderr
    assert "The paper's algorithm (paper) is rfvm_vb." in done.stderr
    assert re.findall(r"^(\w+) \([\d.]+ s\)$", done.stderr, re.MULTILINE) == ["rfvm_vb", "prior"]
    assert f"Results go to {out}, at most" in done.stderr
    study = json.loads((out / "study.json").read_text())
    assert study["data"] == str(own_csv.resolve())
    assert "became" in study["cleaning"]
    table = pd.read_csv(out / "scorecard.csv", index_col="method")
    assert list(table.index) == ["rfvm_vb", "prior", "majority", "L1 logistic", "linear SVM"]
    page = (out / "report.html").read_text()
    for text in (" ".join(done.stdout.split()), page):  # in flags, and not in Python
        assert "the same command with --methods exact,rfvm_vb,prior" in text
        assert "ardvark.fit(" not in text
        assert "Prior sensitivity" not in text  # nobody asked for it
    (out / "report.html").unlink()
    again = command(*words, "--set", "bias_sd=2", "--full")
    assert again.returncode == 0, again.stderr
    assert max(map(len, printed(again))) <= 80
    assert "Scorecard" in again.stdout
    assert "linear SVM" in again.stdout
    assert "ardvark compare rfvm" in page
    pd.testing.assert_frame_equal(
        table.drop(columns="seconds_run"),
        pd.read_csv(out / "scorecard.csv", index_col="method").drop(columns="seconds_run"),
    )
    # another problem does not overwrite this one
    other = command(*words, "--set", "bias_sd=3")
    assert other.returncode == 2
    assert "contains a study of another problem" in other.stderr


@pytest.mark.usefixtures("methods")
def test_prior_sensitivity_is_a_section(own_csv, tmp_path, command):
    """That refits are used again: `checks/test_sensitivity.py`."""
    words = ["compare", "pfcvm", own_csv, "--target", "diagnosis", "--methods", "chain"]
    words += ["--draws", 50, "--chains", 2, "--out", tmp_path, "--sensitivity"]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    on_one_screen(done)
    assert "Prior sensitivity: Under the other priors P(effect)" in " ".join(done.stdout.split())
    assert "<h2>Prior sensitivity</h2>" in (tmp_path / "report.html").read_text()


@pytest.mark.usefixtures("methods")
def test_a_csv_file_is_read_as_told_and_exported(tmp_path, command):
    generator = rng(1)
    frame = pd.DataFrame(generator.normal(size=(30, 2)), columns=["height", "age"])
    frame["colour"], frame["kind"] = "red", np.resize(["a", "b", "c"], 30)
    frame.loc[3, "age"] = np.nan
    frame.index = [f"p{i}" for i in range(30)]
    frame.to_csv(tmp_path / "own.csv", sep=";")
    words = ["compare", "RFVM", tmp_path / "own.csv", "--target", "kind", "--methods", "Prior"]
    words += ["--drop", "colour", "--drop-missing", "--classes", "c,a", "--out", tmp_path / "out"]
    words += ["--test-size", 0.3, "--draws", 20, "--chains", 2, "--option", "PRIOR.fail_without="]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    assert "Only 13 samples" in done.stderr
    settings = json.loads((tmp_path / "out" / "study.json").read_text())
    asked = settings["table"]
    assert (asked["drop"], asked["classes"]) == (["colour"], ["c", "a"])
    assert "Tables beside it: predictions.csv, effects.csv" in done.stdout
    tables = {p.stem: pd.read_csv(p) for p in (tmp_path / "out").glob("*.csv")}
    predictions = tables["predictions"]
    kept = frame[frame["kind"].isin(["a", "c"]) & frame["age"].notna()]
    assert set(predictions["sample"]) == set(kept.index)
    assert predictions["set"].value_counts().to_dict() == {"train": 13, "test": 6}
    y = (kept["kind"] == "a").astype(int)
    np.testing.assert_array_equal(predictions["y"], y[predictions["sample"]])
    assert predictions["label"].tolist() == kept["kind"][predictions["sample"]].tolist()
    fit = datatree.read(tmp_path / "out" / "prior.nc")
    mine, _ = studies.problem_of(settings)
    rows = kept.loc[predictions["sample"], ["height", "age"]]
    drawn = av.predict(mine, fit, rows.to_numpy()).values.reshape(-1, 19)
    p = drawn.mean(axis=0)
    np.testing.assert_allclose(predictions["prior"], p)
    ends = np.quantile(drawn, [0.05, 0.95], axis=0)
    np.testing.assert_allclose(predictions[["prior_low", "prior_high"]].T, ends)
    assert predictions["prior_label"].tolist() == np.where(p > 0.5, "a", "c").tolist()
    found, effects = fit["selection"], tables["effects"]
    assert list(effects.columns[:3]) == ["kind", "name", "method"]
    assert effects["kind"].value_counts().to_dict() == {"feature": 2, "sample": 13}
    assert set(effects["towards"]) == {"a"}
    features = effects[effects["kind"] == "feature"]
    assert features["name"].tolist() == ["height", "age"]
    for column in ("p_active", "prior", "effect", "effect_sd"):
        np.testing.assert_allclose(features[column], found[f"{column}_feature"])
    np.testing.assert_allclose(features["low"], found["effect_at_feature"][0])
    np.testing.assert_allclose(features["high"], found["effect_at_feature"][-1])


@pytest.mark.usefixtures("methods")
def test_the_size_of_an_effect_is_asked_for(own_csv, tmp_path, command):
    """The same fits at another size; the tables say which."""
    words = ["compare", "pfcvm", own_csv, "--target", "diagnosis", "--methods", "chain"]
    words += ["--draws", 50, "--chains", 2, "--out", tmp_path]
    p = {}
    for size in (0.5, 0.1):
        done = command(*words, "--effect", size)
        assert done.returncode == 0, done.stderr
        assert f"effect above {size}" in " ".join(done.stdout.split())
        table = pd.read_csv(tmp_path / "effects.csv")
        assert set(table["threshold"]) == {size}
        p[size] = table["p_active"]
    assert (p[0.1] >= p[0.5]).all()
    assert (p[0.1] > p[0.5]).any()


@pytest.mark.usefixtures("methods")
def test_groups_of_copies_are_a_table():
    """Of two copies at least one has an effect as often as the draws say."""
    X = rng(2).normal(size=(20, 3))[:, [0, 1, 0, 2]]
    mine = problem("rfvm", X, X[:, 1] > 0)
    fit = av.fit(mine, "chain", draws=30, chains=2, random_seed=seed(), progressbar=False)
    found = export.tables(mine, None, {"own": fit})["groups"]
    assert found["method"].tolist() == ["own"]
    assert [sorted(names.split(", ")) for names in found["members"]] == [["x1", "x3"]]
    single = np.rint(60.0 * av.select(mine, fit)["p_active_feature"].values[[0, 2]])  # in draws
    assert single.max() <= round(60.0 * found["p_active"].item()) <= single.sum()


@pytest.mark.usefixtures("methods")
def test_a_failed_method_makes_the_exit_code_one(own_csv, tmp_path, command):
    words = ["compare", "rfvm", own_csv, "--target", "diagnosis", "--methods", "prior,chain"]
    words += ["--draws", 20, "--out", tmp_path, "--option", "prior.fail_without=somebody"]
    done = command(*words)
    assert done.returncode == 1, done.stderr
    table = pd.read_csv(tmp_path / "scorecard.csv", index_col="method")
    assert table.loc["prior", "status"] == "failed"
    assert table.loc["chain", "status"] != "failed"  # the rest is kept
    assert (tmp_path / "chain.nc").exists()
    assert "it was told to" in done.stdout


@pytest.mark.usefixtures("methods")
def test_a_prediction_says_what_its_study_lacks(own_csv, tmp_path, command):
    """Convergence, its report, and its fits."""
    words = ["compare", "rfvm", own_csv, "--target", "diagnosis", "--methods", "chain"]
    done = command(*words, "--draws", 50, "--chains", 2, "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    rough = "The fit by chain has not converged: take its numbers as rough.\n"
    stopped = "The study was stopped before its report. To go on: ardvark compare rfvm"
    done = command("predict", tmp_path, own_csv)
    assert done.returncode == 0, done.stderr
    assert rough in done.stderr
    assert stopped not in done.stderr
    (tmp_path / "report.html").unlink()
    done = command("predict", tmp_path, own_csv)
    assert done.returncode == 0, done.stderr
    assert rough in done.stderr
    assert stopped in done.stderr
    (tmp_path / "chain.nc").unlink()
    for name in ("predict", "panel"):
        done = command(name, tmp_path, *([own_csv] if name == "predict" else []))
        assert done.returncode == 2
        assert "contains no fit yet: the study was stopped before its first" in done.stderr


@pytest.mark.usefixtures("methods")
def test_a_fit_that_has_converged_is_not_doubted(own_csv, tmp_path, command):
    words = ["compare", "rfvm", own_csv, "--target", "diagnosis", "--methods", "prior"]
    assert command(*words, "--draws", 50, "--out", tmp_path).returncode == 0
    done = command("predict", tmp_path, own_csv, "--method", "prior")
    assert done.returncode == 0, done.stderr
    assert "converged" not in done.stderr
    assert "stopped" not in done.stderr


# --- what the zoo says of itself ------------------------------------------------------------------


def in_80_columns(done):
    """Return what a command printed, without its line breaks."""
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    return " ".join(done.stdout.split())


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ("--version", 0, f"ardvark {av.__version__}\n"),
        ("models nomodel", 2, "ardvark: unknown model 'nomodel'. Known: "),
    ],
)
def test_a_process_of_its_own_tells_what_it_is_asked(words, code, told):
    """And what is wrong, without a traceback."""
    run = [sys.executable, "-m", "ardvark", *words.split()]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert told in (done.stderr if code else done.stdout)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("limit", ["memory", "disk"])
def test_a_study_that_is_too_large_is_refused_before_it_takes_memory(
    limit, command, tmp_path, monkeypatch
):
    if limit == "memory":
        monkeypatch.setattr(memory, "free", lambda: 1e6)
    else:
        monkeypatch.setattr(compare.shutil, "disk_usage", lambda _: SimpleNamespace(free=1e6))
    words = ["compare", "pfcvm", "digits38", "--methods", "laplace", "--set", "kernel=rbf"]
    done = command(*words, "--out", tmp_path / "a")
    assert done.returncode == 2
    assert "MB for the draws and 1 MB for the kernel" in done.stderr
    assert f"1 MB of {limit}. Ask for fewer --draws" in done.stderr
    assert not (tmp_path / "a").exists()
    words[words.index("laplace")] = "laplace,nuts"  # a comparison holds the fits of both
    both = command(*words, "--out", tmp_path / "a")
    one, two = (float(re.findall(r"(\d+) MB for the draws", d.stderr)[0]) for d in (done, both))
    assert two == pytest.approx(2.0 * one, abs=1.0)


@pytest.mark.parametrize("name", list(ZOO))
def test_symbol_tables_are_the_models_own_variables(name):
    """Derived from the docstring, and complete: every variable of every form, with its shape."""
    spec = ZOO[name]
    table = {n: s for s in docs.symbols(spec) for n in s.names}
    assert all(s.meaning for s in table.values())
    dims = {"(N,)": ("obs",), "(B,)": ("basis",), "(D,)": ("feature",), "()": ()}
    seen = set()
    for choice in spec.choices():
        model = problem(
            name, (np.arange(12.0).reshape(4, 3) ** 2, np.arange(4) % 2), **choice
        ).model
        for v in (*model.unobserved_RVs, *model.observed_RVs):
            if v.name.endswith("_raw") or v.name == "z_abs":  # ours: non-centred, or a size
                continue
            seen.add(v.name)
            named = tuple(map(str, model.named_vars_to_dims.get(v.name) or ()))
            if choice.get("mask_prior") == "shared" and v.name.endswith("mask_probability"):
                assert named == ()  # one probability for all bits
            else:
                assert named == dims[table[v.name].shape], v.name
    assert seen == set(table)
