"""PFCVM's two algorithms: modes by (10), (12), evidence (14), updates (28), (29), and EM."""

import re

import numpy as np
import pytest

from ardvark.inference.papers.pfcvm import em as pfcvm_em
from ardvark.inference.papers.pfcvm import lp as pfcvm_lp
from ardvark.inference.papers.pfcvm.engine import Engine
from tests.inference.papers.ascent import Ascent, check_ascent, check_control
from tests.inference.papers.pfcvm.dense import (
    EM,
    KERNELS,
    Paper,
    anywhere,
    dense,
    make,
    slabs,
    values,
)
from tests.support import rng

PRIORS = {
    "flat": (False, lambda model: {}),
    "sparse": (True, lambda model: {}),
    "slab": (True, slabs),
    "dense": (True, dense),
}
BASIS = [5, 11, 0, 8, 13, 2, 7, 1, 12, 3, 9, 4, 10, 6]
"""As many centres as rows, in another order: what takes one for the other is seen."""
FORMS = [
    (model, kernel, degree, list(PRIORS)[(number + shift) % 4])
    for model, shifts in (("pfcvm", (0, 1)), ("pcvm", (0,)), ("rvm", (2,)))
    for number, (kernel, degree) in enumerate(KERNELS)
    for shift in shifts
]
every_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: "-".join(map(str, form)))


def parts(model, kernel, degree, prior, **given):
    """The problem of one form, its formulas, and the engine's options."""
    own, settings = PRIORS[prior][0], PRIORS[prior][1](model)
    given = {"N": 14, "D": 5, "bias_sd": 1.7, "basis": BASIS} | given
    problem = make(model, kernel=kernel, degree=degree, **settings, **given)
    return problem, Paper(problem, own), {"hyperprior": "model" if own else "paper"}


def begin(problem, number, options, kernel, **more):
    """An engine away from any mode; theta of an rbf kernel starts at its bound's side."""
    e = anywhere(problem, number, low=0.02 if kernel == "rbf" else -0.1, **options, **more)
    e.bounded = kernel == "rbf"
    return e


def charts(problem, kernel):
    free = {"theta": "nonnegative" if kernel == "rbf" else "real"}
    return {"w": "real"} | (free if problem.spec.name == "pfcvm" else {})


def slopes(e):
    of_w, of_theta = e.gradients()
    return {"w": of_w} | ({"theta": of_theta} if e.free_theta else {})


def modes(*form):
    """Newton's steps climb Q at fixed precisions."""
    problem, paper, options = parts(*form)
    return Ascent(
        start=lambda number: begin(problem, number, options, form[1]),
        steps={"climb": lambda e: e.climb(1, 1e-14)},
        values=values,
        dense=paper.Q,
        objective=Engine.Q,
        charts=charts(problem, form[1]),
        slopes=slopes,
        end=lambda e: e.climb(500, 1e-16),
        slack=1e-4,
    )


def precisions(*form):
    """(28) and (29), between steps to the modes; neither has to raise the evidence."""
    problem, paper, options = parts(*form)
    return Ascent(
        start=lambda number: begin(
            problem, number, options, form[1], update_bias=options["hyperprior"] == "paper"
        ),
        steps={"modes": lambda e: e.climb(2, 1e-10), "mackay": by("mackay"), "em": by("em")},
        values=values,
        dense=paper.evidence,
        objective=lambda e: e.evidence(*e.curvatures()),
        formula={u: lambda v, u=u: paper.updated(v, u) for u in ("mackay", "em")},
        rises=False,
    )


def by(update):
    return lambda e: pfcvm_lp.update_precisions(e, *e.curvatures(), update)


def expect(e):
    for block in (e.sample, e.feature):
        pfcvm_em.expect(block)


