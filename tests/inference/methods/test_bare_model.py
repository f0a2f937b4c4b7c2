"""A `pm.Model` of one's own is first class: what a problem of the zoo can, it can too.

Its posterior is known: phi[k] ~ N(0, 1) and n observations of N(phi[k], 1) each, so phi[k] is
normal with the mean sum(y) / (n + 1) and the variance 1 / (n + 1).
"""

import re
from dataclasses import dataclass
from types import SimpleNamespace

import arviz as az
import matplotlib
import numpy as np
import pymc as pm
import pytest
import xarray as xr
from scipy import stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference import BACKENDS, Result, Settings, option, register_backend
from ardvark.inference.checks.own_sbc import observing, quantities
from ardvark.inference.fits.datatree import own_draws
from ardvark.inference.target.density import Density
from tests.support import rng, seed

matplotlib.use("Agg")
DRUGS, EACH = ["placebo", "lactate", "glucose"], 5
DRUG = np.repeat(np.arange(3), EACH)
DOSE = np.linspace(0.5, 2.0, 15)


def make(sd=1.0, y=None):
    """The model; its variables are phi, one a drug, and their sum."""
    y = rng(0).normal(size=15) + 2.0 * (DRUG == 1) if y is None else y
    with pm.Model(coords={"drug": DRUGS, "row": range(15)}) as model:
        which = pm.Data("which", DRUG, dims="row")
        phi = pm.Normal("phi", 0.0, sd, dims="drug")
        pm.Deterministic("total", phi.sum())
        pm.Normal("y", phi[which], 1.0, observed=y, dims="row")
    return model


@pytest.fixture(scope="module")
def model():
    return make()


def exactly(model, chains=4, draws=500):
    """Independent draws of its posterior."""
    y = model.rvs_to_values[model["y"]].eval()
    mean = np.array([y[k == DRUG].sum() for k in range(3)]) / (EACH + 1)
    return rng(3).normal(mean, np.sqrt(1.0 / (EACH + 1)), size=(chains, draws, 3))


def density(phi, model):
    """Its log density of draws (chain, draw, drug), a constant apart."""
    y = model.rvs_to_values[model["y"]].eval()
    return -0.5 * (phi**2).sum(-1) - 0.5 * ((y - phi[..., DRUG]) ** 2).sum(-1)


@pytest.fixture(scope="module")
def fits(model):
    settings = {"random_seed": seed(1), "progressbar": False}
    return {name: av.fit(model, name, **settings) for name in ("exact", "advi")}


# --- what a fit holds -----------------------------------------------------------------------------


def test_likelihood_prior_and_data_stand_where_arviz_looks(model, fits):
    exact = fits["exact"]
    phi = exact["posterior"]["phi"].values
    y = exact["observed_data"]["y"].values
    likelihood = exact["log_likelihood"]["y"]
    assert likelihood.dims == ("chain", "draw", "row")
    np.testing.assert_allclose(likelihood, stats.norm.logpdf(y, phi[..., DRUG], 1.0), rtol=1e-9)
    np.testing.assert_allclose(exact["log_prior"]["phi"], stats.norm.logpdf(phi), rtol=1e-9)
    assert exact["constant_data"]["which"].values.tolist() == DRUG.tolist()
    left_out = az.loo(exact)
    assert left_out.n_data_points == 15
    assert list(az.psense_summary(exact, var_names=["phi"]).index) == [f"phi[{d}]" for d in DRUGS]


def test_an_approximation_gives_loo_nothing_to_misread(fits):
    assert "y" in fits["advi"]["pointwise_log_likelihood"]
    with pytest.raises(Exception, match="log likelihood not found"):
        az.loo(fits["advi"])


def test_a_model_without_observations_has_no_likelihood():
    with pm.Model() as model:
        x = pm.Normal("x")
        pm.Potential("g", -0.5 * (x - 1.0) ** 2)
    tree = av.fit(model, "laplace", random_seed=seed(1), progressbar=False)
    assert {"log_likelihood", "observed_data", "constant_data"}.isdisjoint(tree.children)


