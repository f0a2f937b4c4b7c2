"""`calibrate`: one call, what it says in words and draws, and the command of that name."""

import dataclasses
import logging
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ardvark as av
from ardvark.cli.app import main
from ardvark.common.validate import InputError
from ardvark.inference import BACKENDS
from ardvark.inference.checks import calibrate as front
from ardvark.inference.checks import plots
from ardvark.inference.checks.ranks import Calibration, as_normal
from ardvark.inference.methods import registry
from tests.inference.checks.toy import Conjugate, make_toy
from tests.support import ALARM, rng, z_limit


@pytest.fixture
def conjugate(monkeypatch):
    """A backend of the user's own."""
    monkeypatch.setattr(registry, "BACKENDS", dict(BACKENDS))
    av.inference.register_backend(Conjugate)


def test_progress_is_shown_unless_it_is_not_wanted(conjugate, capsys):
    for given in ({}, {"progressbar": False}):
        av.calibrate(make_toy(), "conjugate", replicates=3, **given)
        shown = capsys.readouterr()
        assert ("sbc-toy-conjugate" in shown.err) == (not given)
        assert shown.out == ""


def found(ranks, names=("a", "b"), name="sbc-toy-own"):
    return Calibration(names, ranks, (), np.full(len(ranks), 99), 1.0, name)


@pytest.mark.statistical
@pytest.mark.parametrize(("d", "c"), [(0.0, 1.0), (0.5, 1.0), (-0.3, 0.6), (0.2, 2.0)])
def test_a_normal_posterior_that_is_wrong_by_so_much(d, c):
    """Exact ranks of a truth m + s z among N(m + d c s, (c s)^2): mean and sd are recovered."""
    R = 4000
    u = stats.norm.cdf((rng(0).normal(size=(R, 1)) - d * c) / c)
    shift, ratio = (float(v[0]) for v in as_normal(u))
    assert abs(shift - d) < z_limit() / (c * np.sqrt(R))
    assert abs(np.log(ratio / c)) < 1.1 * z_limit() / np.sqrt(2 * R)


def test_words_when_nothing_is_wrong():
    grid = (np.arange(100) + 0.5) / 100
    even = found(np.stack([grid, grid[::-1]], axis=1))
    assert "No error found in 2 quantities" in even.text()
    assert "half of the time" in even.text()
    assert repr(even) == even.text()
    failed = dataclasses.replace(even, ranks=np.empty((0, 2)), reasons=("no start",))
    assert failed.text() == "sbc-toy-own: 0 replicates; 1 more failed: no start"
    low = found(np.stack([grid, 0.3 * grid], axis=1))
    assert "1 of 2 quantities are wrong:\n  b: the sd is 1.95 times" in low.text()
    assert "sd too high" in low.text()


@pytest.mark.statistical
def test_the_band_holds_whole_curves():
    """With the stated probability, by its own 10 000 simulations: exact binomial test."""
    R, share, runs = 80, 0.9, 400
    x, low, high = plots.band(R, share)
    curves = np.array([plots.difference(u, x) for u in rng(1).random((runs, R))])
    inside = ((curves >= low) & (curves <= high)).all(axis=1).sum()
    assert stats.binomtest(int(inside), runs, share).pvalue > ALARM
    assert not ((curves >= 0.0) & (curves <= 0.0)).all(axis=1).any()


def test_the_figure_marks_what_is_wrong():
    """All ranks below 0.3 against all quantiles of the uniform, one of each."""
    grid = (np.arange(100) + 0.5) / 100
    figure = found(np.stack([grid, 0.3 * grid], axis=1)).plot()
    assert [axis.get_title() for axis in figure.axes[:2]] == ["b (outside)", "a"]


def test_the_joint_test_is_of_a_transition(conjugate, monkeypatch):
    asked = {}
    monkeypatch.setattr(front, "joint_test", lambda *args, **settings: asked.update(settings))
    X = rng(2).normal(size=(6, 2))
    problem = av.problem("fsklr", (X, np.arange(6) % 2))
    av.calibrate(problem, "gibbs", test="joint", replicates=7, progressbar=False)
    assert asked["replicates"] == 7
    assert asked["called"] == "gibbs"  # not the function that makes the kernel
    with pytest.raises(
        InputError, match="It knows those of nuts, mams, gibbs, but none of 'conjugate'"
    ):
        av.calibrate(make_toy(), "conjugate", test="joint")
    with pytest.raises(TypeError, match="the joint test has no option 'tune'"):
        av.calibrate(problem, "gibbs", test="joint", tune=3)
    with pytest.raises(InputError, match="test must be one of 'sbc', 'joint'"):
        av.calibrate(problem, "gibbs", test="geweke")


def test_the_command_passes_everything_on(tmp_path, monkeypatch):
    """No value is a default; without a single replicate the exit code is 1."""
    asked = {}

    def calibrate(problem, method, **settings):
        asked.update(settings, problem=problem, method=method)
        return found(np.empty((0, 2)))

    monkeypatch.setattr(av.inference, "calibrate", calibrate)
    words = (
        "rfvm 6x2 --method nuts --test joint --replicates 7 --draws 30 --chains 3 --seed 5 "
        "--processes 2 --set bias_sd=2 --option tune=40"
    )
    monkeypatch.setattr(sys, "argv", ["ardvark", "calibrate", *words.split(), f"--out={tmp_path}"])
    level = logging.getLogger("ardvark").level
    with pytest.raises(SystemExit) as ended:
        main()
    logging.getLogger("ardvark").setLevel(level)
    assert ended.value.code == 1
    problem = asked.pop("problem")
    assert (problem.spec.name, problem.X.shape, problem.hypers.bias_sd) == ("rfvm", (6, 2), 2)
    assert asked == {
        "method": "nuts", "test": "joint", "replicates": 7, "draws": 30, "chains": 3,
        "random_seed": 5, "processes": 2, "tune": 40, "folder": tmp_path,
    }  # fmt: skip


def test_the_command(tmp_path, monkeypatch, capsys):
    """RFVM's own algorithm on normal inputs; the same command with more replicates goes on."""
    level = logging.getLogger("ardvark").level

    def run(*words):
        settings = ["--draws", "30", "--chains", "1", "--out", str(tmp_path)]
        monkeypatch.setattr(sys, "argv", ["ardvark", "calibrate", *words, *settings])
        with pytest.raises(SystemExit) as ended:
            main()
        logging.getLogger("ardvark").setLevel(level)
        return ended.value.code or 0, capsys.readouterr()

    code, said = run("rfvm", "6x2", "--replicates", "3", "--set", "bias_sd=2")
    assert (code, said.out.splitlines()[0]) == (0, "sbc-rfvm-rfvm_vb: 3 replicates")
    code, said = run("rfvm", "6x2", "--replicates", "5", "--set", "bias_sd=2")
    assert "sbc-rfvm-rfvm_vb: 5 replicates" in said.out
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".csv", ".jsonl", ".png"]
    table = pd.read_csv(tmp_path / "sbc-rfvm-rfvm_vb.csv", index_col="quantity")
    assert {"mean", "width", "shift", "sd_ratio", "p_value", "holm"} == set(table.columns)
    assert len(next(tmp_path.glob("*.jsonl")).read_text().split()) > 5
    code, said = run("pfcvm", "6x2", "--method", "pfcvm_em")
    assert (code, "is a point: it returns no draws" in said.err) == (2, True)
