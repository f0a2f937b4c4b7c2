"""The three small posteriors: their quadrature, their approximations, and what the page says."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from lab.matrix import mechanisms
from lab.matrix.mechanisms import (
    THE_COPIES,
    THE_LOGARITHM,
    THE_RIDGE,
    THE_SPIKE,
    TOYS,
    Toy,
    exact,
    laplace,
    mean_field,
    summaries,
)

R = 0.8
NORMAL = Toy(  # two correlated coordinates, for which every answer is known
    "normal",
    lambda x: -0.5 * (x[..., 0] ** 2 - 2 * R * x[..., 0] * x[..., 1] + x[..., 1] ** 2) / (1 - R**2),
    lambda x: x.sum(axis=-1),
    lambda x: x,
    (np.linspace(-7, 7, 400), np.linspace(-7, 7, 400)),
    ((1.0, -1.0),),
)


def test_a_normal_posterior_has_its_known_answers():
    found = summaries(NORMAL)
    assert found["exact"].sd == pytest.approx(np.sqrt(2 + 2 * R), rel=1e-4)
    assert laplace(NORMAL).covariance == pytest.approx(np.array([[1, R], [R, 1]]), abs=1e-4)
    # the mean field has the precisions' diagonal: variances 1 - R^2
    assert mean_field(NORMAL).covariance == pytest.approx(np.eye(2) * (1 - R**2), abs=1e-3)
    visible = 2 * stats.norm.sf(0.1)
    assert found["exact"].active == pytest.approx((visible, visible), abs=0.02)


def test_the_spike_by_another_quadrature():
    def density(w):
        return float(np.exp(THE_SPIKE.log_density(np.array([w]))))

    edges = [-6.0, -0.1, -0.01, 0.0, 0.01, 0.1, 2.0, 12.0]
    parts = [integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(edges)]
    active = (parts[0] + parts[-2] + parts[-1]) / sum(parts)
    assert summaries(THE_SPIKE)["exact"].active[0] == pytest.approx(active, abs=2e-3)


def test_the_same_weight_in_logarithms_is_the_positive_half():
    def density(w):
        return float(np.exp(THE_SPIKE.log_density(np.array([w]))))

    edges = [0.0, 0.001, 0.01, 0.1, 2.0, 12.0]
    parts = [integrate.quad(density, a, b)[0] for a, b in itertools.pairwise(edges)]
    active = (parts[-2] + parts[-1]) / sum(parts)
    assert summaries(THE_LOGARITHM)["exact"].active[0] == pytest.approx(active, abs=2e-3)


@pytest.mark.parametrize("toy", TOYS.values(), ids=list(TOYS))
def test_a_finer_grid_changes_nothing(toy):
    halved = [np.sort(np.concatenate([a, (a[1:] + a[:-1]) / 2]))[::1] for a in toy.axes]
    finer = Toy(**{**vars(toy), "axes": tuple(halved)})
    for one, two in zip(
        mechanisms.summary(toy, *exact(toy)), mechanisms.summary(finer, *exact(finer)), strict=True
    ):
        assert one == pytest.approx(two, abs=3e-3)  # numbers, and tuples of them


def test_what_the_examples_say_is_so():
    spike, copies, ridge = (summaries(t) for t in (THE_SPIKE, THE_COPIES, THE_RIDGE))
    assert spike["exact"].active[0] == pytest.approx(0.15, abs=0.005)  # it stands on the page
    assert spike["mean field"].active[0] < 0.01 > spike["Laplace"].active[0]
    logarithm = summaries(THE_LOGARITHM)
    share = {name: s.active[0] / logarithm["exact"].active[0] for name, s in logarithm.items()}
    assert share["mean field"] == pytest.approx(0.5, abs=0.06)
    assert share["Laplace"] == pytest.approx(0.05, abs=0.02)
    assert copies["exact"].active == pytest.approx((0.53, 0.53), abs=0.01)
    assert copies["exact"].any_active > 0.99
    assert sorted(np.round(copies["mean field"].active)) == [0.0, 1.0]
    assert ridge["Laplace"].sd > 3.0 * ridge["exact"].sd
    for mine, true in zip(ridge["mean field"].sds, ridge["exact"].sds, strict=True):
        assert mine < 0.5 * true
    assert ridge["mean field"].sd > 1.25 * ridge["exact"].sd


def test_every_example_has_a_panel():
    assert len(mechanisms.draw().figure.axes) == len(TOYS)
