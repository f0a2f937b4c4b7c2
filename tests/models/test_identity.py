"""What identifies a problem, pinned: a change of the code moves no fingerprint by accident.

Stored fits and references are found by fingerprint and form. Both hash what is listed here. The
problems below have every scale given, and inputs that are not standardised, so that no root and no
rounding of a machine enters their hashes.
"""

import dataclasses
import json

import numpy as np
import pytest

import ardvark as av
from ardvark.models import ZOO
from ardvark.models.spec import COVARIATE_SD

X, Y = np.arange(15.0).reshape(5, 3) % 4.0, [0, 1, 0, 1, 1]
SAMPLE = {"sample_shape": 2.0, "sample_rate": 3.0, "sample_slab": 1.5}
FEATURE = {"feature_shape": 2.5, "feature_rate": 0.5, "feature_slab": 4.0}
MASK = {"xi": 2.0, "delta": 0.25, "a_z": 1.5}
NOISE = {"noise_shape": 2.0, "noise_rate": 2.5}
GIVEN = {
    "pfcvm": {**SAMPLE, **FEATURE, "bias_sd": 2.0},
    "pcvm": {**SAMPLE, "bias_sd": 2.0, "feature_scale": 0.5},
    "rvm": {**SAMPLE, "bias_sd": 2.0, "feature_scale": (0.5, 0.0, 1.0)},
    "jcfo": {"gamma1": 2.0, "gamma2": 0.5},
    "sparse_probit": {"gamma1": 2.0},
    "fsklr": {**MASK, "a_zeta": 1.25},
    "sklr": MASK,
    "fs_skr": {**MASK, **NOISE, "a_zeta": 1.25},
    "rfvm": {**SAMPLE, **FEATURE, **NOISE, "bias_sd": 2.0},
    "horseshoe": {"global_scale": 0.25, "slab_scale": 1.5, "slab_df": 3.0, "bias_sd": 2.0},
}
"""Every number of each model that its posterior depends on."""
FIXED = {name: {"scale": "fixed"} for name in ("jcfo", "sparse_probit")}
"""Not their default. It is no part of the fingerprint, which is that of before one was learned."""

WORDS = {
    "pfcvm": ({"kernel"}, {"parametrization"}),
    "pcvm": ({"kernel"}, {"parametrization"}),
    "rvm": ({"kernel"}, {"parametrization"}),
    "jcfo": ({"kernel", "degree"}, {"parametrization"}),
    "sparse_probit": (set(), {"parametrization"}),
    "fsklr": ({"kernel", "mask_prior"}, {"mask_probability"}),
    "sklr": ({"kernel", "mask_prior"}, {"mask_probability"}),
    "fs_skr": ({"kernel", "mask_prior"}, {"mask_probability"}),
    "rfvm": ({"kernel", "noise"}, {"parametrization", "latent_noise"}),
    "horseshoe": (set(), {"parametrization"}),
}
"""What the fingerprint hashes beside those numbers, and what the form hashes."""

PINNED = {
    "pfcvm": ("e98efe08dcb7776e", "0f858464586bd84c"),
    "pcvm": ("eaf73b668bd6e0ad", "7f5d3557d9f5d410"),
    "rvm": ("09f0954f1637e1e8", "9e9b6af4966b94c2"),
    "jcfo": ("f6ecc4614f525a0c", "8ad04fa4eb9b3956"),
    "sparse_probit": ("1cb784a2a1ebc72c", "f402d450f6440d2f"),
    "fsklr": ("15ae03998b71a406", "4972023accdd60ec"),
    "sklr": ("03a0a98e2d812176", "586ca5942699d65b"),
    "fs_skr": ("945b0374677d05d7", "3694bcb2f32c1198"),
    "rfvm": ("bc5661f2c312dc9a", "aa0d4d537ecb7ce6"),
    "horseshoe": ("815e2bd798fbfc18", "f84f36767855d49c"),
}


def made(name, **change):
    return av.problem(
        name, (X, Y), standardize=False, **{**GIVEN[name], **FIXED.get(name, {}), **change}
    )


def test_every_model_is_pinned():
    assert set(GIVEN) == set(WORDS) == set(PINNED) == set(ZOO)


@pytest.mark.parametrize("name", ZOO)
def test_the_inputs_of_a_fingerprint(name):
    problem, (words, form) = made(name), WORDS[name]
    fields = json.loads(json.dumps(problem.hypers.posterior_fields()))
    numbers = {k: list(v) if isinstance(v, tuple) else v for k, v in GIVEN[name].items()}
    assert {k: v for k, v in fields.items() if k not in words} == numbers
    assert set(fields) == words | set(numbers)
    assert set(problem.hypers.form_fields()) == form


@pytest.mark.parametrize("name", ZOO)
def test_fingerprint_and_form_are_what_they_were(name):
    problem = made(name)
    assert (problem.fingerprint, problem.form) == PINNED[name]


@pytest.mark.parametrize("name", ZOO)
def test_every_number_of_the_posterior_moves_the_fingerprint(name):
    own = made(name)
    for given, value in GIVEN[name].items():
        other = made(name, **{given: tuple(2.0 * np.array(value)) if np.ndim(value) else 2 * value})
        assert other.fingerprint != own.fingerprint
        assert other.form == own.form


@pytest.mark.parametrize("name", ZOO)
def test_a_fit_records_every_hyperparameter_under_its_name(name):
    """In the order of the class, as `describe` lists them, with the values that were given."""
    problem = made(name)
    recorded, every = problem.recorded(), dataclasses.asdict(problem.hypers)
    assert list(every) == [d.name for d in ZOO[name].Hypers.declared()]
    assert list(recorded) == [k for k in every if k != COVARIATE_SD]  # without covariates
    assert {k: recorded[k] for k in GIVEN[name]} == GIVEN[name]
    lines = problem.describe().splitlines()
    assert [line.split()[0] for line in lines if line.startswith("    ")] == list(recorded)
