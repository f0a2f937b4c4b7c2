"""A run of `exact` that is killed goes on from its last checkpoint, and loses nothing before it."""

import numpy as np
import pytest

import ardvark as av
from ardvark.inference import read
from ardvark.inference.comparison import study
from ardvark.inference.methods import checkpoint
from ardvark.inference.samplers import driver
from ardvark.inference.samplers.exact.rule import SAMPLERS
from ardvark.inference.target.sampling import Sampling
from tests.support import seed

ASKED = {"ess": 100.0, "draws": 500, "chains": 2, "random_seed": seed(1), "progressbar": False}


@pytest.fixture
def problem(small_data):
    return av.problem("sparse_probit", small_data(N=25, D=3))


def killed(monkeypatch, at):
    """Let a run be killed at the judgement after so many iterations, once."""
    lacking = driver.lacking

    def dies(mixing, asked):
        found = lacking(mixing, asked)
        if mixing.sizes[1] >= at:
            raise KeyboardInterrupt
        return found or ["one more"]  # so that no run ends before it is killed

    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(driver, "lacking", dies)


@pytest.mark.parametrize("sampler", ["gibbs", pytest.param("nuts", marks=pytest.mark.slow)])
def test_a_killed_run_goes_on(sampler, problem, tmp_path, monkeypatch):
    path, asked = tmp_path / "fit.checkpoint", {**ASKED, "sampler": sampler}
    with monkeypatch.context() as patch:
        killed(patch, 512 * (1.0 - SAMPLERS[sampler].WARM_UP))
        with pytest.raises(KeyboardInterrupt):
            av.fit(problem, "exact", checkpoint=path, **asked)
    kept = read(path)
    assert kept.attrs["iterations"] == 384
    assert (kept.attrs["status"], kept.attrs["reason"]) == ("not_converged", "it was stopped")
    assert set(kept.children) == {"posterior", "sample_stats", "fit"}  # what it goes on from
    before = kept["posterior"]["eta"].values
    whole = av.fit(problem, "exact", checkpoint=path, **asked)
    assert not path.exists()
    assert whole.attrs["ended"] == "converged"
    assert whole.attrs["iterations"] > 384
    assert not whole.attrs["reproducible"]
    # those of its draws that were not warm-up are among all
    every, share = whole.attrs["every"], SAMPLERS[sampler].WARM_UP
    drawn = before.shape[1]
    first = max(0, int(np.ceil(share * whole.attrs["iterations"])) - (384 - drawn))
    if every == 1 and first < drawn:
        after = whole["posterior"]["eta"].values
        assert (after[:, 0] == before[:, first]).all()


def test_a_checkpoint_of_another_request_is_no_start(problem, tmp_path, monkeypatch):
    path = tmp_path / "fit.checkpoint"
    with monkeypatch.context() as patch:
        killed(patch, 512 * 0.75)
        with pytest.raises(KeyboardInterrupt):
            av.fit(problem, "exact", checkpoint=path, **{**ASKED, "sampler": "gibbs"})
    other = {**ASKED, "sampler": "gibbs", "random_seed": seed(2)}
    assert av.fit(problem, "exact", checkpoint=path, **other).attrs["reproducible"]


def test_a_short_run_writes_nothing(problem, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "save", None)  # whatever is written fails
    fit = av.fit(problem, "exact", checkpoint=tmp_path / "fit.checkpoint", **ASKED)
    assert fit.attrs["reproducible"]


def test_a_study_goes_on_and_uses_the_fit_again(problem, tmp_path, monkeypatch):
    size = Sampling(draws=500, chains=2, seed=seed(1))
    methods = {"exact": {"sampler": "gibbs", "ess": 100.0}}
    with monkeypatch.context() as patch:
        killed(patch, 512 * 0.75)
        with pytest.raises(KeyboardInterrupt):
            study.run(problem, methods, tmp_path, size)
    assert [path.name for path in tmp_path.iterdir()] == ["exact.checkpoint"]
    first = study.run(problem, methods, tmp_path, size)["exact"]
    assert [path.name for path in tmp_path.iterdir()] == ["exact.nc"]
    again = study.run(problem, methods, tmp_path, size)["exact"]
    assert again.identical(first)
