"""Rung 1 of the ladder, for every model and every form: the density is the paper's.

`log_joint` is written from the paper in NumPy and SciPy, `build` in PyMC: two independent routes to
one number.
"""

import dataclasses
from typing import get_args

import numpy as np
import pytest
from scipy import stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.data import Dataset
from ardvark.inference.samplers.gradient import nuts
from ardvark.inference.target.target import Target
from ardvark.models import SHARED, ZOO, ModelName
from ardvark.models.parts.kernels import KERNELS, KernelName, make_kernel
from ardvark.models.spec import COVARIATE_SD, REBOUND
from tests.models.forms import (
    ALWAYS,
    Compiled,
    at_own_labels,
    every_model,
    make,
    prior_points,
    stacked,
    unlike,
    with_covariates,
)
from tests.support import rng


@pytest.fixture(scope="module", params=with_covariates())
def problem(request):
    """One problem of each form; its tests run together, so its model is built once.

    No two hyperparameters and no two sizes are alike: what takes one for the other has another
    density. The basis is not in the order of the rows, nor are the covariates in that of columns.
    """
    name, choice, covariates = request.param
    given = {"basis": [5, 8, 0, 3, 6]} if ZOO[name].has_basis else {}
    given |= {"D": 6, "always": ALWAYS} if covariates else {}
    return make(name, choice, **unlike(name, covariates=covariates), **given)


@pytest.fixture(scope="module")
def compiled(problem):
    return Compiled(problem, gradient=not problem.spec.masked)


def test_pymc_density_is_the_papers_density(problem, compiled):
    """The differences over prior draws, and the constants too.

    Models of other libraries may differ in their constants. These do not: a constant lost in
    `log_joint` would be lost in evidence and Bayes factors. A Jacobian that were left out of either
    would be seen: over prior draws its log has a standard deviation of at least 0.3 (a single log
    tau), so that twenty draws within 0.1 of each other have a probability below 1e-12.
    """
    points = prior_points(problem, 20)
    ours = np.array([float(at_own_labels(problem, point)) for point in points])
    theirs = np.array(list(map(compiled.density, points)))
    transformed = any(t is not None for t in problem.model.rvs_to_transforms.values())
    jacobian = [float(problem.spec.log_jacobian(point, problem.hypers)) for point in points]
    assert np.ptp(jacobian) > 0.1 if transformed else not np.any(jacobian)
    assert np.isfinite(ours).all()
    difference = ours - theirs
    assert (np.abs(difference - difference[0]) < 1e-10 * np.maximum(1.0, np.abs(ours))).all()
    # PyMC's half-Student-t has a constant in float32: up to 4e-9 for each weight
    assert abs(difference[0]) < 1e-6


def in_the_paper(model, rv):
    """Return the name of the paper's variable that a free variable of ours stands for."""
    name = {"z_abs": "z"}.get(rv.name, rv.name.removesuffix("_raw"))
    if name == "sample_weight" and "w" in model.named_vars:  # before the labels sign it
        name = "w"
    return name


@pytest.mark.parametrize("form", ["marginal", "hierarchical"])
@pytest.mark.parametrize("name", ["pfcvm", "rvm"])
def test_a_prior_without_a_slab_is_the_papers_too(name, form):
    """Of weights above 0 and of signed ones; the forms above have slabs."""
    own = make(name, kernel="linear", parametrization=form, **unlike(name, slabs=False))
    compiled, points = Compiled(own), prior_points(own, 5)
    for point in points:
        ours = float(at_own_labels(own, point))
        assert compiled.density(point) == pytest.approx(ours, rel=1e-10, abs=1e-6)


