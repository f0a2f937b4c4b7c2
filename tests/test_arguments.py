"""Every option of a command reaches the function that it is for: none is dropped or taken twice.

Each has a value that is not its default and that no other option has.
"""

import sys

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.cli.app import main
from ardvark.inference.comparison import study
from ardvark.inference.target.sampling import Sampling
from tests.inference.comparison.quick import Prior, registered
from tests.support import rng


class Reached(Exception):
    """The function was called."""


@pytest.fixture
def given(monkeypatch, tmp_path):
    """Return a function that runs a command up to a function, and returns what that was given."""
    frame = pd.DataFrame(rng(0).normal(size=(40, 3)), columns=["height", "weight", "age"])
    frame["sex"] = np.where(np.arange(40) % 2, "f", "m")
    frame["state"] = np.where(frame["height"] > 0, "ill", "well")
    frame.to_csv(tmp_path / "own.csv", index=False)
    monkeypatch.chdir(tmp_path)
    registered(monkeypatch, Prior)

    def run(words, owner, name):
        asked = []

        def recorded(*args, **named):
            asked.append((args, named))
            raise Reached

        with monkeypatch.context() as patch:
            patch.setattr(sys, "argv", ["ardvark", *words.split()])
            patch.setattr(owner, name, recorded)
            with pytest.raises(Reached):
                main()
        return asked[0]

    return run


TABLE = "own.csv --target state --encode onehot --always age,sex"


def test_choose(given):
    words = f"choose {TABLE} --candidates ridge,share --folds 3 --repeats 2 --option ess=300"
    (rows,), asked = given(f"{words} --seed 7 --processes 5 --out out", av.inference, "choose")
    assert rows.feature_names == ("height", "weight", "age", "sex=m")
    assert asked.pop("folder").name == "out"
    assert asked == {
        "candidates": ["ridge", "share"], "always": ["age", "sex"], "folds": 3, "repeats": 2,
        "ess": 300, "random_seed": 7, "processes": 5,
    }  # fmt: skip


def test_compare(given, monkeypatch):
    words = f"compare rfvm {TABLE} --methods prior,laplace --draws 11 --chains 3 --seed 7"
    words += " --keep shared --test-size 0.2 --split-seed 9 --set bias_sd=2.5 --sensitivity"
    words += " --option prior.fail_without=nobody --option laplace.starts=13 --out out"
    monkeypatch.setattr(study, "check_sensitivity", lambda *asked: None)
    (problem, methods, folder, sampling), rest = given(words, study, "run")
    settings = rest["settings"]
    data = av.table(folder.parent.absolute() / "own.csv", "state", encode="onehot")
    train, _ = data.split(0.2, random_seed=9)
    expected = av.problem("rfvm", train, always=["age", "sex"], bias_sd=2.5)
    assert problem.fingerprint == expected.fingerprint
    assert methods == {"prior": {"fail_without": "nobody"}, "laplace": {"starts": 13}}
    assert sampling == Sampling(draws=11, chains=3, seed=7, keep="shared", progressbar=True)
    assert settings["sensitivity"] is True
    assert (settings["test_size"], settings["split_seed"]) == (0.2, 9)
    assert settings["hypers"] == {"bias_sd": 2.5}


def test_panel(given, command, monkeypatch):
    monkeypatch.setattr(av.inference.Comparison, "pictures", lambda comparison: {})
    done = command(*f"compare rfvm {TABLE} --methods prior --draws 11 --out out".split())
    assert done.returncode == 0, done.stderr
    words = "panel out --method prior --sizes 3 --folds 6 --seed 7 --processes 5"
    (problem, fit, sizes), asked = given(words, av, "panel")
    assert fit.attrs["fingerprint"] == problem.fingerprint
    assert asked.pop("folder").parts == ("out", "panel")
    assert sizes == 3
    assert asked == {"test": None, "folds": 6, "random_seed": 7, "processes": 5}
