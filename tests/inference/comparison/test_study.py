"""A study in a folder: finished fits are kept, a killed run goes on, a failure stays alone."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.inference import BACKENDS, fitting, read
from ardvark.inference.backend import FitFailed
from ardvark.inference.comparison import study
from ardvark.validate import InputError
from tests.inference.comparison.quick import Prior
from tests.support import rng

METHODS = {"prior": {}, "other": {}}
SMALL = {"draws": 50, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Two methods that take no time; what a study keeps does not depend on the method."""
    monkeypatch.setattr(fitting, "BACKENDS", dict(BACKENDS))
    av.register_backend(Prior)
    av.register_backend(type("Other", (Prior,), {"NAME": "other"}))


def fails(error):
    def fit(*args, **kwargs):
        raise error

    return fit


def test_finished_fits_are_used_again(problem, tmp_path, monkeypatch):
    first = study.run(problem, METHODS, tmp_path, **SMALL)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["other.nc", "prior.nc"]
    monkeypatch.setattr(study.fitting, "fit", fails(AssertionError("computed again")))
    again = study.run(problem, METHODS, tmp_path, **SMALL)
    for name in METHODS:
        assert again[name].attrs["status"] == "finished"
        assert again[name].identical(first[name])


def test_the_order_of_the_methods_is_told(problem, tmp_path, capsys):
    study.run(problem, METHODS, tmp_path, **{**SMALL, "progressbar": True})
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("method")]
    assert told == ["method 1 of 2: prior", "method 2 of 2: other"]


@pytest.mark.parametrize(
    "change",
    [
        {"draws": 40},
        {"random_seed": 2},
        {"keep": "shared"},
        {"methods": {"prior": {"fail_without": "3"}}},
    ],
)
def test_anything_else_is_computed_again(problem, tmp_path, change):
    study.run(problem, {"prior": {}}, tmp_path, **SMALL)
    before = read(tmp_path / "prior.nc").attrs["request"]
    methods = change.get("methods", {"prior": {}})
    settings = {**SMALL, **{k: v for k, v in change.items() if k != "methods"}}
    study.run(problem, methods, tmp_path, **settings)
    assert read(tmp_path / "prior.nc").attrs["request"] != before


def test_another_form_of_one_posterior_is_computed_again(problem, dataset, tmp_path):
    """Equal fingerprints, so one folder; but `lp` and the variables are those of the form."""
    study.run(problem, {"prior": {}}, tmp_path, **SMALL)
    other = av.problem("rfvm", dataset, parametrization="marginal")
    assert other.fingerprint == problem.fingerprint
    fit = study.run(other, {"prior": {}}, tmp_path, **SMALL)["prior"]
    assert fit.attrs["form"] == other.form != problem.form


def test_a_damaged_file_is_computed_again(problem, tmp_path, caplog):
    study.run(problem, {"prior": {}}, tmp_path, **SMALL)
    (tmp_path / "prior.nc").write_bytes(b"cut short")
    fits = study.run(problem, {"prior": {}}, tmp_path, **SMALL)
    assert "cannot be read" in caplog.text
    assert fits["prior"].attrs["status"] == "finished"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ZeroDivisionError("a bug"), "ZeroDivisionError: a bug"),
        # one that `fit` itself turns into a failed fit, with the request it answers
        (FitFailed("no mode found"), "no mode found"),
    ],
)
def test_one_failure_loses_nothing_and_is_tried_again(
    problem, tmp_path, monkeypatch, caplog, error, reason
):
    with monkeypatch.context() as patch:
        patch.setattr(fitting.BACKENDS["other"], "fit", fails(error))
        fits = study.run(problem, METHODS, tmp_path, **SMALL)
    assert fits["other"].attrs["status"] == "failed"
    assert fits["other"].attrs["reason"] == reason
    assert fits["prior"].attrs["status"] == "finished"
    assert "other" in caplog.text
    table = study.summarise(tmp_path, problem, fits, progressbar=False).table
    assert table.loc["other", "status"] == "failed"
    assert read(tmp_path / "other.nc").attrs["status"] == "failed"
    assert study.run(problem, METHODS, tmp_path, **SMALL)["other"].attrs["status"] == "finished"


def test_a_method_that_does_not_apply_is_refused_before_anything_runs(dataset, tmp_path):
    problem = av.problem("rfvm", dataset, latent_noise="none")
    with pytest.raises(InputError, match="'rfvm_vb' does not apply"):
        study.run(problem, {"prior": {}, "paper": {}}, tmp_path / "out", **SMALL)
    with pytest.raises(TypeError, match="no option 'fail_withou'"):
        study.run(problem, {"prior": {"fail_withou": "2"}}, tmp_path / "out", **SMALL)
    assert not (tmp_path / "out").exists()


def test_a_folder_belongs_to_one_problem(problem, tmp_path):
    study.write_settings(tmp_path, {"fingerprint": "one", "command": "ardvark compare a b"})
    with pytest.raises(InputError, match=r"another problem \(ardvark compare a b\)"):
        study.write_settings(tmp_path, {"fingerprint": "two", "command": ""})
    assert study.read_settings(tmp_path)["fingerprint"] == "one"
    with pytest.raises(InputError, match="holds no fit of this problem"):
        study.load_fits(tmp_path, problem)
    with pytest.raises(InputError, match="holds no study"):
        study.read_settings(tmp_path / "elsewhere")


def test_a_killed_run_goes_on(tmp_path):
    """Kill the command as soon as its first fit is on disk; the same command ends the work."""
    out, table = tmp_path / "out", tmp_path / "own.csv"
    X = rng(0).normal(size=(20, 3))
    pd.DataFrame(X, columns=["a", "b", "c"]).assign(label=np.arange(20) % 2).to_csv(table)
    command = [
        sys.executable, "-c", "from ardvark.cli import main; main()",
        "compare", "rfvm", str(table), "--target", "label", "--methods", "paper,laplace",
        "--out", str(out), "--draws", "20", "--chains", "2", "--option", "paper.restarts=1",
    ]  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, start_new_session=True, **quiet)
    deadline = time.monotonic() + 300
    while not (out / "rfvm_vb.nc").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)  # while Laplace compiles, for seconds
    process.wait()
    assert not (out / "report.html").exists()
    before = (out / "rfvm_vb.nc").stat().st_mtime_ns
    read(out / "rfvm_vb.nc")  # whole, although the process died

    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (out / "rfvm_vb.nc").stat().st_mtime_ns == before
    names = {"study.json", "scorecard.csv", "report.html", "forest.png", "rfvm_vb.nc", "laplace.nc"}
    assert {p.name for p in out.iterdir()} >= names
    assert not list(out.glob("*.json.part"))
    assert json.loads((out / "study.json").read_text())["model"] == "rfvm"