def expectation(*form):
    """EM: each step raises the log posterior; under a proper hyperprior it ends at a maximum."""
    problem, paper, options = parts(*form)

    def end(e):
        tight = EM(**options, tolerance=1e-13, max_iterations=4000)
        pfcvm_em.iterate(e, tight)

    return Ascent(
        start=lambda number: begin(problem, number, options, form[1], update_bias=False),
        steps={"expect": expect, "climb": lambda e: e.climb(1, 1e-12)},
        values=values,
        dense=paper.log_posterior,
        objective=pfcvm_em.log_posterior,
        charts=charts(problem, form[1]),
        formula={"expect": paper.expected},
        end=end if options["hyperprior"] == "model" else None,
        slack=1e-2,
    )


@every_form
@pytest.mark.parametrize("of", [modes, precisions, expectation])
def test_ascent(of, form):
    check_ascent(of(*form))


def downhill(e):
    e.sample.u = e.sample.u - 1e-3 * e.gradients()[0]


def without_prior(e):
    """Newton's steps as if the slab and the precisions of theta were not there."""
    p, t = e.feature.p, e.feature.slab_precision
    e.feature.p, e.feature.slab_precision = 1e-3 * p, 0.0 * t
    e.climb(5, 1e-12)
    e.feature.p, e.feature.slab_precision = p, t


def as_28(e):
    """(28), which the paper calls the same formula as EM's (an erratum)."""
    pfcvm_lp.update_precisions(e, *e.curvatures(), "em")


WRONG = {
    "climb-downhill": (modes, "climb", downhill),
    "climb-without_prior": (modes, "climb", without_prior),
    "mackay-is_28": (precisions, "mackay", by("em")),
    "em-is_29": (precisions, "em", by("mackay")),
    "em-without_variance": (precisions, "em", expect),
    "expect-is_28": (expectation, "expect", as_28),
    "expect-of_one_block": (expectation, "expect", lambda e: pfcvm_em.expect(e.sample)),
    "climb-of_em_downhill": (expectation, "climb", downhill),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_step_fails(wrong):
    of, step, function = WRONG[wrong]
    check_control(of("pfcvm", "linear", 1, "slab"), step, function)


@pytest.mark.parametrize("model", ["pfcvm", "pcvm", "rvm"])
@pytest.mark.parametrize("prior", ["sparse", "slab", "dense"])
def test_the_formulas_are_the_models_own_density(model, prior):
    """With sharp sigmoids, up to a constant: the log posterior, and the evidence less determinants.

    By the option that the method's own words name.
    """
    assert re.search(r'hyperprior="(\w+)"', pfcvm_em.ABOUT.exact)[1] == "model"
    problem, _, _ = parts(model, "linear", 1, prior)
    paper, random = Paper(problem, own=True, lam=1e9), rng(0)
    gaps = []
    for _ in range(5):
        w, theta, beta = (random.gamma(2.0, 0.5, n) for n in (14, 5, 5))
        alpha, b = random.gamma(2.0, 1.0, 14), random.standard_normal()
        signs = 1.0 if problem.basis_labels is None else problem.basis_labels
        theta = theta if model == "pfcvm" else np.broadcast_to(problem.hypers.feature_scale, 5)
        point = {"bias": b, "w": w, "sample_weight": signs * w, "feature_weight": theta}
        v = {"w": np.r_[b, w], "theta": theta, "alpha": np.r_[1.7**-2.0, alpha], "beta": beta}
        marginal = problem.with_hypers(parametrization="marginal").log_joint(point)
        kept = problem.with_hypers(parametrization="hierarchical")
        free = [alpha, beta] if model == "pfcvm" else [alpha]
        joint = kept.log_joint(point | {"alpha": alpha, "beta": beta})
        joint += sum(np.log(x).sum() for x in free)  # densities of logarithms
        determinants = sum(0.5 * np.linalg.slogdet(S)[1] for S in paper.Sigma(v))
        gaps.append([paper.log_posterior(v) - marginal, paper.evidence(v) - determinants - joint])
    np.testing.assert_allclose(gaps, np.broadcast_to(gaps[0], (5, 2)), rtol=1e-9, atol=1e-9)
