"""`simulate` draws from the model that its docstring states, line by line of the program.

A variable put through its own conditional distribution function is uniform on [0, 1], whatever its
parents, and independent of the others (Rosenblatt 1952). So each line of a generative program gives
uniform numbers, hundreds of them in a few hundred draws, and a Kolmogorov-Smirnov test of its own.
The conditional laws below are written from the docstrings, not from `simulate`.
"""

import numpy as np
import pytest
from scipy import special, stats

from ardvark.models import ZOO
from tests.models.forms import ALWAYS, make, prior_points, stacked, unlike
from tests.support import ALARM, rng, z_limit

N, D, DRAWS = 12, 6, 600

# --- conditional distribution functions -----------------------------------------------------------


def gamma(x, shape, rate):
    return stats.gamma.cdf(x, shape, scale=1.0 / rate)


def normal(x, mean=0.0, sd=1.0):
    return special.ndtr((x - mean) / sd)


def half_normal(x, sd):
    return 2.0 * special.ndtr(x / sd) - 1.0


def exponential(x, rate):
    return -np.expm1(-rate * x)


def half_cauchy(x, scale):
    return 2.0 / np.pi * np.arctan(x / scale)


def inverse_gamma(x, shape, scale):
    return special.gammaincc(shape, scale / x)


def bernoulli(x, p, V):
    """A discrete variable is uniform if its jump is filled at random: V is uniform."""
    p = np.broadcast_to(p, np.shape(x))
    return np.where(x == 1, 1.0 - p + V(p) * p, V(p) * (1.0 - p))


# --- the programs ---------------------------------------------------------------------------------


def pcvm(p, h, V):
    return {
        "alpha": gamma(p["alpha"], h.sample_shape, h.sample_rate),
        "w": half_normal(p["w"], p["alpha"] ** -0.5),
        "b": normal(p["bias"], sd=h.bias_sd),
        "y": bernoulli(p["y"], special.expit(p["eta"]), V),
    }


def pfcvm(p, h, V):
    return pcvm(p, h, V) | {
        "beta": gamma(p["beta"], h.feature_shape, h.feature_rate),
        "theta": half_normal(p["feature_weight"], p["beta"] ** -0.5),
    }


def rvm(p, h, V):
    return {
        "alpha": gamma(p["alpha"], h.sample_shape, h.sample_rate),
        "w": normal(p["sample_weight"], sd=p["alpha"] ** -0.5),
        "b": normal(p["bias"], sd=h.bias_sd),
        "y": bernoulli(p["y"], special.expit(p["eta"]), V),
    }


def rfvm(p, h, V):
    noise = {}
    if h.latent_noise != "none":
        noise["tau"] = gamma(p["tau"], h.noise_shape, h.noise_rate)
        noise["u"] = normal(p["u"], p["eta"], p["tau"][:, None] ** -0.5)
    return noise | {
        "psi": gamma(p["psi"], h.sample_shape, h.sample_rate),
        "a": normal(p["sample_weight"], sd=p["psi"] ** -0.5),
        "delta": gamma(p["delta"], h.feature_shape, h.feature_rate),
        "v": half_normal(p["feature_weight"], p["delta"] ** -0.5),
        "b": normal(p["bias"], sd=h.bias_sd),
        "y": bernoulli(p["y"], special.expit(p["u"] if noise else p["eta"]), V),
    }


def jcfo(p, h, V):
    return {
        "tau_0": exponential(p["tau_bias"], h.gamma1 / 2.0),
        "beta_0": normal(p["bias"], sd=p["tau_bias"] ** 0.5),
        "tau": exponential(p["tau"], h.gamma1 / 2.0),
        "beta": normal(p["sample_weight"], sd=p["tau"] ** 0.5),
        "rho": exponential(p["rho"], h.gamma2 / 2.0),
        "theta": half_normal(p["feature_weight"], p["rho"] ** 0.5),
        "z": normal(p["z"], p["eta"]),
    }


def sparse_probit(p, h, V):
    return {
        "tau_0": exponential(p["tau_bias"], h.gamma1 / 2.0),
        "beta_0": normal(p["bias"], sd=p["tau_bias"] ** 0.5),
        "tau": exponential(p["tau"], h.gamma1 / 2.0),
        "beta": normal(p["beta"], sd=p["tau"] ** 0.5),
        "y": bernoulli(p["y"], special.ndtr(p["eta"]), V),
    }


