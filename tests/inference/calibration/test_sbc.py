"""Rung 6's own instruments, tested on samplers that are right, and wrong in known ways.

A test that must pass does so at a corrected p-value above 1e-4: with a right sampler and one seed a
false alarm has that probability, a few in a thousand for the whole file. A test that must fail is
run with more replicates than `detectable` asks for, and its p-value is far below.
"""

import dataclasses
import json

import numpy as np
import pymc as pm
import pytest
from scipy import stats

import ardvark as av
from ardvark.inference import BACKENDS, fitting
from ardvark.inference.backend import Result
from ardvark.inference.calibration import ranks
from ardvark.inference.calibration import sbc as cal
from ardvark.inference.calibration.joint import NutsKernel, joint_test, successive_conditional
from ardvark.models import ZOO
from ardvark.models.problems import make_problem
from ardvark.models.spec import BaseHypers, Inputs, ModelSpec
from ardvark.validate import InputError

LEVEL = 1e-4  # of a corrected p-value

# --- the p-values ---------------------------------------------------------------------------------


def test_p_values_of_uniform_ranks():
    """P(p < a) <= a, and not much less: two Kolmogorov-Smirnov tests share the level."""
    rng = np.random.default_rng(0)
    p = np.array([ranks.uniformity(u) for u in rng.random((1000, 60))])
    for level in (0.01, 0.1, 0.5):
        error = np.sqrt(level * (1 - level) / len(p))
        assert 0.7 * level - 3 * error < (p < level).mean() < level + 3 * error


def test_holm_by_hand():
    adjusted = ranks.holm(np.array([0.03, 0.01, 0.04, 0.9]))
    np.testing.assert_allclose(adjusted, [0.09, 0.04, 0.09, 0.9])


@pytest.mark.parametrize("kind", ["normal", "bit", "count"])
@pytest.mark.parametrize("L", [1, 20])
def test_ranks_are_uniform_with_ties_broken_at_random(kind, L):
    rng = np.random.default_rng(1)
    size = (3000, L + 1, 1)
    draw = {
        "normal": lambda: rng.standard_cauchy(size),
        "bit": lambda: rng.binomial(1, 0.3, size).astype(float),
        "count": lambda: rng.binomial(4, 0.2, size).astype(float),
    }[kind]
    values = draw()
    u = np.array([ranks.rank(v[0], v[1:], rng)[0] for v in values])
    assert ranks.uniformity(u) > LEVEL
    # negative control: ties that always count as below
    below = np.array([((v[1:] < v[0]).sum() + rng.random()) / (L + 1) for v in values])
    assert (ranks.uniformity(below) > LEVEL) == (kind == "normal")


def normal_ranks(rng, replicates, *, shift=0.0, factor=1.0, draws=100):
    """Ranks of z ~ N(0, 1) among draws of N(shift, factor^2): a posterior wrong by that much."""
    z = rng.normal(size=(replicates, 1))
    others = rng.normal(shift, factor, (replicates, draws))
    return ((others < z).sum(1) + rng.random(replicates)) / (draws + 1)


@pytest.mark.parametrize("wrong", [{"factor": 1.2}, {"factor": 1 / 1.2}, {"shift": 0.25}])
def test_a_posterior_20_percent_too_wide_or_a_quarter_sd_off_is_caught(wrong):
    rng = np.random.default_rng(2)
    right, bad = (normal_ranks(rng, 2000, **w) for w in ({}, wrong))
    tests = 20  # as if one of twenty quantities
    assert tests * ranks.uniformity(right) > LEVEL
    assert tests * ranks.uniformity(bad) < LEVEL
    folded = np.abs(2 * bad - 1).mean() - 0.5
    if "factor" in wrong:
        assert np.sign(folded) == np.sign(1.0 - wrong["factor"])


