"""What is refused at the front door, and in which words: each call with its one error.

The answers are in `snapshots/refusals*.txt`; conftest.py says how they are written anew.
"""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from scipy import sparse

import ardvark as av
from ardvark.common import validate
from ardvark.data.encoding import Encoder
from ardvark.inference.choosing.candidates import candidates
from ardvark.inference.comparison import study
from ardvark.inference.scoring.penalised import penalised
from ardvark.inference.target.sampling import Sampling
from ardvark.sklearn import SparseBayesClassifier
from tests.data.test_dataset import small
from tests.made import arrays_of, made_fit, problem_of, split

G = np.random.default_rng(5)
X, Y = G.normal(size=(24, 3)), np.where(np.arange(24) % 2, "well", "ill")
FRAME = pd.DataFrame(X, columns=["age", "dose", "size"])
LABELLED = FRAME.assign(state=Y)

CALLS = """
av.problem("rfvm")
av.problem("rfvm", X)
av.problem("rfvm", y=Y)
av.problem("rfvm", X, Y, X=X)
av.problem("rfvm", "digits38", Y)
av.problem("rfvm", X, "state")
av.problem("rfvm", LABELLED, "stat")
av.problem("rfvm", LABELLED, Y)
av.problem("rfvm", X + 1j, Y)
av.problem("rfvm", FRAME.assign(age=pd.array([None] * 24, dtype="Int64")), Y)
av.problem("rfmv", X, Y)
av.problem("digits38", "rfvm")
av.problem(FRAME, "rfvm")
av.problem("rfvm", X, Y, bias_sd=-1)
av.problem("rfvm", X, Y, bias_ds=1)
av.problem("rfvm", LARGE, np.arange(10_000) % 2)
av.effects(problem, fit)
av.predict(fit, problem, X)
av.predict(problem, fit, X[:, :2])
av.predict(problem, fit, np.full((2, 5), np.nan))
av.predict(problem, fit, FRAME)
av.predict(problem, fit, data, rule="mode")
av.predict(problem, fit, data, rule="paper")
av.predict(other, fit, data)
av.fit("laplace", problem)
av.fit(problem, "NUT")
av.fit(problem, "laplace", tunes=3)
av.fit(problem, "jcfo_em")
av.fit(problem, "paper", random_seed=-1)
av.fit(problem, "paper", draws=2.5)
av.fit(problem, "paper", chains=True)
av.fit(problem, "paper", random_seed="seven")
av.fit(problem, "paper", random_seed=2**63)
av.calibrate(problem, "paper", draws=0, folder="out")
av.calibrate("laplace", problem)
av.calibrate(problem, "gibbs", test="geweke")
av.calibrate(problem, "gibbs", test="joint", tune=3)
av.calibrate(problem, "laplace", test="joint")
Sampling(seed=0, keep="some")
data.split(0.5, -1)
av.sensitivity("laplace", problem)
av.sensitivity(problem, "paper", draws=0, folder="out")
av.sensitivity(av.problem("jcfo", data))
av.sensitivity(av.problem("rfvm", data, active_features="all", active_samples="all"))
study.check_sensitivity(problem, ["laplace", "paper"])
study.read_settings("nowhere")
av.select(fit, problem)
av.select(problem, fit, threshold=0)
av.select(other, fit)
av.select(problem, lacking)
av.select(problem, fit.isel(feature=slice(None, None, -1)))
av.predict(problem, fit.isel(basis=slice(None, None, -1)), data)
av.compare({"one": fit, "two": fit.isel(obs=slice(None, None, -1))})
av.compare({})
av.compare(fit)
av.compare({"a": 3})
av.compare({"a": fit, "b": of_other})
av.compare({"nuts": fit}, reference="nats")
av.compare({"a": fit}, test=test)
av.compare({"a": fit, "b": at_another_size}, problem=problem)
av.compare({"a": fit}, quantities=["etta"])
av.compare({"a": foreign}, problem=problem)
av.compare({"a": xr.DataTree()})
av.compare({"reference": fit}, reference=fit)
av.compare({"a": fit}).plot("violin")
av.compare({"a": fit}).plot("reliability")
av.summary(xr.DataTree())
av.panel(problem, fit, sizes=7)
av.panel(problem, fit, sizes=[2, 9])
av.panel(problem, fit, sizes=[])
av.panel(problem, fit, folds=1)
av.panel(problem, fit, folds=50)
av.panel(other, fit)
av.panel(problem, foreign_method)
av.panel(problem, fit, test=turned)
av.panel(scores, of_scores)
candidates(["rfmv"])
candidates(["rfvm", "rfvm"])
candidates([])
candidates(["fs_skr"])
candidates(["l1:slab=2"])
candidates(["pfcvm:rbf"])
candidates({"mine": {"kernel": "rbf"}})
penalised("l1", np.array([0, 0, 0, 1]), 0)
av.choose(X, Y, folds=1, folder="out")
av.choose(X, Y, folds=31)
av.choose(X, Y, repeats=0, folder="out")
av.choose(X, Y, candidates=["rfvm:slabs=2"], folder="out")
av.choose(X, Y, candidates=["rfvm"], esss=3)
av.choose(X, Y, candidates=["rfvm"], method="jcfo_em")
av.choose(X, Y, draws=0, folder="out")
av.choose(X, Y, random_seed=-1, folder="out")
av.choose(np.eye(5), np.arange(5) < 1, candidates=["l1"])
av.choose(X, Y, groups=["a", "b"] * 12, candidates=["share"])
classifier(model="pfcmv").fit(X, Y)
classifier(method="nutz").fit(X, Y)
classifier(method="rfvm_vb").fit(X, Y)
classifier(hypers={"kernal": "rbf"}).fit(X, Y)
classifier(method_options={"tunes": 1}).fit(X, Y)
classifier(draws=0).fit(X, Y)
classifier(effect=0).fit(X, Y)
classifier().fit(X, np.arange(24) % 3)
classifier().fit(X, np.zeros(24))
classifier().fit(Y, X)
classifier().fit(LARGE, np.arange(10_000) % 2)
classifier(model="jcfo", slab=2.0).fit(X, Y)
classifier(slab=2.0, hypers={"slab": 1.0}).fit(X, Y)
classifier(random_state=-1).fit(X, Y)
classifier(always=["age"]).fit(X, Y)
classifier(class_weight="balanced")
classifier().fit(X, Y, sample_weight=np.ones(24))
classifier(model="fs_skr").predict_proba
"""
"""Python, a call a line."""

