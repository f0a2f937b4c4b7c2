"""Which statistics a verdict rests on: forward selection on half of the kinds of defects.

    python -m lab.judge.ablation --choose 1 --report 7     (an hour; a stopped run goes on)

Sixteen statistics were declared one by one, as each defect of a posterior was met (the commit that
the tables name has all of them). Several see the same defect, so leaving one out at a time would
keep all of them. Here they are chosen forward, on
every second kind of the first catalogue, 4000 draws, under the seed of `--choose`: first the
statistic with which the judge errs least, then whichever makes it err less, until none does. The
judge errs where it trusts a posterior with a defect of twice the limit or more, by all sixteen
(`trial.severity`),
and where it does not trust a right one. What was chosen is then tried once, with 1000 and 4000
draws: on the other kinds of that catalogue and on the second one, under the seed of `--report`. The
second one shows what they miss, so `ADDED` was chosen after it.
"""

import argparse
import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from scipy import stats
from threadpoolctl import threadpool_limits

from ardvark.inference.comparison.verdicts.findings import Finding, findings_of
from ardvark.inference.comparison.verdicts.verdict import judged
from ardvark.inference.scoring.statistics import STATISTICS
from lab import tables
from lab.judge import judge, judge_second
from lab.judge.trial import APART, Trial, made, severity

HERE = Path(__file__).parent
WORK = Path("results/judge/ablation")
TWICE = 2.0
ADDED = ("coverage_50", "spearman", "difference")
"""What sees the defects of the second catalogue that the chosen ones miss."""


class Tried(NamedTuple):
    """One fit of a trial: how large its defect is (0: right), its distances and its findings."""

    kind: str
    severity: float
    distances: pd.DataFrame
    findings: list[Finding]


def tried(
    trial: Trial, name: str, seed: int, kinds: Iterable[str], draws: tuple[int, ...]
) -> list[Tried]:
    """Return the fits of some kinds of a trial; what is computed is kept in `WORK`."""
    found, wanted = [], set(kinds) - set(APART)
    for number, (key, _) in enumerate(trial.work(seed)):
        if key["draws"] not in draws or key["kind"] not in wanted:
            continue
        path = WORK / f"{name}-{seed}" / f"{number}.pickle"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(pickle.dumps(_of(trial, key)))
        found += pickle.loads(path.read_bytes())
    return found


def _of(trial: Trial, key: dict[str, Any]) -> list[Tried]:
    fits, distances = made(trial, key)
    out = []
    for name, tree in fits.items():
        if name == "exact":
            continue
        own = distances[distances["fit"] == name]
        size = 0.0 if name == "right" else severity(own)
        found = findings_of(tree, fits["exact"])
        out.append(Tried("right" if name == "right" else str(key["kind"]), size, own, found))
    return out


def levels(fits: Iterable[Tried], chosen: Sequence[str]) -> list[str]:
    """Return the level of each fit by these statistics alone."""
    return [
        judged(fit.distances[fit.distances["statistic"].isin(chosen)], fit.findings).level
        for fit in fits
    ]


def errors(fits: Sequence[Tried], chosen: Sequence[str]) -> dict[str, int]:
    """Return how many wrong fits are trusted, and how many right ones are not, or condemned."""
    said = list(zip(fits, levels(fits, chosen), strict=True))
    right = [level for fit, level in said if fit.kind == "right"]
    wrong = [level for fit, level in said if fit.severity >= TWICE]
    return {
        "wrong": len(wrong),
        "wrong trusted": wrong.count("trust"),
        "right": len(right),
        "right not trusted": len(right) - right.count("trust"),
        "right condemned": right.count("do not use"),
    }


def forward(fits: Sequence[Tried]) -> pd.DataFrame:
    """Return the statistics in the order in which they are chosen, and the errors after each."""
    chosen: list[str] = []
    listed: list[dict[str, Any]] = []
    best = len(fits)
    while len(chosen) < len(STATISTICS):
        made_by = {s: errors(fits, [*chosen, s]) for s in STATISTICS if s not in chosen}
        size = {s: e["wrong trusted"] + e["right not trusted"] for s, e in made_by.items()}
        name = min(size, key=lambda s: size[s])
        if size[name] >= best:
            break
        best = size[name]
        chosen.append(name)
        listed.append({"statistic": name, **made_by[name]})
    return pd.DataFrame(listed)


def upper(hits: int, cases: int) -> float:
    """Return the 95 % upper limit of a share (Clopper & Pearson 1934)."""
    return float(stats.beta.ppf(0.95, hits + 1, cases - hits)) if hits < cases else 1.0


def report(chosen: Sequence[str], trials: dict[str, list[Tried]]) -> pd.DataFrame:
    """Return the errors by the chosen statistics, and by all, on cases that they have not seen."""
    listed = []
    for name, fits in trials.items():
        for called, those in (
            ("chosen", chosen),
            ("chosen and added", [*chosen, *ADDED]),
            ("all", list(STATISTICS)),
        ):
            e = errors(fits, those)
            listed.append(
                {
                    "cases": name,
                    "statistics": called,
                    **e,
                    "95 % upper, wrong trusted": upper(e["wrong trusted"], e["wrong"]),
                    "95 % upper, right condemned": upper(e["right condemned"], e["right"]),
                }
            )
    return pd.DataFrame(listed)


def main(words: list[str] | None = None) -> None:
    """Choose, then report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--choose", type=int, required=True, help="seed of the choice")
    parser.add_argument("--report", type=int, required=True, help="seed of the report")
    asked = parser.parse_args(words)
    kinds, both = list(judge.TRIAL.catalogue), (1000, 4000)
    with threadpool_limits(1, user_api="blas"):
        order = forward(tried(judge.TRIAL, "judge", asked.choose, kinds[::2], (4000,)))
        print(order.to_string())
        unseen = {
            "other kinds of the first catalogue": tried(
                judge.TRIAL, "judge", asked.report, kinds[1::2], both
            ),
            "second catalogue": tried(
                judge_second.TRIAL, "judge_second", asked.report, judge_second.SECOND, both
            ),
        }
    command = f"python -m lab.judge.ablation --choose {asked.choose} --report {asked.report}"
    found = {"ablation_forward": order, "ablation": report(list(order["statistic"]), unseen)}
    for name, table in found.items():
        tables.write(HERE / f"{name}.csv", table, command)
    tables.fill(HERE / "JUDGE.md", **{n: tables.markdown(t) for n, t in found.items()})


if __name__ == "__main__":
    main()