def test_what_is_detectable_is_detected_half_of_the_time():
    """The critical value is the supremum's: the power at that effect is a half and a little more.

    At half the effect it is all but nothing. 100 runs have an error of 0.05.
    """
    rng = np.random.default_rng(3)
    replicates, tests = 200, 20
    shift, factor = ranks.detectable(replicates, tests)

    def power(**wrong):
        runs = [normal_ranks(rng, replicates, draws=500, **wrong) for _ in range(100)]
        return np.mean([tests * ranks.uniformity(u) < LEVEL for u in runs])

    for full, half in (
        ({"shift": shift}, {"shift": shift / 2}),
        ({"factor": factor}, {"factor": np.sqrt(factor)}),
    ):
        assert 0.4 < power(**full) < 0.85
        assert power(**half) < 0.1
    assert ranks.detectable(10 * replicates, tests) < (shift, factor)


# --- a model whose posterior is known -------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class ToyHypers(BaseHypers):
    def filled(self, N, B, D):
        return self


def toy_build(inputs, y, hypers, coords):
    X = inputs.X
    with pm.Model(coords=coords) as model:
        label = pm.Data("label", np.asarray(y, dtype=float), dims="obs")
        theta = pm.Normal("theta")
        bit = pm.Bernoulli("bit", 0.3)
        eta = pm.Deterministic("eta", X[:, 0] * theta + X[:, 1] * bit, dims="obs")
        pm.Normal("y", eta, 1.0, observed=label, dims="obs")
    return model


def toy_decision(point, inputs, hypers=None):
    X = inputs.X
    theta, bit = (np.asarray(point[k])[..., None] for k in ("theta", "bit"))
    return theta * X[:, 0] + bit * X[:, 1]


def toy_simulate(rng, inputs, hypers):
    """theta ~ N(0, 1), bit ~ Bernoulli(0.3), y_i ~ N(x_i1 theta + x_i2 bit, 1)."""
    point = {"theta": np.asarray(rng.normal()), "bit": np.asarray(rng.binomial(1, 0.3))}
    eta = toy_decision(point, inputs)
    return point | {"eta": eta, "y": rng.normal(eta, 1.0)}


TOY = ModelSpec(
    name="toy",
    title="Toy",
    citation="none",
    year=2000,
    link="identity",
    priors="normal",
    kernels=(),
    paper_method="",
    Hypers=ToyHypers,
    build=toy_build,
    log_joint=lambda *a, **k: np.zeros(()),
    log_jacobian=lambda *a, **k: np.zeros(()),
    to_free=lambda point, *a: {k: point[k] for k in ("theta", "bit")},
    simulate=toy_simulate,
    decision=toy_decision,
    log_predictive=lambda y, eta, point, hypers: stats.norm.logpdf(y, eta, 1.0),
    dims={},
    doc="",
    masked=("bit",),
)


@pytest.fixture
def toy():
    X = np.random.default_rng(5).normal(size=(4, 2))
    return make_problem({"toy": TOY}, "toy", (X, [0, 1, 0, 1]), standardize=False)


def theta_given(X, y, bit):
    """Return mean and variance of theta | bit, y: conjugate."""
    variance = 1.0 / (1.0 + X[:, 0] @ X[:, 0])
    return variance * ((y - np.multiply.outer(bit, X[:, 1])) @ X[:, 0]), variance


def bit_odds(X, y):
    """Return P(bit = 1 | y), with theta integrated out: y - x_2 bit ~ N(0, I + x_1 x_1')."""
    cov = np.eye(len(X)) + np.outer(X[:, 0], X[:, 0])
    p = [
        w * stats.multivariate_normal.pdf(y - b * X[:, 1], cov=cov) for b, w in ((0, 0.7), (1, 0.3))
    ]
    return p[1] / sum(p)


class Conjugate:
    """The toy's posterior, independent draws; or wrong ones."""

    NAME, KIND = "conjugate", "approximation"

    @dataclasses.dataclass(frozen=True)
    class Options:
        factor: float = 1.0
        shift: float = 0.0
        deaf: bool = False
        seeded: bool = True
        memory: float = 0.0

    @staticmethod
    def supports(target):
        return None

    @staticmethod
    def fit(target, options, job):
        X, y = target.problem.X, target.problem.y
        rng = np.random.default_rng(job.seed if options.seeded else 7)
        size = (job.chains, job.draws)
        if options.deaf:
            bit, mean, variance = rng.binomial(1, 0.3, size), 0.0, 1.0
        else:
            bit = rng.binomial(1, bit_odds(X, y), size)
            mean, variance = theta_given(X, y, bit)
        e = rng.normal(size=size)
        for t in range(1, job.draws if options.memory else 1):  # an AR(1) process, stationary
            e[:, t] = options.memory * e[:, t - 1] + np.sqrt(1 - options.memory**2) * e[:, t]
        sd = np.sqrt(variance)
        theta = mean + sd * (options.shift + options.factor * e)
        point = {"theta": theta, "bit": bit}
        return Result(posterior={**point, "eta": toy_decision(point, target.problem.inputs)})


