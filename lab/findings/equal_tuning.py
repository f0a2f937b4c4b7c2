"""Equal tuning: an exact posterior whose scale is chosen in the fold, beside tuned regressions.

    ARDVARK_DATA=... python -m lab.findings.equal_tuning

The papers' tables set exact posteriors whose priors are fixed beside an L1 regression whose penalty
is tuned. Here both are tuned, by the same three inner folds and the same score. This protocol was
committed before any fit on its folds.

Protocol
--------
Tables      `TABLES`: one of genes (colon), two of moderate size (heart, sonar), and one that is not
            linear (ionosphere, where FS-SKLR's table has an SVM with an rbf kernel above L1).
Folds       five, `StratifiedKFold` with `SEED`; within the training rows of each, three inner ones
            with the same seed, which every method has. All that is standardised or chosen is so on
            training rows.
Exact       one model of the papers a table (`TABLES`): PFCVM with its linear kernel, on ionosphere
            FS-SKLR with its rbf kernel, since PFCVM's takes minutes a fit there. Its scale is the
            default times 1, 3 or 9 (`SCALES`): of PFCVM the slab, in logits, of FS-SKLR the
            standard deviation of a coefficient, xi^-1/2. The one with the highest mean log score
            over the inner folds is fitted to all training rows; the default is so as well.
Horseshoe   by its defaults: its global scale is learned, and nothing is tuned.
Penalised   L1 (12 penalties), elastic net (6 penalties, 3 mixtures), ridge (15 penalties), and for
            ionosphere's sake a ridge on the rbf kernel of width 1 / D (15), each by the highest
            mean log score over the inner folds.
Scores      log score of each row left out, with P held within 1e-6 of 0 and 1; AUC, the mean over
            folds; rows that are wrong and sure: P of the wrong class is 0.9 or more.
Compared    on each table, exact (tuned) and horseshoe with L1, elastic net and ridge: 24
            differences of log score, of which one is beyond two standard errors by chance. The
            error is that of a mean of paired differences over rows; rows of a fold share a fit,
            which it leaves out. All else that is shown is a description.
Exact fits  have `LAST`, what `choose` fits its folds with: 400 effective draws, at most 2048
            iterations a chain; in the inner folds `FIRST`: 100 draws, at most 512 iterations. Such
            a mean has a Monte Carlo error of a tenth of its posterior sd. A fit that has not
            converged is used all the same, and counted.
Order       The tables in the order above, then exact at its default scale. What has not been run
            when time is over is named, and a table counts only with all its fits.

Known before: colon, heart and sonar are sets on which the priors' factors were developed
(`lab/prior_factors`), and there a slab of three times the default helped. The grid has no smaller
scale for that reason. So these are no fresh data for us, nor are they for the regressions' grids.
Each fit is kept as it ends, in `equal_tuning.csv`, with P(y = 1) of its rows.
"""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from ardvark.data import Dataset, load
from ardvark.inference.methods import run
from ardvark.inference.methods.prediction import predict
from ardvark.inference.samplers.exact.method import IN_A_FOLD
from ardvark.inference.scoring import held_out
from lab import rows, tables
from lab.findings.patients import SURE
from lab.papers.compared import CLEAR
from lab.problems import problem as problem_of
from lab.yardsticks.contract import FLOOR, log_score
from lab.yardsticks.penalised import ELASTIC_NET, L1

STORED = Path(__file__).with_name("equal_tuning.csv")
PAGE = Path(__file__).parents[1] / "PAPER_CHECK.md"
OUTER, INNER, SEED = 5, 3, 20261128
SCALES = (1.0, 3.0, 9.0)
FIRST, LAST = {"ess": 100.0, "limit": 512}, IN_A_FOLD
DEFAULT, TUNED, HORSESHOE = "exact, default scale", "exact, tuned", "exact horseshoe, scale learned"
TABLES = {"colon": "pfcvm", "heart": "pfcvm", "sonar": "pfcvm", "ionosphere": "fsklr"}
"""By data set: the model whose exact posterior is tuned."""
PENALTIES = tuple(np.geomspace(1e-5, 1e2, 15).round(9).tolist())
Scored = dict[str, dict[str, np.ndarray]]
"""By method: what each row left out has, and each fold."""
Split = tuple[np.ndarray, np.ndarray]
Steps = list[tuple[str, Any]]


