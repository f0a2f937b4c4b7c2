"""What a user reads, from draws made by hand: screens, reports and pages, word by word.

The words are in `snapshots/`; conftest.py says how they are written anew. A number that is off, a
word that is missing or a row in another place is one line of a diff.
"""

import dataclasses

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ardvark as av
from ardvark.inference import BACKENDS
from ardvark.inference.comparison.report.page import page
from ardvark.inference.comparison.text import BELOW, LINES, WIDTH, sentence_of
from ardvark.inference.comparison.verdicts.saying import for_estimator
from ardvark.inference.comparison.verdicts.verdict import verdicts
from ardvark.inference.fits.datatree import as_json, versions
from ardvark.inference.scoring.distances import measure
from tests.made import (
    CHAINS,
    DRAWS,
    LONG,
    N,
    arrays_of,
    dataset,
    made_fit,
    problem_of,
    split,
    table,
)
from tests.spoken import spoken

BASELINES = (r"(?m)^((?:L1 logistic|linear SVM) .*?) +\d\.\d$", r"\1 SECONDS")


def failed(problem):
    """Return a fit without draws, which says why."""
    tree = xr.DataTree.from_dict({"/posterior": xr.Dataset()})
    tree.attrs = {"kind": "point", "status": "failed", "method": "jcfo_em", "reason": "no mode"}
    tree.attrs |= {"fingerprint": problem.fingerprint, "model": "rfvm", "options": "{}"}
    return tree


def still_rising(tree):
    """Return a fit whose method says that it did not end."""
    tree.attrs |= {"status": "not_converged", "reason_code": "still rising"}
    tree.attrs["reason"] = "the ELBO was still rising after 60000 iterations"
    return tree


def fits_of(problem):
    """Return fits of one problem, right and wrong, of which no two took as long."""
    state = {name: x[:1, :1] for name, x in arrays_of(problem, 6).items()}
    q = "approximation"
    return {
        "exact": made_fit(problem, arrays_of(problem, 1), "exact", seconds=(41.3, 2.5)),
        "again": made_fit(problem, arrays_of(problem, 2), "gibbs", seconds=(12.1, 0.4)),
        "narrow": made_fit(problem, arrays_of(problem, 3, scale=0.5), "advi", q),
        "shifted": made_fit(problem, arrays_of(problem, 4, shift=1.5), "laplace", q),
        "turned": made_fit(problem, arrays_of(problem, 5, order=[2, 0, 1, 4, 3]), "rfvm_vb", q),
        "state": made_fit(problem, state, "rfvm_vb", "point", seconds=(0.32, 0.01)),
        "failed": failed(problem),
        "rising": still_rising(made_fit(problem, arrays_of(problem, 8), "advi", q)),
    }


@pytest.fixture(scope="module")
def comparison():
    train, test = split("<made> & odd", {"b": LONG})
    problem = problem_of(train)
    return av.compare(fits_of(problem), problem=problem, test=test)


def without_seconds(text):
    """Return a screen without the seconds of plain classifiers, which are those of the machine."""
    lines = [
        line if not line.startswith("L1 logistic") else line.rsplit(None, 1)[0]
        for line in text.splitlines()
    ]
    return "\n".join(lines)


def test_a_comparison_on_one_screen(snapshot, comparison):
    few = {name: comparison.fits[name] for name in ("again", "narrow", "failed")}
    few = av.compare(few, problem=comparison.problem)
    bare = av.compare({name: few.fits[name] for name in ("again", "narrow")})
    screens = [comparison, few, bare, crowded(comparison), own_model(), with_covariates()]
    for screen in screens:
        lines = repr(screen).splitlines()
        assert len(lines) <= LINES
        assert len(screen.text().splitlines()) <= LINES - BELOW
        assert max(map(len, lines)) <= WIDTH
    snapshot("compare", without_seconds("\n\n".join(map(repr, screens))))


def crowded(comparison):
    """Return the same of twice as many fits, whose names are long."""

    def named(name):
        return f"{name}, a fit of which the name is long"

    table = comparison.table.rename(index={n: named(n) for n in comparison.fits})
    fits, verdict = (
        {named(n): x for n, x in of.items()} for of in (comparison.fits, comparison.verdict)
    )
    changes = {"fits": fits, "verdict": verdict, "reference": named(comparison.reference)}
    more = (
        table[table["kind"] != "baseline"].add_prefix("", axis=0).rename(index=lambda n: f"{n} 2")
    )
    verdict |= {f"{n} 2": v for n, v in verdict.items()}
    return dataclasses.replace(comparison, table=pd.concat([table, more]), **changes)