@pytest.fixture
def conjugate(monkeypatch):
    monkeypatch.setattr(fitting, "BACKENDS", dict(BACKENDS))
    av.inference.register_backend(Conjugate)


@pytest.mark.parametrize(
    ("wrong", "sizes", "quantity"),
    [
        ({}, {}, None),
        ({"factor": 1.7}, {}, "theta"),
        ({"deaf": True}, {}, "log likelihood"),
        # one frozen set of draws: nothing is wrong on average over seeds, but there is one seed
        ({"seeded": False}, {"draws": 3, "chains": 1}, None),
    ],
)
def test_sbc_of_a_known_posterior(toy, conjugate, wrong, sizes, quantity):
    replicates = 250
    found = cal.sbc(toy, "conjugate", replicates=replicates, **sizes, **wrong)
    assert found.failed == 0
    assert found.ranks.shape == (replicates, len(found.names))
    assert set(found.names) >= {"theta", "bit", "eta[0]", "eta[3]", "log likelihood"}
    assert (found.p_value > LEVEL) == (not wrong)
    if wrong:
        assert found.p_value < 1e-2 * LEVEL
    if quantity:
        assert quantity in found.table.index[:3]
    if "factor" in wrong:
        assert (found.table.loc["theta", "width"] < 0.5) == (wrong["factor"] > 1)
    if "deaf" in wrong:  # what does not look at y sees nothing
        assert found.table.loc[["theta", "bit"], "p_value"].min() > LEVEL


def test_a_chain_is_thinned_by_its_memory(toy, conjugate, monkeypatch):
    """Right draws that remember each other give ranks that are not uniform, unless thinned."""
    settings = {"replicates": 150, "memory": 0.995, "chains": 2, "draws": 200}
    found = cal.sbc(toy, "conjugate", **settings)  # taken as independent
    assert found.p_value < LEVEL
    assert set(found.draws) == {100}
    monkeypatch.setattr(Conjugate, "KIND", "mcmc")
    found = cal.sbc(toy, "conjugate", **settings)
    assert found.p_value > LEVEL
    # 400 (1 - 0.995) / (1 + 0.995) = 1 effective draw, which short chains overestimate
    assert np.median(found.draws) < 4


class Gibbs:
    """A two-block Gibbs sampler of the toy, as a kernel; or a wrong one."""

    def __init__(self, problem, *, factor=1.0, deaf=False, seeded=True, still=False):
        self.X, self.wrong = problem.X, (factor, deaf, seeded, still)

    def set_labels(self, y):
        self.y = y

    def state(self, point):
        return {"theta": float(point["theta"]), "bit": int(point["bit"])}

    def sweep(self, state, rng):
        factor, deaf, seeded, still = self.wrong
        if still:
            return
        rng = rng if seeded else np.random.default_rng(7)
        if deaf:
            state |= {"theta": rng.normal(), "bit": rng.binomial(1, 0.3)}
            return
        mean, variance = theta_given(self.X, self.y, state["bit"])
        state["theta"] = rng.normal(mean, factor * np.sqrt(variance))
        rest = self.y - self.X[:, 0] * state["theta"]
        log_odds = np.log(0.3 / 0.7) + rest @ self.X[:, 1] - 0.5 * self.X[:, 1] @ self.X[:, 1]
        state["bit"] = int(rng.random() < 1 / (1 + np.exp(-log_odds)))

    def point(self, state):
        point = {k: np.asarray(v) for k, v in state.items()}
        return point | {"eta": toy_decision(point, Inputs(self.X, self.X))}


def gibbs(**wrong):
    def make_kernel(problem):
        return Gibbs(problem, **wrong)

    return make_kernel


