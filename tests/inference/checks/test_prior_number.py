"""Another number of features from the same draws: the ratios, the weights, and what is said."""

import html

import numpy as np
import pytest
from scipy import special, stats

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.checks import prior_number
from ardvark.inference.checks.prior_number import log_ratios, mapped
from ardvark.inference.fits import activity
from ardvark.inference.fits.diagnostics import smoothed
from tests.models.forms import make, prior_points, stacked
from tests.support import rng, z_limit

MODELS = [
    ("rfvm", {}, (9, 4)),
    ("rfvm", {}, (4, 9)),  # fewer samples than features
    ("rfvm", {"scale": "learned", "latent_noise": "none"}, (4, 9)),
    ("pfcvm", {}, (9, 4)),
    ("pfcvm", {"scale": "learned"}, (9, 4)),
    ("pfcvm", {"kernel": "polynomial", "degree": 1}, (9, 4)),
    ("pfcvm", {"kernel": "rbf"}, (9, 4)),
    ("pfcvm", {"kernel": "rbf", "scale": "learned"}, (9, 4)),
    ("horseshoe", {}, (9, 4)),
]


def asked(name, settings, shape, number=1.0):
    return make(name, settings, N=shape[0], D=shape[1], active_features=number)


@pytest.mark.parametrize(("name", "settings", "shape"), MODELS)
def test_ratios_are_those_of_the_joint_densities(name, settings, shape):
    """With the likelihood, which must stay: a map that moved eta, or a part left out, is seen.

    Scaling only one of PFCVM's two stored forms of the same weights is seen too.
    """
    problem = asked(name, settings, shape)
    variant = problem.with_hypers(active_features=0.5)
    point = {k: v[None] for k, v in stacked(prior_points(problem, 5)).items()}  # one chain
    moved = mapped(problem, variant, point)
    np.testing.assert_allclose(variant.decision(moved), problem.decision(point), rtol=1e-10)
    joint = [
        p.spec.log_joint(x, p.inputs, p.y, p.hypers.marginal())
        for p, x in ((variant, moved), (problem, point))
    ]
    np.testing.assert_allclose(log_ratios(problem, variant, point), joint[0] - joint[1], atol=1e-9)


@pytest.mark.parametrize(
    ("settings", "shape", "constant"),
    [
        ({}, (9, 4), {"sample_weight"}),
        ({}, (4, 9), {"feature_weight"}),
        ({"scale": "learned"}, (4, 9), {"sample_weight", "feature_weight"}),
    ],
)
def test_the_more_numerous_weights_leave_the_ratio(settings, shape, constant):
    """But for the slab, taken off here by hand: else the tails of the weights are hopeless.

    Any map that keeps eta is right, so no other test sees one that gains nothing.
    """
    problem = asked("pfcvm", settings, shape)
    variant = problem.with_hypers(active_features=0.5)
    point = stacked(prior_points(problem, 5))
    parts = []
    for p, x in ((variant, mapped(problem, variant, point)), (problem, point)):
        own = p.log_prior(x)
        for name, prior in p.hypers.weight_priors(x).items():
            own[name] = own[name] + 0.5 * (x[name] ** 2).sum(-1) / prior.slab**2
            own[name] = own[name] + x[name].shape[-1] * np.squeeze(prior.log_mass)
        parts.append(own)
    spread = {n: np.ptp(parts[0][n] - parts[1][n]) for n in ("sample_weight", "feature_weight")}
    assert {n for n, width in spread.items() if width < 1e-9} == constant


@pytest.mark.parametrize(("name", "settings", "shape"), MODELS)
def test_the_same_number_is_the_same_posterior(name, settings, shape):
    """Factor 1 by refilling, and not by leaving things alone: each weight is 1 / S."""
    problem = asked(name, settings, shape)
    point = {k: np.repeat(v[None], 25, 1) for k, v in stacked(prior_points(problem, 4)).items()}
    ratios = log_ratios(problem, problem.with_hypers(active_features=1.0), point)
    weights, k = smoothed(ratios)
    np.testing.assert_allclose(weights, 0.01, rtol=1e-9)
    assert k == -np.inf


