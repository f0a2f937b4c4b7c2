"""The path that JCFO's and FS-SKLR's algorithms keep, and how a long one is thinned."""

import numpy as np
import pytest

from ardvark.inference.papers.path import Path
from tests.inference.papers.fsklr import problems as fsklr_problems
from tests.inference.papers.fsklr.problems import every_form
from tests.inference.papers.jcfo import problems as jcfo_problems


def test_a_thinned_path_keeps_a_state_when_5_percent_have_gone():
    path = Path()
    sizes = [(100, 9), (96, 9), (95, 9), (94, 9), (94, 8), (90, 8), (89, 8), (0, 8), (0, 8)]
    due = [path.due(*one) for one in sizes]
    assert due == [True, False, False, True, True, False, True, True, False]
    assert path.details() == ({}, {})


def eta_of(problem, details):
    point = {k: details[f"path_{k}"] for k in ("feature_weight", "sample_weight", "bias")}
    return problem.decision(point, problem.X[:3])


@pytest.mark.parametrize("prefilter", [None, 4])
def test_jcfos_path_ends_in_its_point(prefilter):
    problem = jcfo_problems.made(25, 8, gamma1=0.5, gamma2=0.5)
    result = jcfo_problems.direct(problem, path=True, starts=1, prefilter=prefilter)
    d, point = result.details, {k: v[0, 0] for k, v in result.posterior.items()}
    at = d["path_iteration"]
    assert at[0] == 0
    assert at[-1] == len(d["objective"]) - 1
    assert (np.diff(at) > 0).all()
    np.testing.assert_array_equal(d["path_feature_weight"][-1], point["feature_weight"])
    np.testing.assert_array_equal(d["path_sample_weight"][-1], point["sample_weight"])
    assert d["path_bias"][-1] == point["bias"]
    kept = np.count_nonzero(d["path_feature_weight"], axis=1)
    np.testing.assert_array_equal(kept, d["features_kept"][at])
    assert not d["path_feature_weight"][:, d["filtered"]].any()
    eta = eta_of(problem, d)
    np.testing.assert_allclose(eta[-1], problem.decision(point, problem.X[:3]), rtol=1e-12)
    # the seed: theta = 1, and 0 where filtered
    np.testing.assert_array_equal(d["path_feature_weight"][0], np.where(d["filtered"], 0.0, 1.0))


@every_form
def test_the_path_of_a_search_is_every_visited_state(model, kernel):
    problem = fsklr_problems.made(model, kernel)
    result = fsklr_problems.direct(problem, path=True)
    d, point = result.details, fsklr_problems.point_of(result)
    np.testing.assert_array_equal(d["path_feature_weight"] != 0.0, d["visited_zeta"])
    np.testing.assert_array_equal(d["path_sample_weight"] != 0.0, d["visited_z"])
    eta = eta_of(problem, d)
    assert eta.shape == (len(d["objective"]), 3)
    selected = int(d["selected_iteration"])
    np.testing.assert_allclose(eta[selected], point["eta"][:3], rtol=1e-10, atol=1e-12)
    plain = fsklr_problems.direct(problem)
    assert not any(name.startswith("path_") for name in plain.details)
    np.testing.assert_array_equal(plain.details["objective"], d["objective"])
