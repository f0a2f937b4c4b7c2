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
from ardvark.cli import export, studies
from ardvark.common import memory
from ardvark.inference import BACKENDS, register_backend
from ardvark.inference.fits import datatree
from ardvark.inference.methods import registry
from ardvark.models import ZOO, docs, problem
from tests.inference.comparison.quick import Prior
from tests.support import rng


@pytest.fixture
def methods(monkeypatch):
    """Methods that cost nothing, one of which claims to be exact; and no figures."""
    monkeypatch.setattr(registry, "BACKENDS", dict(BACKENDS))
    monkeypatch.setattr(av.inference.Comparison, "pictures", lambda comparison: {})
    register_backend(Prior)
    register_backend(type("Chain", (Prior,), {"NAME": "chain", "KIND": "mcmc"}))


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


def test_models_and_data_are_listed(command):
    models, data = command("models"), command("data")
    assert in_80_columns(models)
    assert in_80_columns(data)
    for name, spec in ZOO.items():
        row = next(line for line in models.stdout.splitlines() if line.startswith(f"│ {name} "))
        assert str(spec.year) in row
        assert spec.paper_method in row
    for name in ("digits38", "colon_discrete", "golub", "built-in"):
        assert name in data.stdout


@pytest.mark.usefixtures("methods")
def test_compare_on_ones_own_table(own_csv, tmp_path, command):
    out = tmp_path / "out"
    words = ["compare", "rfvm", own_csv, "--target", "diagnosis", "--test-size", 0.25]
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
    table = pd.read_csv(out / "scorecard.csv", index_col="method")
    assert list(table.index) == ["rfvm_vb", "prior", "majority", "L1 logistic", "linear SVM"]
    page = (out / "report.html").read_text()
    for text in (" ".join(done.stdout.split()), page):  # in flags, and not in Python
        assert "run the same command with --methods exact,rfvm_vb,prior" in text
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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare", "rfmv", "digits38"], "unknown model 'rfmv'. Did you mean 'rfvm'"),
        (["compare", "rfvm", "digits83"], "Did you mean 'digits38'"),
        (["compare", "digits38", "rfvm"], "the model comes first, and then the data: 'digits38'"),
        (["compare", "rfvm", "digits38", "--test-size", "1"], "to below 1, got 1"),
        (["compare", "rfvm", "digits38", "--test-size", "-0.5"], "to below 1, got -0.5"),
        (["compare", "rfvm", "digits38", "--methods", "nutz"], "unknown method 'nutz'"),
        (["compare", "rfvm", "digits38", "--set", "bias_ds=1"], "did you mean 'bias_sd'?"),
        (["compare", "rfvm", "digits38", "--set", "bias_sd"], "expected name=value"),
        (["compare", "rfvm", "digits38", "--set", "bias_sd=-1"], "finite number above 0, got -1"),
        (["compare", "rfvm", "digits38", "--option", "nuts"], "expected name=value"),
        (["compare", "rfvm", "digits38", "--option", "nots.tune=1"], "method.name=value"),
        (["compare", "rfvm", "missing.csv", "--target", "y"], "missing.csv does not exist"),
        (["compare", "rfvm", "missing.csv"], "missing.csv does not exist"),
        (["compare", "jcfo", "digits38", "--sensitivity"], "the prior of 'jcfo' has no number"),
        (
            ["compare", "rfvm", "digits38", "--sensitivity", "--methods", "paper"],
            "none of the chosen methods is a Markov chain",
        ),
        (["compare", "rfvm", "digits38", "--draws", "0"], "draws must be an integer of at least 1"),
        (
            ["compare", "rfvm", "digits38", "--effect", "0"],
            "--effect must be a finite number above",
        ),
        (["compare", "rfvm", "digits38", "--keep", "some"], "'some' is not one of"),
        (["compare", "rfvm", "digits38", "--chains", "-1"], "chains must be an integer of at lea"),
        (["compare", "rfvm", "digits38", "--seed", "-1"], "Invalid value for '--seed'"),
        (["compare", "rfvm", "digits38", "--methods", ","], "--methods is empty"),
        (["compare", "rfvm", "digits38", "--drop", "a"], "--drop applies to a file"),
        (["compare", "rfvm", "digits38", "--classes", "a,b"], "--classes applies to a file"),
        (["compare", "rfvm", ".", "--target", "y"], "is a folder; expected a file"),
        (["compare", "rfvm", "digits38", "--out", __file__], "is a file, so results cannot be"),
        (["compare", "rfvm", "digits38", "--out", f"{__file__}/a/b"], "is a file, so results"),
        (["predict", "nowhere", "new.csv"], "contains no study"),
        (["models", "--bibtex"], "--bibtex needs a model"),
        (["data", "golubb"], "Did you mean 'golub'"),
        (["data", "fetch", "golubb"], "Did you mean 'golub'"),
    ],
)
def test_bad_input_is_one_clear_line(words, message, tmp_path, command):
    done = command(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("methods")
def test_prior_sensitivity_is_a_section_and_resumes(own_csv, tmp_path, command):
    words = ["compare", "pfcvm", own_csv, "--target", "diagnosis", "--methods", "chain"]
    words += ["--draws", 50, "--chains", 2, "--out", tmp_path, "--sensitivity"]
    done = command(*words)
    assert done.returncode == 0, done.stderr
    on_one_screen(done)
    assert "Prior sensitivity: Under the other priors P(effect)" in " ".join(done.stdout.split())
    assert "<h2>Prior sensitivity</h2>" in (tmp_path / "report.html").read_text()
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "sensitivity").iterdir()}
    (tmp_path / "report.html").unlink()
    again = command(*words)
    assert again.returncode == 0, again.stderr
    assert "<h2>Prior sensitivity</h2>" in (tmp_path / "report.html").read_text()
    assert kept == {p: p.stat().st_mtime_ns for p in (tmp_path / "sensitivity").iterdir()}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "cannot be read"),
        ("{", "cannot be read"),
        ("[1, 2]", "cannot be read"),
        ("{}", "command, data, fingerprint, hypers"),
    ],
)
def test_a_study_that_cannot_be_read_is_one_line(tmp_path, command, content, message):
    (tmp_path / "study.json").write_text(content)
    again = ["compare", "rfvm", "digits38", "--methods", "paper", "--out", tmp_path]
    for words in (["panel", tmp_path], again):
        done = command(*words)
        assert done.returncode == 2
        assert message in done.stderr
        assert "study.json" in done.stderr
        assert "Delete it and run the same" in done.stderr
    assert (tmp_path / "study.json").read_text() == content


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
    fit = av.fit(mine, "chain", draws=30, chains=2, progressbar=False)
    found = export.tables(mine, None, {"own": fit})["groups"]
    assert found["method"].tolist() == ["own"]
    assert [sorted(names.split(", ")) for names in found["members"]] == [["x1", "x3"]]
    single = av.select(mine, fit)["p_active_feature"].values[[0, 2]]
    assert single.max() <= found["p_active"].item() <= single.sum()


