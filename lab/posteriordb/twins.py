"""Models of posteriordb written in PyMC: a function of the data for each, which returns a model.

posteriordb (Magnusson et al. 2025, https://github.com/stan-dev/posteriordb) has its models in Stan.
Their variables have the same names here, so that draws can be compared. Stan's improper priors are
`pm.Flat` and `pm.HalfFlat`. Whether a twin has the density of the Stan model is checked by
`identities.py` on posteriordb's own draws.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt

Data = Mapping[str, Any]
Columns = Callable[[Data], Mapping[str, np.ndarray]]
Twin = Callable[[Data], pm.Model]


# --- linear regressions ---------------------------------------------------------------------------


def line(response: Callable[[Data], np.ndarray], columns: Columns, cauchy: float = 0.0) -> Twin:
    """Return the twin of a regression with an intercept, flat priors, and normal noise.

    Parameters
    ----------
    response : callable
        The data's y (N,).
    columns : callable
        The data's columns (N,) by name.
    cauchy : float
        The scale of a half-Cauchy prior of sigma; 0: a flat one.
    """

    def twin(data: Data) -> pm.Model:
        named = {"intercept": np.ones(len(response(data))), **columns(data)}
        X = np.column_stack(list(named.values()))
        with pm.Model(coords={"term": list(named)}) as model:
            beta = pm.Flat("beta", dims="term")
            sigma = pm.HalfCauchy("sigma", cauchy) if cauchy else pm.HalfFlat("sigma")
            pm.Normal("y", X @ beta, sigma, observed=response(data))
        return model

    return twin


def given(*names: str) -> Columns:
    """Return columns as they are."""
    return lambda data: {name: column(data, name) for name in names}


def column(data: Data, name: str) -> np.ndarray:
    """Return a column as numbers."""
    return np.asarray(data[name], dtype=float)


def centred(x: np.ndarray, scale: float = 0.0) -> np.ndarray:
    """Return a column less its mean, divided by `scale` standard deviations if that is not 0."""
    return (x - x.mean()) / (scale * x.std(ddof=1) if scale else 1.0)


def with_product(a: str, b: str, change: Callable[[np.ndarray], np.ndarray]) -> Columns:
    """Return two changed columns, and their product."""

    def columns(data: Data) -> dict[str, np.ndarray]:
        first, second = change(column(data, a)), change(column(data, b))
        return {a: first, b: second, f"{a} x {b}": first * second}

    return columns


def earnings_with_product(standardised: bool) -> Columns:
    """Return height (standardised or not), sex, and their product."""

    def columns(data: Data) -> dict[str, np.ndarray]:
        height, male = column(data, "height"), column(data, "male")
        height = centred(height, 1.0) if standardised else height
        return {"height": height, "male": male, "height x male": height * male}

    return columns


def levels(name: str, codes: Mapping[str, int]) -> Columns:
    """Return a column of 0 and 1 for each level."""
    return lambda data: {word: (column(data, name) == code) * 1.0 for word, code in codes.items()}


def mesquite(data: Data) -> dict[str, np.ndarray]:
    """Return canopy volume, area and shape, total height and density in logs, and the group."""
    a, b = column(data, "diam1"), column(data, "diam2")
    return {
        "log volume": np.log(a * b * column(data, "canopy_height")),
        "log area": np.log(a * b),
        "log shape": np.log(a / b),
        "log height": np.log(column(data, "total_height")),
        "log density": np.log(column(data, "density")),
        "group": column(data, "group"),
    }


def some(columns: Columns, *names: str) -> Columns:
    """Return some of the columns."""
    return lambda data: {name: columns(data)[name] for name in names}


def logs(*names: str) -> Columns:
    """Return columns in logs; `group` stays as it is."""
    return lambda data: {
        n: column(data, n) if n == "group" else np.log(column(data, n)) for n in names
    }


def nes(data: Data) -> dict[str, np.ndarray]:
    """Return the columns of the National Election Study, age in four groups."""
    ages = levels("age_discrete", {"30 to 44": 2, "45 to 64": 3, "from 65": 4})(data)
    first = given("real_ideo", "race_adj")(data)
    return {**first, **ages, **given("educ1", "gender", "income")(data)}


def response(name: str, change: Callable[[np.ndarray], np.ndarray] = np.asarray) -> Any:
    """Return the function that reads a response, changed."""
    return lambda data: change(column(data, name))


def priors(data: Data) -> pm.Model:
    """Return linear regression with normal priors (`blr`)."""
    with pm.Model() as model:
        beta = pm.Normal("beta", 0.0, 10.0, shape=int(data["D"]))
        sigma = pm.HalfNormal("sigma", 10.0)
        pm.Normal("y", np.asarray(data["X"]) @ beta, sigma, observed=column(data, "y"))
    return model


def kilpisjarvi(data: Data) -> pm.Model:
    """Return a line through temperatures, with normal priors."""
    with pm.Model() as model:
        alpha = pm.Normal("alpha", data["pmualpha"], data["psalpha"])
        beta = pm.Normal("beta", data["pmubeta"], data["psbeta"])
        sigma = pm.HalfFlat("sigma")
        pm.Normal("y", alpha + beta * column(data, "x"), sigma, observed=column(data, "y"))
    return model


# --- hierarchies, time series, mixtures, Gaussian processes ---------------------------------------


def schools(centred_form: bool) -> Twin:
    """Return the eight schools (Rubin 1981), in either form."""

    def twin(data: Data) -> pm.Model:
        J = int(data["J"])
        with pm.Model() as model:
            mu = pm.Normal("mu", 0.0, 5.0)
            tau = pm.HalfCauchy("tau", 5.0)
            if centred_form:
                theta = pm.Normal("theta", mu, tau, shape=J)
            else:
                raw = pm.Normal("theta_trans", 0.0, 1.0, shape=J)
                theta = pm.Deterministic("theta", mu + tau * raw)
            pm.Normal("y", theta, column(data, "sigma"), observed=column(data, "y"))
        return model

    return twin


def autoregression(data: Data) -> pm.Model:
    """Return an autoregression of order K (`arK`)."""
    y, K = column(data, "y"), int(data["K"])
    lags = np.column_stack([y[K - k - 1 : len(y) - k - 1] for k in range(K)])
    with pm.Model() as model:
        alpha = pm.Normal("alpha", 0.0, 10.0)
        beta = pm.Normal("beta", 0.0, 10.0, shape=K)
        sigma = pm.HalfCauchy("sigma", 2.5)
        pm.Normal("y", alpha + lags @ beta, sigma, observed=y[K:])
    return model


def powers(base: Any, length: int) -> Any:
    """Return the lower triangular matrix base^(s - t): what a recursion carries from t to s."""
    distance = np.subtract.outer(np.arange(length), np.arange(length))
    return pt.where(distance >= 0, base ** np.maximum(distance, 0), 0.0)


def arma(data: Data) -> pm.Model:
    """Return ARMA(1, 1), its errors solved from their recursion."""
    y = column(data, "y")
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 10.0)
        phi = pm.Normal("phi", 0.0, 2.0)
        theta = pm.Normal("theta", 0.0, 2.0)
        sigma = pm.HalfCauchy("sigma", 2.5)
        before = pt.concatenate([mu[None], pt.as_tensor(y[:-1])])
        # err_t = y_t - mu - phi y_{t-1} - theta err_{t-1}
        err = powers(-theta, len(y)) @ (y - mu - phi * before)
        pm.Potential("errors", pm.logp(pm.Normal.dist(0.0, sigma), err).sum())
    return model


def garch(data: Data) -> pm.Model:
    """Return GARCH(1, 1); beta1 is uniform below 1 - alpha1, for which its share stands."""
    y = column(data, "y")
    with pm.Model() as model:
        mu = pm.Flat("mu")
        alpha0 = pm.HalfFlat("alpha0")
        alpha1 = pm.Uniform("alpha1", 0.0, 1.0)
        share = pm.Uniform("share", 0.0, 1.0)
        pm.Potential("flat in beta1", pt.log1p(-alpha1))
        beta1 = pm.Deterministic("beta1", share * (1.0 - alpha1))
        first = pt.as_tensor(np.array([float(data["sigma1"]) ** 2]))
        steps = pt.concatenate([first, alpha0 + alpha1 * (y[:-1] - mu) ** 2])
        variance = powers(beta1, len(y)) @ steps
        pm.Normal("y", mu, pt.sqrt(variance), observed=y)
    return model


def mixture(data: Data) -> pm.Model:
    """Return two normals whose means are in order."""
    ordered = pm.distributions.transforms.ordered
    with pm.Model() as model:
        mu = pm.Normal("mu", 0.0, 2.0, shape=2, transform=ordered, initval=[-1.0, 1.0])
        sigma = pm.HalfNormal("sigma", 2.0, shape=2)
        theta = pm.Beta("theta", 5.0, 5.0)
        weights = pt.stack([theta, 1.0 - theta])
        pm.NormalMixture("y", weights, mu=mu, sigma=sigma, observed=column(data, "y"))
    return model


def covariance(x: np.ndarray, alpha: Any, rho: Any, noise: Any) -> Any:
    """Return alpha^2 exp(-(x - x')^2 / (2 rho^2)), and noise on the diagonal."""
    gaps = np.subtract.outer(x, x) ** 2
    return alpha**2 * pt.exp(-0.5 * gaps / rho**2) + noise * np.eye(len(x))


def gp_regression(data: Data) -> pm.Model:
    """Return Gaussian process regression; sigma is the noise's variance, as in the Stan program."""
    x = column(data, "x")
    with pm.Model() as model:
        rho = pm.Gamma("rho", 25.0, 4.0)
        alpha = pm.HalfNormal("alpha", 2.0)
        sigma = pm.HalfNormal("sigma", 1.0)
        cov = covariance(x, alpha, rho, sigma)
        pm.MvNormal("y", np.zeros(len(x)), cov, observed=column(data, "y"))
    return model


def gp_poisson(data: Data) -> pm.Model:
    """Return counts whose log rate is a Gaussian process."""
    x = column(data, "x")
    with pm.Model() as model:
        rho = pm.Gamma("rho", 25.0, 4.0)
        alpha = pm.HalfNormal("alpha", 2.0)
        raw = pm.Normal("f_tilde", 0.0, 1.0, shape=len(x))
        root = pt.linalg.cholesky(covariance(x, alpha, rho, 1e-10))
        f = pm.Deterministic("f", root @ raw)
        pm.Poisson("k", pt.exp(f), observed=np.asarray(data["k"]))
    return model


KIDS = ("mom_hs", "mom_iq")
TWINS: dict[str, Twin] = {
    "eight_schools-eight_schools_centered": schools(True),
    "eight_schools-eight_schools_noncentered": schools(False),
    "earnings-earn_height": line(response("earn"), given("height")),
    "earnings-log10earn_height": line(response("earn", np.log10), given("height")),
    "earnings-logearn_interaction": line(response("earn", np.log), earnings_with_product(False)),
    "earnings-logearn_interaction_z": line(response("earn", np.log), earnings_with_product(True)),
    "kidiq-kidscore_momhs": line(response("kid_score"), given("mom_hs"), cauchy=2.5),
    "kidiq-kidscore_momhsiq": line(response("kid_score"), given(*KIDS), cauchy=2.5),
    "kidiq-kidscore_interaction": line(
        response("kid_score"), with_product(*KIDS, np.asarray), cauchy=2.5
    ),
    "kidiq_with_mom_work-kidscore_interaction_c": line(
        response("kid_score"), with_product(*KIDS, centred)
    ),
    "kidiq_with_mom_work-kidscore_mom_work": line(
        response("kid_score"), levels("mom_work", {"work 2": 2, "work 3": 3, "work 4": 4})
    ),
    "mesquite-mesquite": line(
        response("weight"),
        given("diam1", "diam2", "canopy_height", "total_height", "density", "group"),
    ),
    "mesquite-logmesquite_logvolume": line(
        response("weight", np.log), some(mesquite, "log volume")
    ),
    "mesquite-logmesquite_logvas": line(response("weight", np.log), mesquite),
    "nes1980-nes": line(response("partyid7"), nes),
    "sblrc-blr": priors,
    "sblri-blr": priors,
    "kilpisjarvi_mod-kilpisjarvi": kilpisjarvi,
    "arK-arK": autoregression,
    "arma-arma11": arma,
    "garch-garch11": garch,
    "low_dim_gauss_mix-low_dim_gauss_mix": mixture,
    "gp_pois_regr-gp_regr": gp_regression,
    "gp_pois_regr-gp_pois_regr": gp_poisson,
}
"""The twins of the trial, by posterior."""
UNSEEN: dict[str, Twin] = {
    "earnings-logearn_height": line(response("earn", np.log), given("height")),
    "earnings-logearn_height_male": line(response("earn", np.log), given("height", "male")),
    "earnings-logearn_logheight_male": line(
        response("earn", np.log),
        lambda data: {"log height": np.log(column(data, "height")), "male": column(data, "male")},
    ),
    "kidiq-kidscore_momiq": line(response("kid_score"), given("mom_iq"), cauchy=2.5),
    "kidiq_with_mom_work-kidscore_interaction_z": line(
        response("kid_score"), with_product(*KIDS, lambda x: centred(x, 2.0))
    ),
    "mesquite-logmesquite": line(
        response("weight", np.log),
        logs("diam1", "diam2", "canopy_height", "total_height", "density", "group"),
    ),
    "mesquite-logmesquite_logva": line(
        response("weight", np.log), some(mesquite, "log volume", "log area", "group")
    ),
    "mesquite-logmesquite_logvash": line(
        response("weight", np.log),
        some(mesquite, "log volume", "log area", "log shape", "log height", "group"),
    ),
    "nes2000-nes": line(response("partyid7"), nes),
}
"""Twins on which nothing is decided: what is mended on the others is tried on these."""