PROBLEMS = """
av.problem("rfvm", 3.0)
av.problem("rfvm", "digits83")
av.problem("rfvm", FRAME.assign(dose=np.nan), Y)
av.problem("rfvm", LABELLED.assign(site=["u", "v", None] * 8), "state")
av.problem("rfvm", X, Y[:-1])
av.problem("rfvm", X, Y, bias_sd="1")
av.problem("rfvm", X, Y, sample_shape=0)
av.problem("rfvm", X, Y, feature_rate=-1.0)
av.problem("rfvm", X, Y, noise_rate=np.inf)
av.problem("rfvm", X, Y, noise_shape=np.nan)
av.problem("rfvm", X, Y, kernel="rbf")
av.problem("rfvm", X, Y, kernel="cosine")
av.problem("rfvm", X, Y, feature_rate=1e308)
av.problem("rfvm", X, Y, latent_noise="some")
av.problem("rfvm", X, Y, basis=[0, 24])
av.problem("rfvm", X, Y, basis=[0.5])
av.problem("rfvm", X, Y, basis=[])
av.problem("rfvm", X, Y, basis=[1, 1])
av.problem("rfvm", X, Y, basis="some")
av.problem("rfvm", X, Y, basis=np.ones((2, 4)))
av.problem("rfvm", X, Y, basis=np.full((2, 3), np.nan))
av.problem("rfvm", X, Y, basis_labels=np.ones(24))
av.problem("rvm", X, Y, basis_labels=np.ones(24))
av.problem("pfcvm", X, Y, basis=X[:3] + 1.0)
av.problem("pfcvm", X, Y, basis_labels=np.zeros(24))
av.problem("rfvm", LABELLED, "state", always=["agee"])
av.problem("rfvm", LABELLED, "state", always=["state"])
av.problem("rfvm", LABELLED, "state", always=["age", "dose", "size"])
av.problem("rfvm", LABELLED, "state", always=3)
av.problem("rfvm", LABELLED, "state", covariate_sd=1.0)
av.problem("rfvm", LABELLED.assign(site=np.resize(["u", "v"], 24)), "state", always=["age"])
av.problem("rfvm", LABELLED.assign(age=np.nan), "state", always=["age"])
av.problem("rfvm", X, Y, always=["x1"])
av.problem("pfcvm", X, Y, feature_shape=-1.0)
av.problem("rvm", X, Y, sample_rate=0)
av.problem("pfcvm", X, Y, kernel="polynomial", degree=0)
av.problem("rvm", X, Y, kernel="polynomial", degree=1.5)
av.problem("pfcvm", X, Y, kernel="polynomial", degree=3, feature_shape=2.0)
av.problem("pcvm", X, Y, feature_scale=-0.1)
av.problem("pcvm", X, Y, feature_scale=[0.1, -0.2, 0.0])
av.problem("rvm", X, Y, feature_scale=0.0)
av.problem("pcvm", X, Y, feature_scale=np.zeros(3))
av.problem("pcvm", X, Y, feature_scale=np.ones((2, 2)))
av.problem("rvm", X, Y, feature_scale=[0.1, 0.2])
av.problem("pfcvm", WIDE, active_features=200)
av.problem("pfcvm", WIDE, active_features=0)
av.problem("pfcvm", WIDE, active_features="some")
av.problem("pfcvm", WIDE, active_samples=40.0)
av.problem("pfcvm", WIDE, slab=-1.0)
av.problem("pfcvm", WIDE, slab=1e9)
av.problem("pfcvm", WIDE, slab=np.inf)
av.problem("pfcvm", WIDE, feature_slab=0.0)
av.problem("pfcvm", WIDE, active_features=5, feature_rate=0.1)
av.problem("pfcvm", WIDE, active_features=5, feature_shape=0.5)
av.problem("pfcvm", WIDE, active_samples=5, sample_rate=0.1)
av.problem("pfcvm", WIDE, active_samples=5, sample_shape=0.5)
av.problem("pfcvm", WIDE, kernel="rbf", active_features=150)
av.problem("pfcvm", WIDE, active_features="all", slab=5000.0)
av.problem("jcfo", X, Y, gamma2=0)
av.problem("jcfo", X, Y, degree=-1)
av.problem("jcfo", X, Y, degree=2.0)
av.problem("jcfo", X, Y, degree=True)
av.problem("jcfo", X, Y, degree="2")
av.problem("jcfo", X, Y, degree=None)
av.problem("sparse_probit", X, Y, parametrization="latent")
av.problem("sparse_probit", X, Y, gamma2=1.0)
av.problem("fsklr", X, Y, mask_prior="printed", mask_probability="explicit")
av.problem("fsklr", WIDE[0].repeat(3, axis=1), WIDE[1], mask_probability="explicit")
av.problem("fsklr", X, Y, kernel="polynomial")
av.problem("sklr", X, Y, a_zeta=1.0)
av.problem("horseshoe", X, Y, active_features=1.0, global_scale=0.1)
av.problem("horseshoe", X, Y, active_features=3.0)
av.fit(X, "nuts")
av.fit(problem, "nuts", keep="some")
av.fit(problem, "nuts", target_accept=1.5)
av.fit(problem.with_hypers(latent_noise="none"), "paper")
small(X=np.full((4, 3), np.nan))
small(X=np.where(np.arange(12).reshape(4, 3) == 7, np.inf, 0.0))
small(X=np.zeros(4))
small(X=np.zeros((4, 0)), feature_names=[])
small(X=np.zeros((1, 3)), y=[1], sample_names=["p"])
small(X=[["u"] * 3] * 4)
small(y=[0, 1, 0])
small(y=[1, 1, 1, 1])
small(y=[0, 1, 2, 1])
av.problem("rvm", np.ones((24, 1)), np.linspace(0.0, 1.0, 24))
small(y=[1, 2, 1, 2])
small(y=["0", "1", "0", "1"])
small(feature_names=["a", "b", "a"])
small(feature_names=["a", "b"])
small(sample_names=["p", "q", "q", "s"])
small(sample_names=["p"])
small(class_names=("no", "no"))
arrays(pd.DataFrame({"a": [1.0, np.nan]}, index=["u", "v"]), [0, 1])
arrays(pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"]}), [0, 1])
arrays(pd.DataFrame([[1.0, 2.0]] * 2, columns=["a", "a"]), [0, 1])
arrays(pd.DataFrame([[1, 2, 3]] * 2, columns=["a", "y", "y"]), "y")
arrays(np.eye(2), ["a", None])
arrays(np.eye(3), ["a", np.nan, "a"])
arrays(np.eye(3), pd.Series(["a", np.nan, "a"]))
arrays(np.eye(3), ["a", "b", "c"])
arrays(np.eye(2), ["a", "a"])
arrays(np.eye(2), [["a"], ["b"]])
arrays(np.eye(2), ["a"])
arrays([[1.0]], [0])
arrays(np.eye(4), ["a", "a", "a", "b"]).split()
small().take([])
small().take([0, 4])
small().take([-5, 1])
small().take([0, 1, 1])
small().take([0, -4])
small().take([True, False])
small().take([0.0, 1.0])
small().take([[0, 1]])
small().split(test=0)
small().split(test=1.0)
small().split(test=-0.1)
small().split(test=10)
small().split(test=float("nan"))
small().split(test="half")
small().split(test=True)
av.table(LABELLED, "state", encode="one-hot")
av.table(LABELLED, "state", impute="zero")
Encoder("one-hot").fit(LABELLED)
Encoder("onehot", "zero").fit(LABELLED)
av.table(LABELLED, "state", classes="uv")
av.table(LABELLED, "state", classes=["ill", "ill "])
av.table(LABELLED.assign(site="A"), "state", row_names="site")
av.table(LABELLED, "state", row_names="agee")
av.table(LABELLED, "state", drop=3)
av.table(np.ones((3, 2)), "y")
"""
"""The same of problems, hyperparameters and tables."""