def masks(p, h, V):
    """The law of the masks is tested bit by bit and by counts: test_fsklr.py."""
    found = {"alpha": normal(p["alpha"], sd=h.xi**-0.5)}
    for mask, what, a in (("z", "sample", h.a_z), ("zeta", "feature", getattr(h, "a_zeta", None))):
        if a is None:
            continue
        n = p[mask].shape[-1]
        if h.mask_probability == "explicit":
            q = p[f"{what}_mask_probability"]
            found[f"q of {mask}"] = q ** (a / n)  # Beta(a/n, 1)
            on = q[:, None] if h.mask_prior == "shared" else q
            found[mask] = bernoulli(p[mask], on, V)
        elif h.mask_prior == "independent":
            found[mask] = bernoulli(p[mask], a / (a + n), V)
    return found


def fsklr(p, h, V):
    return masks(p, h, V) | {"y": bernoulli(p["y"], special.expit(p["eta"]), V)}


def fs_skr(p, h, V):
    score = 2.0 * p["y"] - 1.0
    return masks(p, h, V) | {
        "tau": gamma(p["tau"], h.noise_shape, h.noise_rate),
        "s": normal(score, p["eta"], p["tau"][:, None] ** -0.5),
    }


def horseshoe(p, h, V):
    """The scales given what is behind them, and by themselves: half-Cauchy."""
    tau, local = p["tau"], p["lambda"]
    slab = p["c2"][:, None] ** -1 + (tau[:, None] * local) ** -2  # precisions add up
    return {
        "c2": inverse_gamma(p["c2"], h.slab_df / 2.0, h.slab_df * h.slab_scale**2 / 2.0),
        "a_tau": inverse_gamma(p["tau_variance"], 0.5, 0.5),
        "tau": half_normal(tau, h.global_scale * p["tau_variance"] ** 0.5),
        "tau alone": half_cauchy(tau, h.global_scale),
        "a": inverse_gamma(p["lambda_variance"], 0.5, 0.5),
        "lambda": half_normal(local, p["lambda_variance"] ** 0.5),
        "lambda alone": half_cauchy(local, 1.0),
        "beta": normal(p["beta"], sd=slab**-0.5),
        "b": normal(p["bias"], sd=h.bias_sd),
        "y": bernoulli(p["y"], special.expit(p["eta"]), V),
    }


PROGRAMS = {
    f.__name__: f for f in (pfcvm, pcvm, rvm, jcfo, sparse_probit, fsklr, fs_skr, rfvm, horseshoe)
} | {"sklr": fsklr}
MASK_FORMS = [
    {},
    {"mask_probability": "explicit"},
    {"mask_prior": "shared"},
    {"mask_prior": "shared", "mask_probability": "explicit"},
    {"mask_prior": "printed"},
]
FORMS = {
    "rfvm": [{"latent_noise": "explicit"}, {"latent_noise": "none"}],
    **dict.fromkeys(("fsklr", "sklr", "fs_skr"), MASK_FORMS),
    "jcfo": [{"scale": "fixed"}],
    "sparse_probit": [{"scale": "fixed"}],
}
"""Settings that change what `simulate` does; kernels only change eta, which is an equality."""


@pytest.fixture(
    scope="module",
    params=[(n, choice) for n in ZOO for choice in FORMS.get(n, [{}])],
    ids=lambda form: "-".join([form[0], *form[1].values()]),
)
def simulated(request):
    """A problem of each form and its draws; the tests of a form run together."""
    name, choice = request.param
    given = unlike(name, slabs=False, covariates=True)
    problem = make(name, choice, N=N, D=D + 2, always=ALWAYS, **given)
    return problem, stacked(prior_points(problem, DRAWS, number=20))


@pytest.mark.statistical
def test_every_line_of_the_program_is_followed(simulated):
    """Each line's numbers are uniform: the false alarm of all lines together is `ALARM`.

    The shortest have 600 numbers. That sees a distribution function off by 0.12, and the grossest
    slips (root, rate, precision) move it by 0.2 and more at these hyperparameters.
    """
    problem, p = simulated
    fill, program = rng(21), PROGRAMS[problem.spec.name]
    uniform = program(p, problem.hypers, lambda like: fill.random(np.shape(like)))
    uniform["g"] = normal(p["covariate_weight"], sd=problem.hypers.covariate_sd)
    for line, u in uniform.items():
        pvalue = stats.kstest(np.ravel(u), "uniform").pvalue
        assert pvalue > ALARM / len(uniform), line


