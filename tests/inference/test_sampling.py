"""`Sampling`: what each public function is asked for, checked once."""

import numpy as np
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.target.backend import Job
from ardvark.inference.target.sampling import LARGEST_SEED, Sampling

WRONG = [
    ("draws", 0, "draws must be an integer of at least 1, got 0"),
    ("draws", 2.5, "draws must be an integer of at least 1, got 2.5"),
    ("chains", True, "chains must be an integer of at least 1, got True"),
    ("chains", np.int64(-3), "chains must be an integer of at least 1, got -3"),
    ("random_seed", -1, "random_seed must be an integer from 0 to 9223372036854775807, got -1"),
    ("random_seed", LARGEST_SEED + 1, "random_seed must be .*, got 9223372036854775808"),
    ("random_seed", "seven", "random_seed must be .*, got 'seven'"),
]


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_sizes_and_seeds_that_are_none_are_one_error(name, value, message):
    field = {"random_seed": "seed"}.get(name, name)
    with pytest.raises(InputError, match=message):
        Sampling(**{"seed": 0, field: value})


@pytest.mark.parametrize(("name", "value", "message"), WRONG)
def test_every_public_function_refuses_them(name, value, message, problem, tmp_path):
    out = tmp_path / "out"
    wrong = {name: value, "progressbar": False}
    sparse = av.problem("rfvm", problem.data, active_features=1.0)
    for call in (
        lambda: av.fit(problem, "paper", **wrong),
        lambda: av.sensitivity(sparse, "paper", folder=out, **wrong),
        lambda: av.calibrate(problem, "paper", folder=out, **wrong),
    ):
        with pytest.raises(InputError, match=message):
            call()
    assert not out.exists()
    if name == "random_seed":
        with pytest.raises(InputError, match="random_seed must be"):
            av.calibrate(problem, "gibbs", test="joint", folder=out, **wrong)


def test_a_word_that_is_none():
    with pytest.raises(InputError, match="keep must be one of 'all', 'shared', got 'some'"):
        Sampling(seed=0, keep="some")


def test_a_negative_seed_of_a_split_is_the_same_error(problem):
    with pytest.raises(InputError, match="random_seed must be an integer of at least 0, got -1"):
        problem.data.split(random_seed=-1)


def test_numbers_of_numpy_are_plain_ones():
    """A request is the text of them: equal sizes must be equal requests."""
    numpy = Sampling(draws=np.int64(7), chains=np.int32(2), seed=np.uint8(5))
    assert numpy == Sampling(draws=7, chains=2, seed=5)
    assert {type(getattr(numpy, name)) for name in ("draws", "chains", "seed")} == {int}


def test_a_job_is_a_sampling_with_names(capsys):
    job = Job(**vars(Sampling(draws=3, chains=2, seed=1, progressbar=True)), label="own")
    assert isinstance(job, Sampling)
    assert job.report is job.report  # a notebook's stages share one cell
    with job.report.stage("drawing"):
        pass
    assert "own: drawing" in capsys.readouterr().err
    with Job(seed=1).report.stage("drawing"):
        pass
    assert capsys.readouterr().err == ""