def test_log_jacobian_is_the_determinant_of_the_map(problem, compiled):
    """log |d paper's variables / d unconstrained vector| by central differences of PyMC's map.

    Nothing is compared up to a constant, and no density enters.
    """
    model = problem.model
    free = [rv for rv in model.free_RVs if rv.dtype.startswith("float")]  # masks are on no side
    point = prior_points(problem, 1, number=2)[0]
    model.set_data("label", point["y"])
    start = compiled.unconstrained(point)

    def paper(moved):
        found = compiled.variables(start | moved)
        return np.concatenate([np.ravel(found[in_the_paper(model, rv)]) for rv in free])

    columns = []
    for name in (model.rvs_to_values[rv].name for rv in free):
        for index in np.ndindex(np.shape(start[name])):
            step = np.zeros(np.shape(start[name]))
            step[index] = 1e-5
            ahead, behind = (paper({name: start[name] + s * step}) for s in (1.0, -1.0))
            columns.append((ahead - behind) / 2e-5)
    sign, log_det = np.linalg.slogdet(np.array(columns))
    assert sign != 0
    ours = float(problem.spec.log_jacobian(point, problem.hypers))
    assert log_det == pytest.approx(ours, abs=1e-5)


def test_leading_axes_give_the_same_density(problem):
    points = prior_points(problem, 3)
    together = at_own_labels(problem, stacked(points))
    assert together.shape == (3,)
    np.testing.assert_allclose(together, [at_own_labels(problem, p) for p in points], rtol=1e-12)
    eta = problem.decision(stacked(points))
    np.testing.assert_allclose(eta, stacked(points)["eta"], rtol=1e-10, atol=1e-12)


def test_shared_quantities_and_dims(problem):
    model = problem.model
    dims = {k: tuple(map(str, v)) for k, v in model.named_vars_to_dims.items()}
    expected = {"feature_weight": ("feature",), "sample_weight": ("basis",), "eta": ("obs",)}
    expected["covariate_weight"] = ("covariate",)
    assert problem.shapes.get("covariate_weight", (0,)) == (len(problem.always),)
    for key in problem.spec.shared:
        assert key in model.named_vars
        assert dims[key] == expected[key]
    for rv in model.free_RVs:
        if rv.ndim:
            assert dims[rv.name] == problem.spec.dims.get(rv.name, expected.get(rv.name))
    for dim, names in problem.coords.items():
        assert tuple(model.coords[dim]) == names


def test_what_other_code_relies_on(problem, compiled):
    """A finite start; sizes without the model; names of data, by which folds and refits rebind it.

    PyMC starts a custom distribution at 0, where the logarithm it is sampled through is not finite.
    """
    model, start = problem.model, compiled.start
    assert all(np.isfinite(value).all() for value in start.values())
    fresh = dataclasses.replace(problem)
    assert fresh.sizes == {k: np.size(x) for k, x in compiled.variables(start).items()}
    free = {rv.name: np.size(start[model.rvs_to_values[rv].name]) for rv in model.free_RVs}
    assert fresh.free_size == sum(free.values())
    of_features = [n for k, n in free.items() if model.named_vars_to_dims.get(k) == ("feature",)]
    assert fresh.free_feature_size == sum(of_features)
    assert "model" not in vars(fresh)
    names = {v.name for v in model.data_vars}
    # a constant that follows from rate and slab stands beside the hyperparameters
    hypers = {"sample_log_mass", "feature_log_mass", *vars(problem.hypers)}
    assert {"label"} <= names <= {*REBOUND, *hypers}
    assert ("basis_labels" in names) == problem.spec.labels_in_basis


def test_gradient_is_finite_far_out(problem, compiled):
    model = problem.model
    assert bool(problem.spec.masked) == bool(model.discrete_value_vars)  # methods go by `masked`
    if model.discrete_value_vars:  # then nothing that follows a gradient may take it
        assert "no discrete variables" in nuts.supports(Target(problem))
        return
    draws = rng(3)
    for size in (1.0, 5.0, 10.0):
        at = {k: size * draws.normal(size=np.shape(v)) for k, v in compiled.start.items()}
        assert all(np.isfinite(slope).all() for slope in compiled.values(at)[1:])


# --- every model ----------------------------------------------------------------------------------