@pytest.mark.statistical
def test_labels_follow_eta(simulated):
    """The residuals of y have mean 0 at every eta: y has eta's link, not another.

    Latent noise is integrated out: y given u is above, y given eta is `log_predictive`.
    """
    problem, p = simulated
    if problem.spec.link == "identity":
        residual = (2.0 * p["y"] - 1.0 - p["eta"]) * p["tau"][:, None] ** 0.5
        variance = np.ones_like(residual)
    else:
        probability = np.exp(problem.spec.log_predictive(1, p["eta"], p, problem.hypers))
        residual, variance = p["y"] - probability, probability * (1.0 - probability)
    for weight in (1.0, np.sign(p["eta"]), np.tanh(p["eta"])):
        z = (weight * residual).sum() / np.sqrt((weight**2 * variance).sum())
        assert abs(z) < z_limit(3)


def test_what_is_no_draw_is_an_equality(simulated):
    problem, p = simulated
    np.testing.assert_allclose(problem.decision(p), p["eta"], rtol=1e-9, atol=1e-12)
    if problem.basis_labels is not None:
        np.testing.assert_array_equal(p["sample_weight"], problem.basis_labels * p["w"])
    if problem.spec.name == "jcfo":
        np.testing.assert_array_equal(p["y"], p["z"] > 0.0)
    if problem.spec.needed == ("beta",) and not problem.spec.masked:
        np.testing.assert_array_equal(p["feature_weight"], np.abs(p["beta"]))
    if "alpha" in p and "z" in p:
        np.testing.assert_array_equal(p["sample_weight"], p["z"] * p["alpha"])
        np.testing.assert_array_equal(p["feature_weight"], p.get("zeta", np.ones((DRAWS, D))))


# --- the scale of the defaults --------------------------------------------------------------------


def check_prior_range(name, choice, N, D, draws):
    """The prior median of |eta| lies between 0.5 and 3: neither a coin flip nor a certainty.

    So at most half of |eta| is below 0.5, and at least half below 3. The rows of one draw go
    together: the sample are the shares of single draws. A prior whose median is at a limit (RVM
    with the rbf kernel has 3 at 200 x 40) passes by all but `ALARM`; one four times too wide or
    too narrow has shares that no limit here reaches.
    """
    problem = make(name, choice, N=N, D=D)
    generator = rng(4)
    eta = np.abs([problem.simulate(generator)["eta"] for _ in range(draws)])
    for share, sign in (((eta < 0.5).mean(axis=1), 1.0), ((eta < 3.0).mean(axis=1), -1.0)):
        error = share.std(ddof=1) / np.sqrt(draws)
        assert sign * (share.mean() - 0.5) < z_limit(2) * error


KERNELS = {n: [{"kernel": k} for k in spec.kernels] or [{}] for n, spec in ZOO.items()}
BY_KERNEL = pytest.mark.parametrize(
    ("name", "choice"),
    [pytest.param(n, c, id="-".join([n, *c.values()])) for n in ZOO for c in KERNELS[n]],
)
FAT = (72, 7129)


@pytest.mark.statistical
@BY_KERNEL
def test_the_prior_is_useful_at_small_and_tall_data(name, choice):
    check_prior_range(name, choice, 30, 6, draws=200)
    check_prior_range(name, choice, 200, 40, draws=40)


@pytest.mark.statistical
@pytest.mark.parametrize("name", [n for n, spec in ZOO.items() if not spec.fixed])
def test_the_prior_is_useful_at_fat_data(name):
    """Where theta is fixed, each draw forms the same kernel matrix: those run in the slow form."""
    check_prior_range(name, KERNELS[name][0], *FAT, draws=60)


@pytest.mark.statistical
@pytest.mark.parametrize(("N", "D", "draws"), [(30, 6, 400), (2000, 10, 60), (*FAT, 60)])
@pytest.mark.parametrize("name", ["pfcvm", "rfvm"])
def test_the_dense_prior_is_useful_at_every_size(name, N, D, draws):
    dense = {"kernel": "linear", "active_features": "all", "active_samples": "all"}
    check_prior_range(name, dense, N, D, draws)


@pytest.mark.slow
@pytest.mark.statistical
@BY_KERNEL
def test_the_prior_is_useful_at_fat_data_with_every_kernel(name, choice):
    check_prior_range(name, choice, *FAT, draws=200)