def adopted(problem, points):
    """Return draws (S, ...) as a fit of two chains."""
    names = [n for n in points if n in problem.shapes]
    return av.adopt(problem, {n: points[n].reshape(2, -1, *points[n].shape[1:]) for n in names})


def rejected(problem, draws, number):
    """Return exact draws of a posterior: draws of the prior with its y."""
    random, kept = rng(number), []
    while len(kept) < draws:
        point = problem.simulate(random)
        if (point["y"] == problem.y).all():
            kept.append(point)
    return adopted(problem, stacked(kept))


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "settings"),
    [("horseshoe", {}), ("rfvm", {"latent_noise": "none"}), ("pfcvm", {"scale": "learned"})],
)
def test_the_number_is_that_of_the_other_posterior(name, settings):
    """Exact draws under both priors, by rejection: a wrong Jacobian or scale of T is seen.

    Independent draws, so the error of a number, and of each P(active) (bounded by 1/2), is known.
    """
    problem = asked(name, settings, (3, 3))
    variant = problem.with_hypers(active_features=1.6)
    fits = [rejected(p, 800, i) for i, p in enumerate((problem, variant))]
    table = av.prior_number(problem, fits[0], [1.6]).table
    row = table.loc[1.6]
    count = fits[1]["selection"]["active_features"].values
    error = np.hypot(row["mcse"], count.std() / np.sqrt(count.size))
    assert row["reason"] == ""
    assert abs(row["active"] - count.mean()) < z_limit() * error
    own = fits[0]["selection"]["active_features"].values.mean()
    assert table.loc[1.0, "active"] == pytest.approx(own)


@pytest.fixture
def horseshoe():
    """Draws of the prior as a fit, with weights on both sides of what is visible."""
    problem = asked("horseshoe", {}, (9, 4))
    points = stacked(prior_points(problem, 400))
    points["beta"] = np.where(points["tau"][:, None] > 0.2, 1.0, 0.01) * np.sign(points["beta"])
    points["feature_weight"] = np.abs(points["beta"])
    points["eta"] = problem.decision(points)
    return problem, adopted(problem, points)


def test_what_weighted_draws_say_worked_out_by_hand(horseshoe):
    """By the two half-Cauchy densities of SciPy, and sums over draws."""
    problem, fit = horseshoe
    table = av.prior_number(problem, fit, (0.5, 2.0)).table
    tau, beta = (fit["posterior"][n].values.reshape(400, -1) for n in ("tau", "beta"))
    p1 = special.expit(fit["posterior"]["eta"].values.reshape(400, -1))
    seen = {}
    for factor in (1.0, 0.5, 2.0):
        scale = problem.with_hypers(active_features=factor).hypers.global_scale
        log_p = [stats.halfcauchy.logpdf(tau[:, 0], scale=s)
                 for s in (scale, problem.hypers.global_scale)]  # fmt: skip
        w = smoothed(log_p[0] - log_p[1])[0]
        active = np.abs(beta) * problem.X.std(0) > 0.1
        seen[factor] = w @ active, w @ p1
        row = table.loc[factor]
        assert row["expected"] == factor
        assert row["active"] == pytest.approx(seen[factor][0].sum())
        change = np.abs(seen[factor][1] - seen[1.0][1])
        assert row["mean_change"] == pytest.approx(change.mean())
        assert row["largest_change"] == pytest.approx(change.max())
        on, before = (set(np.array(problem.feature_names)[seen[f][0] > 0.5]) for f in (factor, 1.0))
        assert (set(row["rise"]), set(row["fall"])) == (on - before, before - on)
    assert table.loc[0.5, "active"] < table.loc[1.0, "active"] < table.loc[2.0, "active"]