def own_model():
    """Return fits of a model of one's own: right, and with a coefficient that is not."""
    fits = {}
    for number, name in enumerate(("nuts", "again", "advi")):
        g = np.random.default_rng(number)
        beta, sigma = g.normal(size=(CHAINS, DRAWS, 7)), g.gamma(9.0, size=(CHAINS, DRAWS))
        beta[..., 3] *= 0.23 if name == "advi" else 1.0
        data = {"beta": (("chain", "draw", "k"), beta), "sigma": (("chain", "draw"), sigma)}
        fits[name] = xr.DataTree.from_dict({"/posterior": xr.Dataset(data)})
        kind = "approximation" if name == "advi" else "mcmc"
        fits[name].attrs = {"kind": kind, "method": name, "status": "finished", "reason": ""}
        fits[name].attrs |= {"seconds_run": 2.31, "seconds_compile": 1.0}
    return av.compare(fits)


def with_covariates():
    """Return a fit with five columns that are always in the model, one of which is constant."""
    names = ["age", "still", "site=a long name of a place", "dose", "sex"]
    frame = table(generator=np.random.default_rng(4), rows=N)
    for k, name in enumerate(names):
        frame[name] = np.random.default_rng(k).normal(size=N) * (k + 0.5) * (name != "still")
    problem = problem_of(dataset(frame), always=names, latent_noise="none")
    arrays = arrays_of(problem, 1) | {
        "covariate_weight": np.random.default_rng(9).normal(0.4, 0.3, (CHAINS, DRAWS, 5))
    }
    del arrays["tau"]
    return av.compare({"nuts": made_fit(problem, arrays)}, problem=problem)


def test_no_sentence_is_cut_in_the_middle():
    """Clauses are left out whole; one that is longer than two lines is there to its end."""
    clauses = [f"clause {k} {'of many words ' * 3}ends" for k in range(6)]
    told = sentence_of("; ".join(clauses) + ".")
    assert len(told) == 2
    said = " ".join(line.strip() for line in told)
    assert said == "; ".join([*clauses[: said.count("; ")], "and more."])
    long = "one clause " * 30 + "to its end."
    assert " ".join(line.strip() for line in sentence_of(long)) == long
    assert sentence_of("short; as it is.") == ["short; as it is."]


def test_a_comparison_in_full(snapshot, comparison):
    told = dataclasses.replace(comparison, verdict=comparison.on_command_line())
    text = told.text(full=True, width=200).splitlines()
    kept = [line for line in text if not line.startswith(("run, s", "compile, s"))]
    seconds = [f"{line[:24]}..." for line in text if line.startswith(("run, s", "compile, s"))]
    snapshot("compare-full", "\n".join([*kept, *seconds]))


def test_the_report(snapshot, comparison):
    """Its words, and the numbers under the pointer."""
    told = page(
        comparison.table.assign(seconds_run=1.0),
        comparison.printed.drop(index="run, s"),
        {},
        comparison.fits,
        rows=comparison.rows,
        verdicts=comparison.verdict,
        distances=comparison.distances,
        reference=comparison.reference,
        problem=comparison.problem,
        remarks=comparison.remarks,
        command="ardvark compare <x> & y",
        versions=as_json(versions()),
    )
    before, _, after = spoken(told).partition("\nThe model\n")  # its docstring
    snapshot("report", before + "\n#" + after.partition("\n#")[2])


def test_figures_in_words(snapshot, comparison):
    """What is read aloud of each figure, its title, and what is under the pointer."""
    some = {name: comparison.fits[name] for name in ("exact", "narrow", "turned")}
    comparison = dataclasses.replace(comparison, fits=some)
    lines = []
    for kind in ("forest", "curve", "eta", "reliability", "samples"):
        picture = comparison._picture(kind)
        title = " ".join(picture.figure.get_suptitle().split())
        spots = [spot.text for spot in picture.spots]
        lines += [f"{kind}: {title}", picture.alt, *spots[:6], f"{len(spots)} spots", ""]
    snapshot("figures", "\n".join(lines))


def test_one_fit_on_one_screen(snapshot, comparison):
    fits = [comparison.fits[name] for name in ("exact", "state", "failed", "rising")]
    said = [*map(repr, map(av.summary, fits)), spoken(av.summary(fits[0])._repr_html_())]
    snapshot("summary", "\n\n".join(said))


# --- what may be held against a fit ---------------------------------------------------------------


def diverging(count):
    stats = np.zeros((CHAINS, DRAWS), dtype=bool)
    stats.ravel()[:count] = True
    return {"diverging": stats}