@dataclass(frozen=True)
class Penalised:
    """Steps after the standardisation, and the grid of their options."""

    steps: Callable[[], Steps]
    grid: Mapping[str, Any]


def _ridge() -> Steps:
    return [("model", LogisticRegression(max_iter=2000))]


def _kernel() -> Steps:
    """Return ridge in the space of an rbf kernel, exact with as many components as rows."""
    return [("kernel", Nystroem(n_components=1000, random_state=SEED)), *_ridge()]


PENALISED = {
    "L1": Penalised(lambda: L1.steps(0, SEED), L1.grid),
    "elastic net": Penalised(lambda: ELASTIC_NET.steps(0, SEED), ELASTIC_NET.grid),
    "ridge": Penalised(_ridge, {"model__C": PENALTIES}),
    "kernel ridge": Penalised(_kernel, {"model__C": PENALTIES}),
}
COMPARED = tuple((a, b) for a in (TUNED, HORSESHOE) for b in ("L1", "elastic net", "ridge"))
DESCRIBED = ((TUNED, DEFAULT), (TUNED, "kernel ridge"))
"""Differences that are shown beside those of the protocol, and not judged."""


# --- folds and fits -------------------------------------------------------------------------------


def splits(y: np.ndarray, folds: int) -> list[Split]:
    """Return the training and the test rows of each fold."""
    cut = StratifiedKFold(folds, shuffle=True, random_state=SEED)
    return list(cut.split(np.zeros((len(y), 1)), y))


def hypers(model: str, scale: float) -> dict[str, float]:
    """Return the hyperparameter of a model at a multiple of its default scale."""
    return {"fsklr": {"xi": scale**-2}, "pfcvm": {"slab": scale}, "horseshoe": {}}[model]


def fit_exact(
    model: str, scale: float, data: Dataset, split: Split, options: Mapping[str, Any] = LAST
) -> dict[str, Any]:
    """Return what is kept of an exact fit: how it ended, P(y = 1) of the rows, their log score."""
    training, test = (data.take(x, both=False) for x in split)
    problem = problem_of(model, training, **hypers(model, scale))
    tree = run.fit(
        problem, "exact", chains=4, random_seed=SEED, progressbar=False, keep="shared", cores=1,
        **options,
    )  # fmt: skip
    draws = predict(problem, tree, test).values
    p = draws.reshape(-1, draws.shape[-1]).mean(axis=0)
    return _kept(tree.attrs["status"], p, test.y)


