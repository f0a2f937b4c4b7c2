"""`pfcvm_em`: each step raises the log posterior, whose maximum is the model's own."""

import re

import numpy as np
import pytest
from scipy import special

import ardvark as av
from ardvark.inference.papers.pfcvm import em as pfcvm_em
from ardvark.inference.papers.pfcvm import lp as pfcvm_lp
from ardvark.inference.papers.pfcvm.engine import Engine
from tests.inference.papers.pfcvm.dense import (
    EM,
    dense,
    every_kernel,
    fit,
    gradient,
    make,
    sharp,
    slabs,
    start,
)
from tests.support import rng


@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
@pytest.mark.parametrize("hyperprior", ["paper", "model", "slab"])
@every_kernel
def test_em_never_lowers_the_log_posterior(model, hyperprior, kernel, degree):
    given = slabs(model) if hyperprior == "slab" else {}
    problem = make(model, kernel=kernel, degree=degree, N=20, D=8, **given)
    options = EM(hyperprior="paper" if hyperprior == "paper" else "model")
    e = Engine.start(problem, options, False)
    path = []
    for _ in range(30):
        e.climb(1, 1e-10)
        path.append(pfcvm_em.log_posterior(e))
        for block in (e.sample, e.feature):
            pfcvm_em.expect(block)
        if max(e.sample.p.max(), e.feature.p.max()) > 1e14:
            break  # the next precision is capped: no E-step any more
    assert len(path) > 1
    assert (np.diff(path) > -1e-9 * (1.0 + np.abs(path[1:]))).all()


def test_negative_control_28_is_no_e_step():
    """(28), which the paper calls the same formula, lowers the log posterior that EM raises.

    On fixed data and under the dense prior, by 9e-4: it need not on all.
    """
    problem = make(N=20, D=8, generator=np.random.default_rng, **dense("pfcvm"))
    e = start(problem, update_bias=False, hyperprior="model")
    path = []
    for _ in range(10):
        e.climb(5, 1e-12)
        path.append(pfcvm_em.log_posterior(e))
        pfcvm_lp.update_precisions(e, *e.curvatures(), "em")
    assert np.diff(path).min() < -1e-4


@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
@pytest.mark.parametrize("given", [dense, slabs, lambda model: {}], ids=["dense", "slab", "sparse"])
def test_em_objective_is_the_models_log_joint(model, given):
    """Up to a constant, once the smoothing is sharp; and EM's end is a maximum of it.

    By the option that the method's own words name.
    """
    problem = make(model, N=20, D=4, parametrization="marginal", bias_sd=1.7, **given(model))
    stated = re.search(r'hyperprior="(\w+)"', pfcvm_em.ABOUT.exact)[1]
    e, random = sharp(Engine.start(problem, EM(hyperprior=stated), False)), rng(0)
    gaps = []
    for _ in range(5):
        w = random.gamma(2.0, 1.0, 20)
        e.sample.u = np.r_[random.standard_normal(), w]
        signs = 1.0 if problem.basis_labels is None else problem.basis_labels
        point = {"bias": e.sample.u[0], "w": w, "sample_weight": signs * w}
        if e.free_theta:
            e.feature.u = random.gamma(2.0, 0.1, 4)
        point["feature_weight"] = e.feature.u
        gaps.append(pfcvm_em.log_posterior(e) - problem.log_joint(point))
    np.testing.assert_allclose(gaps, gaps[0], rtol=1e-10)

    options = EM(hyperprior="model", tolerance=1e-12)
    e = pfcvm_em.iterate(Engine.start(problem, options, False), options).engine

    def value(u):
        state = e.copy()
        state.sample.u = u
        return pfcvm_em.log_posterior(state)

    # the last iteration gained less than 1e-12 of 100, so a step of at most 1e-5 was left
    assert np.abs(gradient(value, e.sample.u, 1e-5)).max() < 1e-3


def test_the_pruned_terms_stay_in_the_trace():
    problem = make(N=60, D=6, kernel="rbf", noise=0.3, number=4)
    run = pfcvm_em.iterate(Engine.start(problem, EM(), False), EM())
    path, kept = np.array(run.objective), np.array(run.features) + np.array(run.samples)
    assert kept[-1] < kept[0]
    # A weight is pruned at a precision of 1e8, at 1e-4: eta_i moves by about that, and so does the
    # log-likelihood of each of 60 rows; twice, for a feature and a sample.
    assert np.diff(path).min() > -2 * 60 * 1e-4


def test_em_predicts_by_its_one_state():
    problem = make(N=30, D=4)
    tree = fit(problem, "pfcvm_em", hyperprior="model")
    path = tree["fit"]["objective"].values
    assert path[0] < path[-1] == tree.attrs["log_posterior"]
    paper, draws = (av.predict(problem, tree, problem.data.X, rule=r) for r in ("paper", "draws"))
    assert draws.shape == (1, 1, 30)
    np.testing.assert_allclose(paper, draws, rtol=1e-9)
    np.testing.assert_allclose(paper[0, 0], special.expit(tree["posterior"]["eta"][0, 0]))