@every_model
def test_hyperparameters_are_complete_and_described(name):
    """The copy that is filled has a value for each hyperparameter; the one asked stays as it is."""
    problem, text = make(name), make(name).describe()
    again = problem.asked.fill(problem.data.N, len(problem.basis), problem.data.D)
    assert again == problem.hypers
    assert problem.asked == ZOO[name].Hypers()
    for declared in problem.asked.declared():
        value = getattr(problem.hypers, declared.name)
        assert (declared.name in text) == (declared.name != COVARIATE_SD)  # there are none
        kind = declared.name.split("_")[0]
        if kind in ("sample", "feature"):  # not the words of its twin
            assert kind in declared.meaning
        assert value is not None
        assert isinstance(value, np.float64) == isinstance(value, float)  # PyTensor's constants
        assert declared.paper


@every_model
def test_what_was_asked_stays_as_it_was(name):
    """Every number given is kept; what was not given is None, unless it has a default."""
    problem = make(name)
    given = problem.hypers.posterior_fields() | problem.hypers.form_fields()
    given = {k: v for k, v in given.items() if k in problem.asked.__dataclass_fields__ and v}
    asked = dataclasses.replace(problem, asked=ZOO[name].Hypers(**given)).with_hypers()
    assert {k: getattr(asked.asked, k) for k in given} == given
    assert {k: getattr(asked.hypers, k) for k in given} == given
    assert asked.fingerprint == problem.fingerprint
    assert problem.asked.given() == {}


@every_model
def test_the_kernel_is_the_one_that_is_asked_for(name):
    degree = {"degree": 3} if "degree" in ZOO[name].Hypers.__dataclass_fields__ else {}
    for kernel in ZOO[name].kernels:
        assert make(name, kernel=kernel, **degree).kernel == make_kernel(kernel, 3)


@every_model
def test_a_setting_outside_its_choices_is_refused(name):
    for setting in ZOO[name].Hypers.choices():
        with pytest.raises(InputError, match=f"{setting} must be one of"):
            make(name, {setting: "nonsense"})


@every_model
def test_likelihood_is_normalised(name):
    """P(y = 0) + P(y = 1) = 1 at every sample; a density of the score integrates to 1."""
    problem = make(name)
    point = prior_points(problem, 1)[0]
    eta = problem.decision(point)
    if problem.spec.link == "identity":  # s = 2y - 1, within 40 standard deviations
        reach = 20.0 * np.asarray(point["tau"]) ** -0.5 + np.abs(eta).max()
        y = np.linspace(-reach, reach, 400_001)
        weight = 2.0 * (y[1] - y[0])
    else:
        y, weight = np.array([0, 1]), 1.0
    log_p = problem.spec.log_predictive(y[:, None], eta, point, problem.hypers)
    np.testing.assert_allclose(weight * np.exp(log_p).sum(axis=0), 1.0, atol=1e-9)


@every_model
def test_a_link_to_real_numbers_keeps_its_rule(name):
    """Link "identity": a variable tau, a real y, and a density of s = 2y - 1 at any real y."""
    problem = make(name)
    point = problem.simulate(rng(1))
    whole = np.isin(point["y"], (0, 1)).all()
    if problem.spec.link != "identity":
        assert whole
        return
    assert not whole
    assert "tau" in {v.name for v in problem.model.free_RVs}
    s = 2.0 * point["y"] - 1.0
    expected = -0.5 * point["tau"] * (s - point["eta"]) ** 2 + 0.5 * np.log(
        point["tau"] / (2.0 * np.pi)
    )
    found = problem.spec.log_predictive(point["y"], point["eta"], point, problem.hypers)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@every_model