def fit_penalised(name: str, data: Dataset, split: Split) -> dict[str, Any]:
    """Return the same of a regression whose options are chosen by the inner folds."""
    training, test = (data.take(x, both=False) for x in split)
    search = GridSearchCV(
        Pipeline([("scale", StandardScaler()), *PENALISED[name].steps()]),
        {key: list(values) for key, values in PENALISED[name].grid.items()},
        cv=splits(training.y, INNER),
        scoring=log_score,
        error_score="raise",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # extreme candidates of a grid
        warnings.filterwarnings("ignore", "n_components > n_samples")
        search.fit(training.X, training.y)
    chosen = "; ".join(f"{k.split('__')[1]} {v:g}" for k, v in search.best_params_.items())
    p = search.predict_proba(test.X)[:, 1]
    return {"chosen": chosen, **_kept("finished", p, test.y)}


def _kept(status: str, p: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    return {
        "status": status,
        "log_score": log_scores(y, p).mean(),
        "p": " ".join(f"{value:.6f}" for value in p),
        "y": " ".join(str(label) for label in y),
    }


def work(name: str, data: Dataset) -> Iterator[tuple[rows.Row, Callable[[], rows.Row]]]:
    """Yield each fit of a table that depends on no other: its key, and what computes the rest."""
    for k, outer in enumerate(splits(data.y, OUTER)):
        for method in PENALISED:
            yield _key(name, k, method), partial(fit_penalised, method, data, outer)
        model = TABLES[name]
        yield _key(name, k, HORSESHOE), partial(fit_exact, "horseshoe", 1.0, data, outer)
        training = data.take(outer[0])
        for i, inner in enumerate(splits(training.y, INNER)):
            for scale in SCALES:
                yield (
                    _key(name, k, model, scale, float(i)),
                    partial(fit_exact, model, scale, training, inner, FIRST),
                )


def log_scores(y: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Return the log score of each row, with P held within FLOOR of 0 and 1."""
    return held_out.log_scores(y, np.clip(p, FLOOR, 1.0 - FLOOR))


def _key(
    data: str, k: int, method: str, scale: float | str = "", inner: float | str = ""
) -> rows.Row:
    return {"data": data, "fold": k, "method": method, "scale": scale, "inner": inner}


def chosen(inner: pd.DataFrame) -> float:
    """Return the scale with the highest mean log score over the inner folds of a fold."""
    mean = inner.groupby("scale")["log_score"].mean()
    return float(mean.index.to_numpy()[mean.to_numpy().argmax()])


def compute(name: str) -> None:
    """Fit what is missing of a table: its inner folds, then exact at the chosen scales."""
    data = load(name, fetch=False)
    rows.computed(STORED, work(name, data))
    held = stored()
    at(name, [chosen(_inner(held, name, k)) for k in range(OUTER)])


def at(name: str, scales: Sequence[float]) -> None:
    """Fit what is missing of a table's exact posterior at a scale for each fold."""
    data, model = load(name, fetch=False), TABLES[name]
    rows.computed(STORED, [
        (_key(name, k, model, scale), partial(fit_exact, model, scale, data, split))
        for k, (scale, split) in enumerate(zip(scales, splits(data.y, OUTER), strict=True))
    ])  # fmt: skip


# --- what follows ---------------------------------------------------------------------------------


def stored() -> pd.DataFrame:
    """Return the rows that are there."""
    frame = pd.DataFrame(rows.read(STORED))
    return frame.astype({"fold": int, "scale": float, "inner": float, "log_score": float})


def _inner(held: pd.DataFrame, name: str, k: int) -> pd.DataFrame:
    mine = held[(held["data"] == name) & (held["fold"] == k) & (held["method"] == TABLES[name])]
    return mine[mine["inner"].notna()]


def outer(held: pd.DataFrame, name: str) -> dict[str, pd.DataFrame]:
    """Return by method the fits of a table's five folds, in the order of the folds."""
    mine = held[(held["data"] == name) & held["inner"].isna()].sort_values("fold")
    found = {m: mine[mine["method"] == m] for m in (HORSESHOE, *PENALISED)}
    exact = mine[mine["method"] == TABLES[name]]
    picked = exact["fold"].map({k: chosen(_inner(held, name, k)) for k in range(OUTER)})
    found |= {TUNED: exact[exact["scale"] == picked], DEFAULT: exact[exact["scale"] == SCALES[0]]}
    return {m: found[m] for m in (TUNED, DEFAULT, HORSESHOE, *PENALISED)}


def by_fold(fits: pd.DataFrame, column: str) -> list[np.ndarray]:
    """Return P(y = 1), `p`, or the labels, `y`, of the rows left out, by fold."""
    return [np.array(text.split(), dtype=float) for text in fits[column]]


def scored(held: pd.DataFrame, name: str) -> Scored:
    """Return by method, of each row left out: log score, and whether it is wrong and sure; AUC."""
    found = {}
    for method, fits in outer(held, name).items():
        labels, answers = by_fold(fits, "y"), by_fold(fits, "p")
        y, p = np.concatenate(labels), np.concatenate(answers)
        wrong = np.where(y == 1.0, 1.0 - p, p)
        found[method] = {
            "log_score": log_scores(y, p),
            "sure": (wrong >= SURE).astype(float),
            "auc": np.array([roc_auc_score(*x) for x in zip(labels, answers, strict=True)]),
        }
    return found


def differences(found: Scored) -> pd.DataFrame:
    """Return the paired differences with their standard errors; `clear` is of `COMPARED` alone."""
    lines = []
    for first, second in COMPARED + DESCRIBED:
        gap = {x: found[first][x] - found[second][x] for x in ("log_score", "sure", "auc")}
        lines.append({"first": first, "second": second} | {
            f"{x}{end}": value
            for x, d in gap.items()
            for end, value in (("", d.mean()), ("_error", (d.var(ddof=1) / len(d)) ** 0.5))
        })  # fmt: skip
    frame = pd.DataFrame(lines)
    beyond = frame["log_score"].abs() > CLEAR * frame["log_score_error"]
    judged = frame.index < len(COMPARED)
    frame["clear"] = np.where(beyond & judged, np.sign(frame["log_score"]), 0).astype(int)
    return frame


def complete(held: pd.DataFrame) -> list[str]:
    """Return the tables that have all their fits."""
    wanted = OUTER * len((TUNED, DEFAULT, HORSESHOE, *PENALISED))

    def count(name: str) -> int:
        inner = sum(len(_inner(held, name, k)) for k in range(OUTER))
        if inner < OUTER * INNER * len(SCALES):
            return 0
        return sum(len(fits) for fits in outer(held, name).values())

    return [name for name in TABLES if count(name) == wanted]


def scores(held: pd.DataFrame, found: Mapping[str, Scored]) -> pd.DataFrame:
    """Return a line for each table and method: its scores, and how its fits ended."""
    lines = []
    for name, of_method in found.items():
        fits = outer(held, name)
        for method, mine in of_method.items():
            ended = fits[method]["status"] != "finished"
            lines.append({
                "data": name,
                "method": method.replace("exact,", f"exact {TABLES[name]},"),
                "log score": mine["log_score"].mean(),
                "AUC": mine["auc"].mean(),
                "wrong and sure": f"{mine['sure'].sum():.0f} of {len(mine['sure'])}",
                "unconverged": f"{ended.sum()} of {len(ended)}",
                "scales": _counted(fits[method]["scale"]) if method == TUNED else "",
            })  # fmt: skip
    return pd.DataFrame(lines)


def _counted(values: pd.Series) -> str:
    counts = values.value_counts().sort_index()
    return ", ".join(f"{number} x {scale:g}" for scale, number in counts.items())


def beside(found: Mapping[str, Scored]) -> pd.DataFrame:
    """Return `differences` of each table as text: log score, AUC, share of wrong and sure rows."""
    lines = []
    for name, of_method in found.items():
        for row in differences(of_method).to_dict("records"):
            shown = {
                label: f"{row[x]:+.3f} ± {row[f'{x}_error']:.3f}"
                for x, label in (
                    ("log_score", "log score"),
                    ("auc", "AUC"),
                    ("sure", "sure, wrong"),
                )
            }
            clear = {1: "ahead", -1: "behind", 0: ""}[row["clear"]]
            lines.append({
                "data": name, "difference": f"{row['first']} - {row['second']}", **shown,
                "clear": clear,
            })  # fmt: skip
    return pd.DataFrame(lines)


def all_scored(held: pd.DataFrame) -> dict[str, Scored]:
    """Return `scored` of each complete table."""
    return {name: scored(held, name) for name in complete(held)}


def report() -> None:
    """Put the tables into the page, from what is stored."""
    held = stored()
    found = all_scored(held)
    formats = {"log score": ".3f", "AUC": ".3f"}
    tables.fill(
        PAGE,
        equal_tuning=tables.markdown(scores(held, found), formats),
        equal_tuning_beside=tables.markdown(beside(found)),
    )


def main() -> None:
    """Fit what is missing, and write the tables."""
    for name in TABLES:
        compute(name)
    for name in TABLES:
        at(name, [SCALES[0]] * OUTER)
    report()


if __name__ == "__main__":
    main()
