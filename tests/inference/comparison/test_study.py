"""A study in a folder: finished fits are kept, a killed run goes on, a failure stays alone."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import ardvark as av
from ardvark.inference import BACKENDS, read
from ardvark.inference.comparison import study
from ardvark.validate import InputError

METHODS = {"laplace": {}, "rfvm_vb": {"restarts": 1}}
SMALL = {"draws": 50, "chains": 2, "random_seed": 1, "progressbar": False}


def test_finished_fits_are_used_again(problem, tmp_path, monkeypatch):
    first = study.run(problem, METHODS, tmp_path, **SMALL)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["laplace.nc", "rfvm_vb.nc"]

    def refuse(*args, **kwargs):
        raise AssertionError("computed again")

    monkeypatch.setattr(study.fitting, "fit", refuse)
    again = study.run(problem, METHODS, tmp_path, **SMALL)
    for name in METHODS:
        assert again[name].identical(first[name])


@pytest.mark.parametrize(
    "change", [{"draws": 40}, {"random_seed": 2}, {"methods": {"laplace": {"starts": 2}}}]
)
def test_anything_else_is_computed_again(problem, tmp_path, change):
    study.run(problem, {"laplace": {}}, tmp_path, **SMALL)
    before = read(tmp_path / "laplace.nc").attrs["request"]
    methods = change.pop("methods", {"laplace": {}})
    study.run(problem, methods, tmp_path, **{**SMALL, **change})
    assert read(tmp_path / "laplace.nc").attrs["request"] != before


def test_a_damaged_file_is_computed_again(problem, tmp_path, caplog):
    study.run(problem, {"laplace": {}}, tmp_path, **SMALL)
    (tmp_path / "laplace.nc").write_bytes(b"cut short")
    fits = study.run(problem, {"laplace": {}}, tmp_path, **SMALL)
    assert "cannot be read" in caplog.text
    assert fits["laplace"].attrs["status"] == "ok"


def test_one_failure_loses_nothing_and_is_tried_again(problem, tmp_path, monkeypatch, caplog):
    def broken(*args, **kwargs):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(BACKENDS["laplace"], "fit", broken)
    fits = study.run(problem, METHODS, tmp_path, **SMALL)
    assert fits["laplace"].attrs["status"] == "failed"
    assert fits["laplace"].attrs["reason"] == "ZeroDivisionError: a bug"
    assert fits["rfvm_vb"].attrs["status"] == "ok"
    assert "laplace failed" in caplog.text
    table = study.summarise(tmp_path, problem, fits).table
    assert table.loc["laplace", "status"] == "failed"
    monkeypatch.undo()
    assert study.run(problem, METHODS, tmp_path, **SMALL)["laplace"].attrs["status"] == "ok"


def test_a_method_that_does_not_apply_is_refused_before_anything_runs(dataset, tmp_path):
    problem = av.problem("rfvm", dataset, latent_noise="none")
    with pytest.raises(InputError, match="'rfvm_vb' does not apply"):
        study.run(problem, {"laplace": {}, "paper": {}}, tmp_path / "out", **SMALL)
    with pytest.raises(TypeError, match="no option 'startz'"):
        study.run(problem, {"laplace": {"startz": 2}}, tmp_path / "out", **SMALL)
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
    out = tmp_path / "out"
    command = [
        sys.executable, "-c", "from ardvark.cli import main; main()",
        "compare", "rfvm", "digits38", "--methods", "laplace,advi,nuts", "--out", str(out),
        "--draws", "20", "--chains", "2", "--option", "nuts.tune=20",
    ]  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, start_new_session=True, **quiet)
    deadline = time.monotonic() + 300
    while not (out / "laplace.nc").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (out / "report.html").exists()
    before = (out / "laplace.nc").stat().st_mtime_ns
    read(out / "laplace.nc")  # whole, although the process died

    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (out / "laplace.nc").stat().st_mtime_ns == before
    names = {"study.json", "scorecard.csv", "report.html", "forest.png", "eta.png"}
    names |= {"laplace.nc", "advi.nc", "nuts.nc"}
    assert {p.name for p in out.iterdir()} >= names
    assert not list(out.glob("*.json.part"))
    assert json.loads((out / "study.json").read_text())["model"] == "rfvm"
