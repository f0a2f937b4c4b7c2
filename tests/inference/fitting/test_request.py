"""The request of a fit: what determines its draws, and nothing else."""

import numpy as np

import ardvark as av
from ardvark.inference.contract.sampling import Sampling
from ardvark.inference.fitting.registry import prepare
from ardvark.inference.fitting.request import request


def test_cores_are_no_part_of_a_request():
    X = np.random.default_rng(0).normal(size=(12, 2))
    problem, sampling = av.problem("rfvm", X, X[:, 0] > 0), Sampling(seed=1)

    def asked(**options):
        return request(problem, prepare("nuts", problem, options), sampling)

    assert asked(cores=1) == asked(cores=2) == asked()
    assert asked(tune=300) != asked()
    plan = prepare("nuts", problem, {})
    assert plan.on_one_core() != plan
    assert request(problem, plan.on_one_core(), sampling) == asked()