def test_a_fit_is_the_same_from_disk(fits, tmp_path):
    av.save(fits["exact"], tmp_path / "fit.nc")
    assert av.read(tmp_path / "fit.nc").identical(fits["exact"])


# --- names, figures, chosen variables -------------------------------------------------------------


def test_components_are_called_by_their_coordinates(model, fits):
    assert [*fits["exact"]["mixing"]["quantity"].values] == [f"phi[{d}]" for d in DRUGS] + ["total"]
    shifted = exactly(model)
    shifted[..., 1] += 2.0
    other = av.adopt(model, {"phi": shifted}, kind="approximation")
    found = av.compare({"exact": fits["exact"], "off": other}, quantities=["phi"])
    assert "phi[lactate]: the mean is off by" in found.text(full=True)


def test_a_mode_at_a_boundary_is_called_by_its_coordinate():
    with pm.Model(coords={"drug": DRUGS}) as model:
        pm.HalfNormal("tau", dims="drug")
    made = Density(model)
    assert [made.label(i) for i in range(3)] == [f"log tau[{d}]" for d in DRUGS]


def test_figures_need_no_weights_of_features(model, fits):
    shifted = exactly(model)
    shifted[..., 2] -= 3.0
    both = {**fits, "off": av.adopt(model, {"phi": shifted}, kind="approximation")}
    compared = av.compare(both)
    figure = compared.plot()
    assert figure.axes[0].get_yticklabels()[0].get_text() == "phi[glucose]"
    assert "phi[glucose] under off" in figure.get_suptitle().replace("\n", " ")
    assert "variables" in compared.pictures()
    with pytest.raises(InputError, match="no fit has 'feature_weight'"):
        compared.plot("forest")
    assert "Whether the model predicts" not in compared.text()


def test_only_what_such_a_model_has_is_judged(fits):
    compared = av.compare(fits)
    assert list(compared.verdicts()) == ["parameters", "verdict"]
    assert compared.verdict["advi"].statement == "as good as the reference."
    table = compared.table
    assert table.notna().any().all()
    errors = compared.distances.query("statistic == 'error' and quantity != 'lp'")
    assert table["worst_error"].to_dict() == errors.groupby("fit")["value"].max().to_dict()


def test_what_speaks_against_its_intervals_speaks_against_it():
    # a random walk of energies: more draws of such a chain would explore tails as slowly
    draws, walk = rng(1).normal(size=(4, 1000)), rng(2).normal(size=(4, 1000)).cumsum(axis=1)
    groups = {"posterior": {"x": draws}, "sample_stats": {"energy": walk}}
    tree = az.from_dict(groups)
    tree.attrs = {"kind": "mcmc", "status": "finished", "method": "nuts"}
    (found,) = av.compare({"nuts": tree}).verdict.values()
    assert found.words == {"parameters": "rough"}
    assert found.remedies[0].startswith("another form of the model")


def test_steps_that_fail_ask_for_another_form_of_the_model():
    # the neck of a funnel; `exact` chooses its steps, and more of them would fail as well
    with pm.Model() as funnel:
        log_scale = pm.Normal("log_scale", 0.0, 3.0)
        pm.Normal("x", 0.0, pm.math.exp(log_scale / 2), shape=9)
    fit = av.fit(funnel, "exact", limit=500, random_seed=seed(1), progressbar=False)
    (found,) = av.compare({"exact": fit}).verdict.values()
    assert found.level != "converged"
    assert "another form of the model, such as the non-centred one" in found.remedies


def test_named_variables_may_be_chosen(fits):
    chosen = av.compare(fits, quantities=["total"])
    assert {*chosen.distances["quantity"]} == {"scalar"}
    everything = av.compare(fits)
    assert {*everything.distances["quantity"]} > {"scalar", "variable"}
    with pytest.raises(InputError, match="phi"):
        av.compare(fits, quantities=["phj"])


# --- draws that were made elsewhere ---------------------------------------------------------------