def test_a_wrong_label_column_is_named(own_csv, command):
    done = command("compare", "rfvm", own_csv, "--target", "diagnosys")
    assert done.returncode == 2
    assert "Did you mean 'diagnosis'" in done.stderr


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


# --- what the zoo says of itself ------------------------------------------------------------------


def in_80_columns(done):
    """Return what a command printed, without its line breaks."""
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    return " ".join(done.stdout.split())


@pytest.mark.parametrize("name", list(ZOO))
def test_a_model_is_explained(command, name):
    """Its docstring with all of its words, its hyperparameters, and which methods apply."""
    spec = ZOO[name]
    said = in_80_columns(command("models", name))
    parts = docs.sections(spec.doc)
    assert list(parts) == ["", docs.PROGRAM, docs.DEPARTURES, docs.DIFFICULTIES]
    assert str(spec.year) in parts[""]
    for part in parts.values():
        assert part
        assert " ".join(part.split()) in said
    assert len(spec.Hypers.declared()) > 1
    for d in spec.Hypers.declared():
        default = "filled" if d.default is None else d.default
        heading = f"{d.name} = {default} ({d.accepts()})"
        paper = f"paper: {d.paper}" + (f"; {d.why}" if d.why else "")
        assert f"{heading} {d.meaning} {paper}" in said
    methods = re.search(r"Methods: [^.]*", said)[0]
    assert ("nuts" in methods) is not bool(spec.masked)
    assert ("Not nuts, because NUTS needs continuous variables" in said) is bool(spec.masked)
    others = {s.paper_method for s in ZOO.values()} - {spec.paper_method}
    assert not [o for o in others if f"Not {o}, because" in said]  # that goes without saying


def test_the_symbols_of_a_model_are_a_table(command):
    said = in_80_columns(command("models", "rfvm"))
    assert "│ v_d │ feature_weight │ (D,) │ relevance │" in said
    assert "`filled`: computed from the sizes of the data" in said
    assert "did you mean 'rfvm'" in command("models", "rfmv").stderr.lower()


@pytest.mark.parametrize("name", list(ZOO))
def test_a_model_is_cited(command, name):
    entry = command("models", name, "--bibtex").stdout
    assert re.fullmatch(r"@\w+\{\w+,\n(  \w+ = \{.+\},\n)+\}\n", entry)
    fields = dict(re.findall(r"  (\w+) = \{(.+)\},", entry))
    assert {"author", "title", "year"} < set(fields)
    words = " ".join(docs.sections(ZOO[name].doc)[""].split())
    for part in (fields["title"].strip("{}"), fields["year"], *fields["author"].split(" and ")):
        assert part.strip("{}") in words
    assert {"journal", "booktitle", "eprint"} & set(fields)