@pytest.mark.parametrize("sweeps", [1, 5])
@pytest.mark.parametrize("wrong", [{}, {"factor": 1.7}, {"deaf": True}, {"seeded": False}], ids=str)
def test_joint_test_of_a_known_kernel(toy, sweeps, wrong):
    found = joint_test(toy, gibbs(**wrong), replicates=1000, sweeps=sweeps, references=49)
    assert found.failed == 0
    assert (found.p_value > LEVEL) == (not wrong)
    if wrong:
        assert found.p_value < 1e-2 * LEVEL
    if "deaf" in wrong:
        assert found.table.loc[["theta", "bit"], "p_value"].min() > LEVEL


def test_a_kernel_that_never_moves_is_invariant(toy):
    """What the joint test cannot see: slowness. Simulation-based calibration can."""
    assert joint_test(toy, gibbs(still=True), replicates=300).p_value > LEVEL


def toy_labels(problem, point, rng):
    return rng.normal(point["eta"], 1.0)


@pytest.mark.parametrize("wrong", [{}, {"factor": 1.25}, {"deaf": True}], ids=str)
def test_successive_conditional_of_a_known_kernel(toy, wrong):
    table = successive_conditional(toy, Gibbs(toy, **wrong), iterations=8000, labels=toy_labels)
    smallest = table["holm"].iloc[0]
    assert (smallest > LEVEL) == (not wrong)
    if wrong:
        assert smallest < 1e-2 * LEVEL
    assert (table[["z_mean", "z_width"]].abs().to_numpy().max() > 5) == bool(wrong)


# --- killed and resumed ---------------------------------------------------------------------------


def test_a_killed_run_goes_on_where_it_was(toy, tmp_path):
    settings = {"sweeps": 2, "references": 9}
    whole = joint_test(toy, gibbs(), replicates=9, **settings)

    done = []

    class Killed(Gibbs):
        def set_labels(self, y):
            done.append(1)
            if len(done) == 5:
                raise KeyboardInterrupt
            super().set_labels(y)

    kernels = [Killed, Gibbs]

    def make_kernel(problem):
        return kernels.pop(0)(problem)

    with pytest.raises(KeyboardInterrupt):
        joint_test(toy, make_kernel, replicates=9, folder=tmp_path, **settings)
    (path,) = tmp_path.iterdir()
    lines = path.read_text().split("\n")[1:]
    assert [json.loads(line)["replicate"] for line in lines] == [0, 1, 2, 3]
    path.write_text("\n" + "\n".join(lines)[:-20])  # killed in the middle of a line
    resumed = joint_test(toy, make_kernel, replicates=9, folder=tmp_path, **settings)
    np.testing.assert_array_equal(resumed.ranks, whole.ranks)
    found = [json.loads(line) for line in path.read_text().splitlines() if line[-1:] == "}"]
    assert [r["replicate"] for r in found] == list(range(9))  # 3 was done again, nothing else

    # nothing is left to do; a shorter run reads the same file, other settings do not
    def refuse(problem):
        raise AssertionError("must not be made")

    refuse.__qualname__ = refuse.__name__ = make_kernel.__name__
    refuse.__qualname__ = make_kernel.__qualname__
    for n in (9, 4):
        again = joint_test(toy, refuse, replicates=n, folder=tmp_path, **settings)
        np.testing.assert_array_equal(again.ranks, whole.ranks[:n])
    for other in ({"sweeps": 3}, {"references": 8}, {"random_seed": 1}):
        with pytest.raises(AssertionError):
            joint_test(toy, refuse, replicates=4, folder=tmp_path, **settings | other)


def test_one_failure_loses_nothing_and_is_tried_again(toy, tmp_path):
    broken = [True]

    def make_kernel(problem):
        class Fragile(Gibbs):
            def sweep(self, state, rng):
                if broken[0] and self.y[0] < 0:
                    raise ZeroDivisionError("a bug")
                super().sweep(state, rng)

        return Fragile(problem)

    settings = {"replicates": 12, "sweeps": 1, "references": 9, "folder": tmp_path}
    found = joint_test(toy, make_kernel, **settings)
    assert 0 < found.failed < 12
    assert found.reasons == ("ZeroDivisionError: a bug",) * found.failed
    assert len(found.ranks) == 12 - found.failed
    broken[0] = False
    found = joint_test(toy, make_kernel, **settings)
    assert found.failed == 0
    whole = joint_test(toy, make_kernel, **settings | {"folder": None})
    np.testing.assert_array_equal(found.ranks, whole.ranks)