def test_draws_of_a_model_are_adopted(model, fits):
    phi = exactly(model)
    tree = az.from_dict({
        "posterior": {"phi": phi}, "sample_stats": {"lp": density(phi, model)}
    })  # fmt: skip
    adopted = av.adopt(model, tree)
    assert adopted.attrs["prior_unchecked"] == ""
    assert adopted.attrs["status"] == "finished"
    np.testing.assert_allclose(adopted["posterior"]["total"], phi.sum(-1), rtol=1e-12)
    assert [*adopted["posterior"]["drug"].values] == DRUGS
    assert "y" in adopted["log_likelihood"]
    assert np.ptp(adopted["sample_stats"]["lp"].values - density(phi, model)) < 1e-9
    assert av.compare({**fits, "own": adopted}, reference="exact").verdict["own"].level == "trust"


def test_draws_in_another_order_are_put_in_order(model):
    phi = exactly(model)
    named = xr.Dataset({"phi": (("chain", "draw", "drug"), phi)}, coords={"drug": DRUGS})
    turned = av.adopt(model, named.isel(drug=[2, 0, 1]))
    np.testing.assert_array_equal(turned["posterior"]["phi"], phi)


def test_draws_of_another_model_are_refused(model):
    phi = exactly(model)
    wide = make(sd=3.0)
    stats_of = {"lp": density(phi, model)}
    tree = az.from_dict({"posterior": {"phi": phi}, "sample_stats": stats_of})
    with pytest.raises(InputError, match="differs from this model's by more than a constant"):
        av.adopt(wide, tree)
    other = az.from_dict({"posterior": {"phi": phi}, "observed_data": {"y": np.zeros(15)}})
    with pytest.raises(InputError, match="y in observed_data of these draws differs"):
        av.adopt(model, other)
    with pytest.raises(InputError, match="the draws lack phi"):
        av.adopt(model, {"total": phi.sum(-1)})
    with pytest.raises(InputError, match="phj"):
        av.adopt(model, {"phi": phi, "phj": phi})


def test_draws_without_their_density_are_unchecked(model):
    assert "without a log density" in av.adopt(model, {"phi": exactly(model)}).attrs[
        "prior_unchecked"
    ]  # fmt: skip


def test_variables_outside_their_support_are_refused():
    with pm.Model() as model:
        pm.HalfNormal("s")
    with pytest.raises(InputError, match="s must be above 0"):
        av.adopt(model, {"s": np.full((2, 10), -1.0)})


# --- calibration ----------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Wrong(Settings):
    factor: float = option(1.0, "what the right sd is multiplied by", at_least=0.0)
    seen: float = option(1.0, "the weight of the data", at_least=0.0)
    cores: int = option(1, "of which the draws do not depend", at_least=1, draws_depend=False)


@pytest.fixture
def conjugate():
    """A method that draws the posterior itself, with sds times a factor and data times another."""

    def fit(target, options, job):
        y = target.model.rvs_to_values[target.model["y"]].eval() * options.seen
        mean = np.array([y[k == DRUG].sum() for k in range(3)]) / (EACH * options.seen + 1)
        sd = options.factor * np.sqrt(1.0 / (EACH * options.seen + 1))
        random = np.random.default_rng(job.seed)
        phi = random.normal(mean, sd, size=(job.chains, job.draws, 3))
        lp = np.array([target.density.logp(x) for x in phi])
        return Result({"phi": phi, "total": phi.sum(-1)}, {"lp": lp})

    method = SimpleNamespace(NAME="conjugate", KIND="approximation", Options=Wrong, fit=fit)
    method.supports = lambda _: None
    register_backend(method)
    yield method.NAME
    del BACKENDS[method.NAME]


@pytest.mark.statistical
def test_a_right_method_is_calibrated_and_wrong_ones_are_found(model, conjugate):
    """With 200 replicates an sd of 0.5 times the right one has a p-value below 1e-10."""
    settings = {"replicates": 200, "draws": 10, "random_seed": seed(4), "progressbar": False}
    right = av.calibrate(model, conjugate, **settings)
    assert {"log density", "phi[placebo]", "phi[glucose]"} <= {*right.names}
    assert right.failed == 0
    assert right.p_value > 1e-5
    assert av.calibrate(model, conjugate, factor=0.5, **settings).p_value < 1e-6
    # the prior itself has the right marginals: only a function of the data sees that it is wrong
    blind = av.calibrate(model, conjugate, seen=0.0, **settings).table
    assert blind.index[0] == "log density"
    assert blind["holm"].iloc[0] < 1e-6
    assert blind.drop("log density")["holm"].min() > 1e-5