def test_the_papers_numbers_are_in_their_entries(command):
    entry = command("models", "pfcvm", "--bibtex").stdout
    assert "author = {Jiang and Li and {De Rijke} and Yao and Chen}" in entry
    assert "volume = {13}" in entry
    assert "doi = {10.1145/3309541}" in entry
    assert "eprint = {2402.07079}" in command("models", "rfvm", "--bibtex").stdout


def test_a_data_set_is_explained(command):
    done = command("data", "Digits38")
    assert done.returncode == 0, done.stderr
    assert "scikit-learn" in done.stdout
    assert "10 constant features" in " ".join(done.stdout.split())


def test_the_version_is_told():
    done = subprocess.run(
        [sys.executable, "-m", "ardvark", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"ardvark {av.__version__}\n"


def test_the_methods_are_listed(command):
    done = command("methods")
    in_80_columns(done)
    rows = {
        cells[1].strip(): [cell.strip() for cell in cells[2:4]]
        for cells in (line.split("│") for line in done.stdout.splitlines() if "│" in line)
    }
    assert set(rows) == set(BACKENDS)
    assert rows["exact"] == ["mcmc", "every model"]
    assert rows["nuts"] == ["mcmc", "every model without binary masks"]
    assert rows["gibbs"] == ["mcmc", "every model but pcvm, rvm"]
    assert rows["rfvm_vb"] == ["approximation", "rfvm"]
    assert rows["jcfo_em"] == ["point", "jcfo, sparse_probit"]


@pytest.mark.parametrize("name", ["nuts", "pfcvm_lp"])
def test_a_method_is_explained(command, name):
    text = in_80_columns(command("methods", name))
    backend = BACKENDS[name]
    assert text.startswith(f"{name} ({backend.KIND}): ")
    about = backend.ABOUT
    for part in (about.approximates, about.exact, about.cost):
        assert part in text
    for o in backend.Options.declared():
        assert f"{o.name} = {o.default} ({o.accepts()}) {o.meaning}" in text


def test_the_methods_for_a_problem_are_recommended(command):
    text = in_80_columns(command("methods", "--for", "fsklr", "digits38"))
    assert text.startswith("fsklr on digits38: 357 samples, 64 features, rbf kernel")
    assert "exact: samples by gibbs, because binary masks have no gradient." in text
    assert "fsklr_savb: " in text
    assert "nuts: " not in text
    wide = command("methods", "--for", "pfcvm", "digits38", "--set", "kernel=linear")
    assert "exact: samples by nuts, because" in wide.stdout
    own = in_80_columns(command("methods", "--for", "jcfo", "digits38"))
    assert "Not jcfo_em, the paper's algorithm: it has no step for a learned" in own
    assert "--set scale=fixed" in own
    fixed = command("methods", "--for", "jcfo", "digits38", "--set", "scale=fixed")
    assert "jcfo_em: The posterior of a fixed scale" in fixed.stdout
    wrong = command("methods", "--for", "fsklr", "digits39")
    assert wrong.returncode == 2
    assert "Did you mean 'digits38'" in wrong.stderr


def test_a_comparison_without_the_papers_algorithm_says_why(command):
    """Before anything is computed; where it applies, nothing is said."""
    words = ["compare", "jcfo", "digits38", "--option", "nothing=1"]
    said = " ".join(command(*words).stderr.split())
    assert "Not jcfo_em, the paper's algorithm: it has no step for a learned feature_scale" in said
    assert "--set scale=fixed" in said
    assert "with a method out of exact, advi, laplace." in said
    fixed = " ".join(command(*words, "--set", "scale=fixed").stderr.split())
    assert "Not jcfo_em" not in fixed
    assert "with a method out of exact, advi, laplace, jcfo_em." in fixed
    asked = command(*words[:3], "--methods", "paper")
    assert asked.returncode == 2
    assert "--set scale=fixed" in " ".join(asked.stderr.split())


def test_a_misspelt_method_gets_a_suggestion(command):
    done = command("methods", "rfvm_bv")
    assert done.returncode == 2
    assert "Did you mean 'rfvm_vb'" in done.stderr


def test_a_data_set_that_needs_no_download_is_said(command):
    done = command("data", "fetch", "Digits38")
    assert done.stdout == "digits38: built in; there is nothing to download\n"


@pytest.mark.parametrize("limit", ["memory", "disk"])
def test_a_study_that_is_too_large_is_refused_before_it_takes_memory(
    limit, command, tmp_path, monkeypatch
):
    if limit == "memory":
        monkeypatch.setattr(memory, "free", lambda: 1e6)
    else:
        monkeypatch.setattr(studies.shutil, "disk_usage", lambda _: SimpleNamespace(free=1e6))
    words = ["compare", "pfcvm", "digits38", "--methods", "laplace", "--set", "kernel=rbf"]
    done = command(*words, "--out", tmp_path / "a")
    assert done.returncode == 2
    assert "MB for the draws and 1 MB for the kernel" in done.stderr
    assert f"1 MB of {limit}. Ask for fewer --draws" in done.stderr
    assert not (tmp_path / "a").exists()


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