def test_bad_calls_are_refused_before_any_work(toy, conjugate, tmp_path, monkeypatch):
    out = tmp_path / "out"

    def refused(match, method="conjugate", error=InputError, **settings):
        with pytest.raises(error, match=match):
            cal.sbc(toy, method, folder=out, **settings)

    refused("unknown method 'conjugat'", method="conjugat")
    refused("does not apply", method="nuts")  # the toy has a bit
    refused("has no option 'factors'", error=TypeError, factors=2)
    refused("basis_labels must be one of", basis_labels="own")
    refused("replicates must be", replicates=0)
    refused("was registered in this process.*processes=1", processes=2)
    monkeypatch.setattr(Conjugate, "KIND", "point")
    refused("is a point: it returns no draws")
    with pytest.raises(InputError, match="toy has no NUTS kernel"):
        NutsKernel(toy)
    assert not out.exists()


def test_sbc_is_resumed(toy, conjugate, tmp_path):
    whole = cal.sbc(toy, "conjugate", replicates=5)
    cal.sbc(toy, "conjugate", replicates=2, folder=tmp_path)
    resumed = cal.sbc(toy, "conjugate", replicates=5, folder=tmp_path)
    np.testing.assert_array_equal(resumed.ranks, whole.ranks)
    assert len(list(tmp_path.iterdir())) == 1
    for other in ({"factor": 2.0}, {"random_seed": 1}, {"draws": 20}, {"ranks": 20}):
        found = cal.sbc(toy, "conjugate", replicates=2, folder=tmp_path, **other)
        assert not np.array_equal(found.ranks, whole.ranks[:2])
    assert len(list(tmp_path.iterdir())) == 5


def test_processes_give_the_same_numbers_and_an_approximation_is_scored(tmp_path, caplog):
    """RFVM's variational Bayes: no compilation, and posteriors too narrow."""
    problem = make("rfvm")
    settings = {"draws": 50, "chains": 1, "folder": tmp_path}
    two = cal.sbc(problem, "paper", replicates=6, processes=2, **settings)
    one = cal.sbc(problem, "paper", replicates=6, **settings | {"folder": None})
    np.testing.assert_array_equal(one.ranks, two.ranks)
    assert two.failed == 0
    assert {"tau", "product[0]", "u[0]", "log likelihood"} <= set(two.names)
    assert not caplog.records
    found = cal.sbc(problem, "paper", replicates=80, **settings)
    assert found.table.loc["eta[0]", "width"] > 0.5


# --- NUTS -----------------------------------------------------------------------------------------


def make(name, N=8, D=3, **hypers):
    """A problem of fixed inputs; its labels are of no use here, but for the basis."""
    X = np.random.default_rng(11).normal(size=(N, D))
    return av.problem(name, (X, np.arange(N) % 2), **hypers)


class Changed:
    """A kernel with one method replaced; it shares the compiled step of another."""

    def __init__(self, kernel, **methods):
        self._kernel = kernel
        self.__dict__.update(methods)

    def __getattr__(self, name):
        return getattr(self._kernel, name)


@pytest.fixture(scope="module")
def probit_kernel():
    problem = make("sparse_probit", N=6, D=2, parametrization="marginal")
    return problem, NutsKernel(problem)


def test_the_nuts_kernel_starts_exactly_at_a_point(probit_kernel):
    problem, kernel = probit_kernel
    point = problem.simulate(np.random.default_rng(0))
    again = kernel.point(kernel.state(point))
    for name in ("bias", "beta", "feature_weight", "eta"):
        np.testing.assert_allclose(again[name], point[name], rtol=1e-13)
    # the same stream, the same chain; the problem's own model keeps its labels
    ends = []
    for _ in range(2):
        rng, state = np.random.default_rng(1), kernel.state(point)
        kernel.set_labels(1 - problem.y)
        for _ in range(3):
            kernel.sweep(state, rng)
        ends.append(kernel.point(state)["eta"])
    np.testing.assert_array_equal(*ends)
    assert not np.array_equal(ends[0], point["eta"])
    np.testing.assert_array_equal(problem.model["label"].get_value(), problem.y)