def test_replicates_are_kept_and_a_model_is_not_changed(model, conjugate, tmp_path):
    before = model.rvs_to_values[model["y"]].eval().copy()
    settings = {"draws": 20, "random_seed": seed(4), "progressbar": False, "folder": tmp_path}
    short = av.calibrate(model, conjugate, replicates=2, **settings)
    longer = av.calibrate(model, conjugate, replicates=4, cores=2, **settings)
    np.testing.assert_array_equal(longer.ranks[:2], short.ranks)
    av.calibrate(make(sd=2.0), conjugate, replicates=2, **settings)
    assert len(list(tmp_path.iterdir())) == 2  # another model has another file
    np.testing.assert_array_equal(model.rvs_to_values[model["y"]].eval(), before)


def test_what_cannot_be_simulated_is_refused(model):
    with pm.Model() as blind:
        pm.Normal("x")
    with pytest.raises(InputError, match="no observed variable"):
        av.calibrate(blind, "advi")
    with make() as held:
        pm.Potential("more", held["phi"].sum())
    with pytest.raises(InputError, match="potential more"):
        av.calibrate(held, "advi")
    with pytest.raises(InputError, match="test='sbc'"):
        av.calibrate(model, "nuts", test="joint")


def test_a_copy_observes_what_it_is_given(model):
    copy, values = observing(model)
    values["y"].set_value(np.ones(15))
    at = copy.initial_point()
    assert copy.compile_logp()(at) == pytest.approx(
        float(make(y=np.ones(15)).compile_logp()(at)), rel=1e-12
    )


def test_fits_of_other_data_are_not_compared_or_taken_on(model):
    """After `pm.set_data` a model is the same object, and another posterior."""
    y = model.rvs_to_values[model["y"]].eval()
    other = make(y=y + 0.1 * (DRUG == 2))
    short = {"sampler": "nuts", "limit": 256, "random_seed": seed(), "progressbar": False}
    fits = {
        "first": av.fit(model, "exact", **short),
        "second": av.adopt(other, {"phi": exactly(other)}),
    }
    with pytest.raises(InputError, match=r"y in observed_data of 'second' differs .* of 'first'"):
        av.compare(fits, reference="second")
    with pytest.raises(InputError, match=r"y in observed_data of this fit differs"):
        av.resume(other, fits["first"], progressbar=False)
    moved = make(y=y)
    with moved:
        pm.set_data({"which": DRUG[::-1].copy()})
    with pytest.raises(InputError, match=r"which in constant_data of this fit differs"):
        av.resume(moved, fits["first"], progressbar=False)
    assert av.compare({"a": fits["first"], "b": fits["first"]}, reference="a").verdict


def test_fits_of_two_models_are_said_to_be_so(model, fits):
    """A wider prior is no error of a method; nor is a model in another form, which may be meant."""
    wider = make(sd=3.0)
    both = {"exact": fits["exact"], "wider": av.adopt(wider, {"phi": 1.5 * exactly(wider)})}
    found = av.compare(both, reference="exact")
    assert "of models that are written differently" in found.text()
    assert "phi ~ Normal(0, 1); phi ~ Normal(0, 3)" in " ".join(found.text(full=True).split())
    same = av.compare({"a": fits["exact"], "b": fits["exact"]}, reference="a")
    assert "written differently" not in same.text()


def test_discrete_variables_are_adopted_and_no_fit_is_proposed_that_would_refuse_them():
    """z_i ~ Bernoulli(1/2) and y_i ~ N(z_i, 1): of each z_i alone the logit is y_i - 1/2."""
    y = rng(7).normal(size=4)
    with pm.Model() as mixture:
        z = pm.Bernoulli("z", 0.5, shape=4)
        pm.Normal("y", z, 1.0, observed=y)
    with pytest.raises(InputError, match=r"discrete .* has z; sum them out .* ardvark.adopt"):
        av.fit(mixture, "exact", progressbar=False)
    p = 1.0 / (1.0 + np.exp(0.5 - y))
    draws = [{"z": (rng(k).uniform(size=(4, 300, 4)) < p).astype(int)} for k in (8, 9)]
    fits = {f"{k}": av.adopt(mixture, d) for k, d in enumerate(draws)}
    said = str(av.compare(fits, reference="0"))
    assert "its draws were adopted" in said
    assert "ardvark.fit" not in said
    assert fits["0"]["posterior"]["z"].dtype == mixture["z"].dtype
    with pytest.raises(InputError, match="z is discrete; another value is the first in chain 0"):
        av.adopt(mixture, {"z": draws[0]["z"] + 0.5})


