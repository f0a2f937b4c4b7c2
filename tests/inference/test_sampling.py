"""`Sampling`: what each public function is asked for, checked once."""

import numpy as np

from ardvark.inference.target.backend import Job
from ardvark.inference.target.sampling import Sampling


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
