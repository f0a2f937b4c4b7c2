"""Signed effects: every model and kernel against finite differences of its own decision."""

import numpy as np
import pytest

import ardvark as av
from ardvark.inference.fits import activity
from tests.inference.fits.weights import IDS, KERNELS, prior_draws, tree_of
from tests.support import rng

STEP = 1e-5


def slopes(problem, arrays):
    """Return the mean over rows of d eta_i / d x_ik (chain, draw, D), by central differences."""
    found = []
    for k in range(problem.data.D):
        shift = STEP * np.eye(problem.data.D)[k]
        up, down = (problem.decision(arrays, problem.X + s) for s in (shift, -shift))
        found.append((up - down).mean(-1) / (2 * STEP))
    return np.stack(found, axis=-1)


def taken_out(problem, arrays):
    """Return what each sample adds to eta (chain, draw, N, B), from the model's own decision."""
    eta, out = problem.decision(arrays), []
    for j in range(len(problem.basis)):
        without = arrays["sample_weight"].copy()
        without[..., j] = 0.0
        out.append(eta - problem.decision({**arrays, "sample_weight": without}))
    return np.stack(out, axis=-1)


def check(found, what, values):
    """Compare mean, sd, sign and quantiles over draws with those of values (chain, draw, k)."""
    flat = values.reshape(-1, values.shape[-1])
    size = np.abs(flat).max()
    close = {"rtol": 1e-6, "atol": 1e-7 * size}  # of a difference of etas
    np.testing.assert_allclose(found[f"effect_{what}"], flat.mean(0), **close)
    np.testing.assert_allclose(found[f"effect_sd_{what}"], flat.std(0), **close)
    flat = np.where(np.abs(flat) < 1e-9 * size, 0.0, flat)  # rounding, of what has no effect
    signs = np.maximum((flat > 0.0).mean(0), (flat < 0.0).mean(0))
    np.testing.assert_array_equal(found[f"direction_{what}"], signs)
    np.testing.assert_allclose(
        found[f"effect_at_{what}"],
        np.quantile(flat, [0.05, 0.25, 0.5, 0.75, 0.95], axis=0),
        **close,
    )


OWN_UNITS = [k for k in KERNELS if k[0] in ("pfcvm", "sparse_probit")]
CASES = [(*k, True) for k in KERNELS] + [(*k, False) for k in OWN_UNITS]


@pytest.mark.parametrize(
    ("name", "settings", "standardize"), CASES, ids=[*IDS, *(f"{k[1]}-own" for k in OWN_UNITS)]
)
def test_the_direction_is_the_mean_slope_per_standard_deviation(
    name, settings, standardize, small_data
):
    problem = av.problem(name, small_data(N=12, D=4), standardize=standardize, **settings)
    arrays = prior_draws(problem)
    found = av.select(problem, tree_of(problem, **arrays))
    signed = slopes(problem, arrays) * problem.X.std(axis=0)
    assert (signed > 0.0).any()
    assert (signed < 0.0).any()
    check(found, "feature", signed)
    linear = problem.kernel is None or problem.kernel.is_primal
    assert found.attrs["direction"] == ("weight" if linear else "average partial effect")
    if linear:  # then the effect is its size
        np.testing.assert_allclose(found["size_feature"], np.abs(signed).mean((0, 1)), rtol=1e-6)
    if "sample_weight" in problem.spec.shared:
        change = taken_out(problem, arrays)
        check(found, "sample", np.sign(arrays["sample_weight"]) * change.std(axis=-2))
        np.testing.assert_allclose(
            found["size_sample"], change.std(axis=-2).mean((0, 1)), rtol=1e-6, atol=1e-12
        )


def test_a_constant_feature_has_no_direction():
    X = rng(1).normal(size=(10, 3))
    X[:, 1] = 4.0
    for kernel in ("linear", "rbf"):
        problem = av.problem("jcfo", (X, np.arange(10) % 2), kernel=kernel, basis=X + 1.0)
        arrays = {"feature_weight": np.full((1, 2, 3), 0.2), "sample_weight": np.ones((1, 2, 10))}
        found = av.select(problem, tree_of(problem, **arrays, bias=np.zeros((1, 2))))
        assert (found["effect_feature"].values != 0.0).tolist() == [True, False, True]
        assert found["direction_feature"].fillna(-1.0).values.tolist() == [1.0, -1.0, 1.0]


def test_the_more_probable_sign_by_hand(small_data):
    """Of five draws: three above 0; as many on either side, and one at 0; all at 0, no sign."""
    problem = av.problem("sparse_probit", small_data(N=12, D=3))
    beta = np.array([[2.0, -1.0, 0.0], [0.1, -1.0, 0.0], [3.0, 1.0, 0.0], [-9.0, 1.0, 0.0],
                     [-9.0, 0.0, 0.0]])[None]  # fmt: skip
    found = av.select(problem, tree_of(problem, feature_weight=np.abs(beta), beta=beta))
    np.testing.assert_allclose(found["direction_feature"], [0.6, 0.4, np.nan])


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_draws_in_blocks_are_the_same_draws(kernel, small_data, monkeypatch):
    problem = av.problem("pfcvm", small_data(N=12, D=5), kernel=kernel)
    tree = tree_of(problem, **prior_draws(problem, chains=2, draws=30))
    whole = av.select(problem, tree)
    monkeypatch.setattr(activity, "_CHUNK", 70)  # one feature, and some draws, at a time
    parts = av.select(problem, tree)
    for name in ("effect_feature", "effect_sd_sample", "effect_at_feature", "share_features",
                 "direction_feature", "curve_feature"):  # fmt: skip
        np.testing.assert_allclose(parts[name], whole[name], rtol=1e-12, atol=1e-14)


def test_the_share_of_the_squared_effect_that_active_ones_carry():
    effects = np.array([[0.3, 0.09, 0.04], [0.05, 0.05, 0.0], [0.0, 0.0, 0.0]])
    found = activity.carried(effects, effects > 0.1)
    np.testing.assert_allclose(found[:2], [0.09 / (0.09 + 0.0081 + 0.0016), 0.0])
    assert np.isnan(found[2])  # there is nothing to carry


def test_without_what_the_sign_comes_from_there_is_p_active_alone(small_data):
    """Adopted draws of sparse probit regression may have |beta| only."""
    problem = av.problem("sparse_probit", small_data(N=12, D=3))
    arrays = prior_draws(problem)
    both = av.select(problem, tree_of(problem, **arrays))
    del arrays["beta"]
    found = av.select(problem, tree_of(problem, **arrays))
    np.testing.assert_array_equal(found["p_active_feature"], both["p_active_feature"])
    np.testing.assert_allclose(found["size_feature"], both["size_feature"])
    assert "effect_feature" in both
    assert "effect_feature" not in found
    table = av.effects(tree_of(problem, **arrays))
    assert table.empty


@pytest.mark.parametrize(
    ("model", "unit"),
    [("pfcvm", "log odds"), ("jcfo", "probit units"), ("fs_skr", "units of the score"),
     ("rfvm", "log odds before the latent noise")],
)  # fmt: skip
def test_the_unit_is_that_of_eta(model, unit, small_data):
    problem = av.problem(model, small_data(N=12, D=3))
    tree = tree_of(problem, **prior_draws(problem))
    assert av.select(problem, tree).attrs["unit"] == unit