def flat():
    pm.Flat("shift")
    pm.Normal("y", pm.Normal("mean"), 1.0, observed=[1.0])


def excluded():
    pm.Uniform("y", 0.0, pm.Uniform("most", 0.0, 0.5), observed=[0.9])


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (lambda: pm.Normal("y", observed=[1.0]), "no variable that is neither observed nor fixed"),
        (flat, "the density does not depend on shift: the prior is flat"),
    ],
)
def test_a_model_without_a_posterior_is_refused(variables, said):
    with pm.Model() as model:
        variables()
    for method in ("exact", "laplace"):
        with pytest.raises(InputError, match=said):
            av.fit(model, method, progressbar=False)


def resized():
    slope = pm.Normal("slope", 0.0, 1.0)
    pm.Normal("y", slope * pm.Data("x", np.ones(3)), 1.0, observed=[1.0, 2.0, 3.0])
    pm.set_data({"x": np.ones(2)})


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        (excluded, "the density of y is 0: .* a prior may exclude the data"),
        (resized, r"cannot be computed: .* agree, as after pm\.set_data"),
    ],
)
def test_a_fit_that_cannot_begin_says_what_is_wrong_there(variables, said):
    with pm.Model() as model:
        variables()
    fits = {m: av.fit(model, m, progressbar=False) for m in ("exact", "laplace")}
    for failed in fits.values():
        assert failed.attrs["status"] == "failed"
        assert re.search(said, failed.attrs["reason"])
    assert "[do not use]" in str(av.compare(fits))


def test_what_is_derived_of_data_needs_no_dims():
    """Its length is that of the data, and its graph has not all variables."""
    x = rng(3).normal(size=6)
    with pm.Model() as line:
        slope, noise = pm.Normal("slope"), pm.HalfNormal("noise")
        mean = pm.Deterministic("mean", slope * pm.Data("x", x))
        pm.Normal("y", mean, noise, observed=x + 0.1)
    fit = av.fit(line, "laplace", draws=50, progressbar=False)
    drawn = fit["posterior"]["slope"].values[..., None] * x
    np.testing.assert_allclose(fit["posterior"]["mean"], drawn, rtol=1e-12)
    assert "reference: none" in str(av.compare({"laplace": fit}))
    given = {name: fit["posterior"][name].values for name in ("slope", "noise")}
    np.testing.assert_allclose(av.adopt(line, given)["posterior"]["mean"], drawn, rtol=1e-12)


def test_what_only_problems_have_says_so(model, fits):
    with pytest.raises(InputError, match=r"got a Model\. Of a pm\.Model, new rows"):
        av.predict(model, fits["exact"], [[1.0]])
    with pytest.raises(InputError, match="got a Model as one"):
        av.sensitivity(model, "laplace")
    with pytest.raises(InputError, match="have no group 'posterior', but prior"):
        av.adopt(model, pm.sample_prior_predictive(20, model=model, random_seed=0))
    with pytest.raises(TypeError, match="did you mean 'draws'"):
        av.fit(model, "exact", draw=5)


def test_calibration_asks_for_the_first_and_the_last_component_under_their_names(model):
    x = rng().normal(size=(2, 5, 3))
    found = quantities(own_draws(model, {"phi": x}))
    want = {"phi[placebo]": x[..., 0], "phi[glucose]": x[..., 2]}
    want["mean |phi|^1/2"] = (np.abs(x) ** 0.5).mean(-1)
    assert [*found] == [*want]
    for name, values in want.items():
        np.testing.assert_allclose(found[name], values, atol=1e-9)