COMMANDS = """
compare rfmv digits38
compare rfvm digits83
compare digits38 rfvm
compare rfvm digits38 --test-size 1
compare rfvm digits38 --test-size -0.5
compare rfvm digits38 --methods nutz
compare rfvm digits38 --methods ,
compare rfvm digits38 --set bias_ds=1
compare rfvm digits38 --set bias_sd
compare rfvm digits38 --set bias_sd=-1
compare rfvm digits38 --option nuts
compare rfvm digits38 --option nots.tune=1
compare rfvm missing.csv --target y
compare rfvm missing.csv
compare jcfo digits38 --sensitivity
compare jcfo digits38 --methods paper
compare jcfo digits38 --option nothing=1
compare jcfo digits38 --option nothing=1 --set scale=fixed
compare rfvm digits38 --sensitivity --methods paper
compare rfvm digits38 --draws 0
compare rfvm digits38 --effect 0
compare rfvm digits38 --keep some
compare rfvm digits38 --chains -1
compare rfvm digits38 --seed -1
compare rfvm digits38 --drop a
compare rfvm digits38 --classes a,b
compare rfvm . --target y
compare rfvm digits38 --out own.csv
compare rfvm digits38 --out own.csv/a/b
compare rfvm own.csv --target stat
compare rfvm own.csv --target state
compare rfvm own.csv --target state --encode onehot --always smoking
predict nowhere new.csv
panel broken
compare rfvm digits38 --methods paper --out broken
methods --for rfvm own.csv --target status --always sex
panel lacking
choose own.csv --target state
choose own.csv --target state --encode onehot --candidates l2
choose own.csv --target state --encode onehot --option esss=3
choose own.csv --target state --encode onehot --always smoking
choose own.csv --target state --encode onehot --folds 1
choose own.csv --target state --always age,sx
models rfmv
models --bibtex
methods rfvm_bv
methods --for fsklr digits39
methods --for rfvm own.csv --target state
data golubb
data fetch golubb
"""
"""Words after `ardvark`, a command a line."""