def test_the_line_says_what_moves(horseshoe):
    problem, fit = horseshoe
    found = av.prior_number(problem, fit)
    names = problem.feature_names
    found.table["rise"] = [()] * 4 + [names[:1]]
    found.table["fall"] = [(), names, (), (), ()]
    text = found.text()
    assert text.startswith("With half (0.5) or twice (2) as many features expected, the posterior")
    assert f"instead of {found.table.loc[1.0, 'active']:.1f} (1 expected)" in text
    assert f"{', '.join(names)} no longer with 0.5; {names[0]} above with 2." in text
    assert "cannot tell" not in text
    assert "".join(repr(found).split()) == "".join(text.split())


def test_the_line_says_where_the_draws_cannot_tell():
    """60 weights and their scale another: no draw of the one is a draw of the other."""
    problem = make("rfvm", {"latent_noise": "none"}, N=30, D=60, active_features=10.0)
    points = stacked(prior_points(problem, 400))
    found = av.prior_number(problem, adopted(problem, points), (0.1, 0.95, 7.0))
    row = found.table.loc[0.1]
    assert row["khat"] > 0.7
    assert np.isnan(row["active"])
    text = found.text()
    assert "With 0.95 times (9.5) as many features expected, the posterior has" in text
    assert f"With 0.1 times (1) as many: these draws cannot tell (k-hat {row['khat']:.2f}," in text
    assert "a refit can, ardvark.fit(problem.with_hypers(active_features=1))." in text
    # a prior that cannot be
    assert "With 7 times (70) as many: active_features must be between 0 and" in text


def test_a_few_draws_that_carry_the_weights_cannot_tell(horseshoe, monkeypatch):
    """By a good k-hat, which knows nothing of it."""
    problem, fit = horseshoe
    weights = np.where(np.arange(400) < 99, 1 / 99, 0.0).reshape(2, 200)
    monkeypatch.setattr(prior_number, "smoothed", lambda ratios: (weights, 0.1))
    found = av.prior_number(problem, fit, [2.0])
    assert found.table.loc[2.0, "effective"] == pytest.approx(99.0)
    assert "cannot tell (k-hat 0.10, worth 99 of 400 draws)" in found.text()
    assert np.isnan(found.table.loc[2.0, "active"])


def test_what_is_counted_on_every_fifth_draw_needs_weights_there(horseshoe, monkeypatch):
    """All draws together are worth enough, those that are counted are not."""
    problem, fit = horseshoe
    monkeypatch.setattr(activity, "_thinning", lambda *sizes: 5)
    monkeypatch.setattr(prior_number, "smoothed", lambda ratios: (np.full((2, 200), 1 / 400), 0.1))
    row = av.prior_number(problem, fit, [2.0]).table.loc[2.0]
    assert row["effective"] == pytest.approx(80.0)
    assert row["reason"].startswith("these draws cannot tell (k-hat 0.10, worth 80 of 400 draws)")


def test_few_draws_say_the_number_that_they_have_and_no_other():
    problem = asked("horseshoe", {}, (9, 4))
    found = av.prior_number(problem, adopted(problem, stacked(prior_points(problem, 40))))
    assert np.isfinite(found.table.loc[1.0, "active"])
    assert found.table["active"].isna().sum() == 4
    assert (found.table.drop(index=1.0)["effective"] < 100).all()
    assert "inf" not in found.text()
    assert "With half (0.5) as many: these draws cannot tell" in found.text()


def test_a_number_that_is_not_there_is_refused(horseshoe):
    problem, fit = horseshoe
    for other in (make("jcfo"), make("rfvm", active_features="all")):
        with pytest.raises(InputError, match="expects no number, active_features"):
            av.prior_number(other, fit)
    fit.attrs["kind"] = "approximation"
    with pytest.raises(InputError, match="draws of the posterior are needed"):
        av.prior_number(problem, fit)


def test_the_report_has_the_line(horseshoe, tmp_path):
    problem, fit = horseshoe
    page = av.compare({"own": fit}, reference="own", problem=problem).to_html(
        tmp_path / "report.html", pictures={}
    )
    assert av.prior_number(problem, fit).text() in html.unescape(page.read_text())