SLOW = np.random.default_rng(3).normal(size=(CHAINS, DRAWS)).cumsum(axis=1)
TAIL = -np.log((np.arange(CHAINS * DRAWS) + 0.5).reshape(CHAINS, DRAWS) / (CHAINS * DRAWS))
DEEP = np.where(np.arange(CHAINS * DRAWS).reshape(CHAINS, DRAWS) % 9 == 0, 10, 4)
STATED = {
    "few diverged": (diverging(2), {}),
    "some diverged": (diverging(5), {"options": '{"target_accept": 0.9}'}),
    "many diverged": (diverging(41), {"target_accept": 0.95}),
    "slow energy": ({"energy": SLOW}, {}),
    "deep": ({"tree_depth": DEEP}, {}),
    "k-hat": ({"lp": TAIL, "log_q": 0.0 * TAIL}, {"kind": "approximation", "method": "advi"}),
    "other problem": ({}, {"fingerprint": "another"}),
    "adopted": ({}, {"method": "adopted", "prior_unchecked": "the draws lack psi"}),
    "miscalibrated": ({}, {"calibrated": 0, "calibration": "the sd of tau is too low"}),
    "too short": ({}, {"method": "exact", "status": "not_converged", "reason": "one ESS is 607"}),
    "out of time": ({}, {"method": "exact", "ended": "time", "options": '{"minutes": 2.0}'}),
    "fell": ({}, {"kind": "approximation", "method": "advi", "reason_code": "fell"}),
    "short": ({}, {"kind": "approximation", "method": "laplace", "reason_code": "short"}),
    "unfinished": ({}, {"kind": "search", "method": "jcfo_em", "reason_code": "unfinished"}),
    "foreign": ({}, {"method": "mine", "kind": "search", "reason_code": "told"}),
}
"""By name: what the sampler states of its draws, and what the fit says of itself; the draws are
right."""


def wrong_draws(problem):
    """Return draws with a defect of their own, by name."""
    stuck, apart, near, two, unseen, few = (arrays_of(problem, 9) for _ in range(6))
    for x in stuck.values():
        x[2] = x[2, 0]
    for x in two.values():
        x[[0, 2]] = x[[0, 2], :1]
    apart["bias"][1] += 3.0
    near["bias"][1] += 0.07
    unseen["feature_weight"] *= 1e-3
    few["feature_weight"][:, 200:] *= 1e-3
    return {
        "one stuck": stuck,
        "two stuck": two,
        "apart": apart,
        "nearly together": near,
        "nothing visible": unseen,
        "hardly visible": few,
        "one chain": {name: x[:1] for name, x in arrays_of(problem, 9).items()},
        "few draws": arrays_of(problem, 9, shape=(CHAINS, 7)),
        "more draws": arrays_of(problem, 9, shape=(CHAINS, 41)),
        "copied": arrays_of(problem, 2),
    }


def test_every_finding_alone_and_beside_an_exact_fit(snapshot, comparison):
    """What is measured of right draws is the same whatever is stated of them."""
    problem, exact = comparison.problem, comparison.fits["again"]
    fits = {"right": made_fit(problem, arrays_of(problem, 3)), "gibbs": exact}
    fits |= {name: made_fit(problem, x) for name, x in wrong_draws(problem).items()}
    few = arrays_of(problem, 3, shape=(CHAINS, 83))
    fits["independent"] = made_fit(problem, few, "advi", "approximation")
    fits["unseen q"] = made_fit(problem, wrong_draws(problem)["nothing visible"], "advi", "search")
    distances = measure(fits, "gibbs", problem)
    right = distances[distances["fit"] == "right"]
    for name, (stats, attrs) in STATED.items():
        fits[name] = fits["right"].copy()
        told = {n: (("chain", "draw"), x) for n, x in stats.items()}
        fits[name]["sample_stats"] = xr.DataTree(xr.Dataset(told))
        ended = {"reason_code", "ended"} & set(attrs)
        ended = {"status": "not_converged", "reason": f"it {name}"} if ended else {}
        fits[name].attrs = fits["right"].attrs | ended | attrs
        distances = pd.concat([distances, right.assign(fit=name)])
    beside, lines = verdicts(fits, "gibbs", distances), []
    for name, tree in fits.items():
        alone = verdicts({name: tree}, None)[name]
        lines += [alone.text(f"{name}, alone"), beside[name].text(f"{name}, beside gibbs")]
        method = tree.attrs["method"]
        flags = alone.on_command_line(method, {method: tree, "gibbs": exact}).remedies
        lines += [*(f"  flags: {flag}" for flag in flags)]
        if method in BACKENDS:
            lines.append(f"  estimator: {for_estimator(problem, tree)}")
        lines.append("")
    for name in ("adopted", "one stuck", "independent", "few draws"):
        both = {name: fits[name], "advi": fits["independent"]}
        lines.append(verdicts(both, name)["advi"].text(f"advi, beside {name}"))
    snapshot("verdicts", "\n".join(lines))