@pytest.fixture(scope="module")
def names():
    """What the calls speak of."""
    data, test = split()
    problem = problem_of(data)
    other = problem.with_hypers(bias_sd=3.0)
    fit = made_fit(problem, arrays_of(problem, 1, shape=(3, 41)))
    lacking, foreign, mine = fit.copy(), fit.copy(), fit.copy()
    lacking["posterior"] = xr.DataTree(fit["posterior"].to_dataset().drop_vars("sample_weight"))
    foreign.attrs, mine.attrs = {}, fit.attrs | {"method": "mine"}
    of_other, another = fit.copy(), fit.copy()
    of_other.attrs = fit.attrs | {"fingerprint": other.fingerprint}
    another["selection"] = xr.DataTree(av.select(problem, fit, threshold=0.2))
    scores, of_scores = av.problem("fs_skr", data), fit.copy()
    of_scores.attrs = fit.attrs | {"fingerprint": scores.fingerprint}
    turned = dataclasses.replace(test, class_names=test.class_names[::-1])
    given = {
        "data": data, "test": test, "problem": problem, "other": other, "fit": fit,
        "lacking": lacking, "foreign": foreign, "foreign_method": mine, "of_other": of_other,
        "at_another_size": another, "turned": turned, "scores": scores, "of_scores": of_scores,
        "classifier": lambda **own: SparseBayesClassifier(
            **{"model": "pfcvm", "method": "paper"} | own
        ),
        "WIDE": (G.normal(size=(40, 200)), np.arange(40) % 2), "small": small,
        "arrays": av.Dataset.from_arrays, "LARGE": sparse.csr_array((10_000, 20_000)),
        "X": X, "Y": Y, "FRAME": FRAME, "LABELLED": LABELLED,
    }  # fmt: skip
    modules = {"av": av, "np": np, "pd": pd, "xr": xr, "study": study, "Sampling": Sampling}
    modules |= {"candidates": candidates, "penalised": penalised, "Encoder": Encoder}
    return given | modules