def test_a_card_says_what_the_model_can_do(name):
    """What other code asks of a card holds for a draw and for the variables of the model."""
    spec, problem = ZOO[name], make(name, N=5, D=2)
    points = prior_points(problem, 40, number=2)
    assert spec.has_basis == ("sample_weight" in points[0])
    assert set(spec.shared) == {*SHARED} & {*points[0]}
    theta = np.array([point["feature_weight"] for point in points])
    assert spec.learns_theta == bool(np.ptp(theta, axis=0).all())
    for weight in spec.shared[:-1]:  # exactly 0 somewhere, by a mask
        values = np.array([point[weight] for point in points])
        assert (values == 0.0).any() == (weight in spec.masked)
    if "feature_weight" in spec.masked:  # then its means are inclusion probabilities
        assert np.isin(theta, (0.0, 1.0)).all()


def test_names_that_editors_complete_are_the_registry():
    assert get_args(ModelName) == tuple(ZOO)
    assert get_args(KernelName) == KERNELS


# --- covariates -----------------------------------------------------------------------------------


def adjusted(name, **settings):
    """Return a problem with four features and two covariates, and no two equal hyperparameters."""
    return make(name, D=6, always=ALWAYS, **unlike(name, covariates=True), **settings)


@every_model
def test_covariates_add_their_own_normal_prior_and_a_linear_part(name):
    """Against the model without them, from columns standardised by hand.

    Seen by no other test: an error that `build` and `log_joint` share, such as a wrong column.
    """
    problem = adjusted(name)
    kept = [k for k, n in enumerate(problem.data.feature_names) if n not in ALWAYS]
    without = Dataset.from_arrays(problem.data.X[:, kept], problem.y)
    alone = av.problem(name, without, **unlike(name))
    point = prior_points(problem, 1)[0]
    g, raw = point["covariate_weight"], problem.data.X[:, [4, 1]]
    C = (raw - raw.mean(axis=0)) / raw.std(axis=0)
    np.testing.assert_array_equal(problem.X, alone.X)
    shift = problem.decision(point) - alone.decision(point)
    np.testing.assert_allclose(shift, C @ g, atol=1e-12)
    eta = problem.decision(point)
    assert problem.spec.log_jacobian(point, problem.hypers) == alone.spec.log_jacobian(
        point, alone.hypers
    )
    if "z" in point and "u" not in point and problem.spec.link == "probit":
        return  # the latent form's likelihood is another one
    if "u" in point:  # explicit noise: of u, whose mean is eta
        point = {k: v for k, v in point.items() if k != "u"}
        problem, alone = (p.with_hypers(latent_noise="integrated") for p in (problem, alone))
    y = (np.arange(9) % 2).astype(float)
    of_labels = [
        p.spec.log_predictive(y, at, point, p.hypers).sum()
        for p, at in ((problem, eta), (alone, alone.decision(point)))
    ]
    found = problem.spec.log_joint(point, problem.inputs, y, problem.hypers)
    before = alone.spec.log_joint(point, alone.inputs, y, alone.hypers)
    prior = stats.norm.logpdf(g, 0.0, 0.6).sum()
    assert found - before == pytest.approx(prior + of_labels[0] - of_labels[1], abs=1e-8)


@every_model
def test_the_prior_of_covariates_is_part_of_the_log_prior(name):
    problem = adjusted(name)
    point = prior_points(problem, 1)[0]
    moved = point | {"covariate_weight": point["covariate_weight"] + 1.0}
    before, after = (problem.log_prior(p)["rest"] for p in (point, moved))
    g = point["covariate_weight"]
    expected = stats.norm.logpdf(g + 1.0, 0.0, 0.6).sum() - stats.norm.logpdf(g, 0.0, 0.6).sum()
    assert after - before == pytest.approx(expected, abs=1e-9)


@every_model
def test_without_covariates_nothing_is_said_of_them(name):
    problem = make(name)
    assert problem.C is None
    assert "covariate" not in problem.coords
    assert not [n for n in problem.shapes if "covariate" in n]
    assert not [n for n in problem.simulate(rng(0)) if "covariate" in n]
    assert "covariate_sd" not in problem.recorded() | problem.posterior_fields()