def wrong_scale(kernel):
    """The prior's scale halved, in the compiled density: gamma1 is data."""
    with kernel._model:
        pm.set_data({"gamma1": 4.0 * kernel._problem.hypers.gamma1})


@pytest.mark.parametrize("wrong", ["", "labels never arrive", "scale"])
def test_joint_test_of_nuts(probit_kernel, wrong):
    problem, kernel = probit_kernel
    used = Changed(kernel, set_labels=lambda y: None) if "labels" in wrong else kernel
    if wrong == "scale":
        wrong_scale(kernel)
    try:
        found = joint_test(problem, lambda _: used, replicates=800, sweeps=10)
    finally:
        with kernel._model:
            pm.set_data({"gamma1": problem.hypers.gamma1})
    assert found.failed == 0
    assert (found.p_value > LEVEL) == (not wrong)
    if wrong:
        assert found.p_value < 1e-2 * LEVEL


def test_successive_conditional_of_nuts(probit_kernel):
    problem, kernel = probit_kernel
    table = successive_conditional(problem, kernel, iterations=2000, references=4000)
    assert table["holm"].iloc[0] > LEVEL


def test_sbc_of_nuts():
    problem = make("sparse_probit", N=6, D=2, parametrization="marginal")
    found = cal.sbc(problem, "nuts", replicates=40, tune=200, cores=1)
    assert found.failed == 0
    assert found.p_value > LEVEL
    assert np.median(found.draws) > 40
    np.testing.assert_array_equal(problem.model["label"].get_value(), problem.y)


def test_basis_labels_that_follow_y_are_caught():
    """PCVM is calibrated at basis labels drawn by themselves, not at those of the data."""
    problem = make("pcvm")
    kernel = NutsKernel(problem)
    settings = {"replicates": 300, "sweeps": 8}
    assert joint_test(problem, lambda _: kernel, **settings).p_value > LEVEL
    wrong = Changed(kernel, set_labels=lambda y, s: kernel.set_labels(y, 2.0 * y - 1.0))
    found = joint_test(problem, lambda _: wrong, **settings)
    assert found.failed == 0
    assert found.p_value < 1e-6 * LEVEL


def test_latent_noise_needs_its_own_labels():
    problem = make("rfvm")

    class Resting:
        def set_labels(self, y): ...
        def state(self, point):
            return dict(point)

        def sweep(self, state, rng): ...
        def point(self, state):
            return state

    with pytest.raises(InputError, match="y depends on u beside eta"):
        successive_conditional(problem, Resting(), iterations=2, references=2)


# --- the full sizes -------------------------------------------------------------------------------

CONTINUOUS = [n for n in ZOO if n not in ("fsklr", "sklr", "fs_skr")]
FORMS = [
    pytest.param(n, c, id="-".join([n, *c.values()])) for n in CONTINUOUS for c in ZOO[n].choices()
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "choice"), FORMS)
def test_nuts_leaves_every_posterior_invariant(name, choice):
    """Every form of every continuous model: 1000 replicates see 0.2 sd, or a factor of 1.2."""
    found = joint_test(make(name, N=10, **choice), NutsKernel, replicates=1000)
    assert found.failed == 0
    assert found.p_value > LEVEL, found.table.head()


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTINUOUS)
def test_nuts_is_calibrated(name):
    found = cal.sbc(make(name, N=10), "nuts", replicates=300, tune=300, cores=1)
    assert found.failed == 0
    assert found.p_value > LEVEL, found.table.head()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["pfcvm", "pcvm"])
def test_rederived_basis_labels_are_not_calibrated(name):
    settings = {"replicates": 150, "tune": 300, "cores": 1, "basis_labels": "rederived"}
    found = cal.sbc(make(name, N=10), "nuts", **settings)
    assert found.failed == 0
    assert found.p_value < 1e-6 * LEVEL