@pytest.mark.parametrize(("name", "calls"), [("refusals", CALLS), ("refusals-problem", PROBLEMS)])
def test_every_refusal_in_words(name, calls, snapshot, names, tmp_path, monkeypatch):
    """One error each, of a kind that a user catches, before anything is computed or written."""
    monkeypatch.chdir(tmp_path)
    lines = []
    for call in calls.strip().splitlines():
        with pytest.raises((av.InputError, TypeError, AttributeError)) as raised:
            eval(call, names)
        error = raised.value.__cause__ if "predict_proba" in call else raised.value
        assert isinstance(error, av.InputError) or "option" in str(error) or "predict" in call, call
        lines += [f"> {call}", f"{type(error).__name__}: {error}"]
    assert not list(tmp_path.iterdir())
    said = re.sub(r"\b[0-9a-f]{16}\b", "FINGERPRINT", "\n".join(lines))
    snapshot(name, re.sub(r"because the result would overflow \(.*\)", "OVERFLOW", said))


def test_every_refusal_of_a_command(snapshot, command, tmp_path):
    LABELLED.assign(sex=np.resize(["f", "m"], 24)).to_csv(tmp_path / "own.csv", index=False)
    for folder, text in (("broken", "{"), ("lacking", "{}")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "study.json").write_text(text)
    there, lines = {*tmp_path.rglob("*")}, []
    for words in COMMANDS.strip().splitlines():
        done = command(*words.split(), cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert done.stderr.count("ardvark: ") == 1 or "Usage" in done.stderr, words
        lines += [f"$ ardvark {words}", done.stderr.replace(str(tmp_path), "DIR").strip()]
    assert {*tmp_path.rglob("*")} == there
    snapshot("refusals-command", "\n".join(lines))


def test_a_sparse_matrix_too_large_to_be_dense_is_refused(monkeypatch):
    monkeypatch.setattr(validate, "LARGEST_DENSE", X.size - 1)
    with pytest.raises(av.InputError, match=r"sparse matrix of shape \(24, 3\).*Keep fewer col"):
        av.problem("rfvm", sparse.csr_array(X), Y)
