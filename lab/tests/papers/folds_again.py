"""The figures of the papers' pages once more, from the files of folds by the standard library."""

import csv
import math
from functools import lru_cache
from pathlib import Path
from statistics import fmean, variance
from statistics import median as middle

from lab.papers import sheets
from lab.papers.fold import find
from lab.papers.tables import GROUPS

ROOT = Path(__file__).parents[3]
FOLDS = ROOT / "lab" / "paper_check" / "folds"
SIZES = {  # features, and the larger class in percent
    "colon": (2000, 64.516), "golub": (7129, 65.278), "colon_discrete": (2000, 64.516),
    "lymphoma_discrete": (4026, 52.083), "leukemia_discrete": (7070, 65.278),
    "allaml": (7129, 65.278), "prostate_ge": (5966, 50.980), "digits38_noisy": (64, 51.261),
    "australian": (14, 55.507), "breast_wisconsin": (9, 65.007), "heart": (13, 55.556),
    "ionosphere": (34, 64.103), "messidor": (19, 53.084), "sonar": (60, 53.365),
    "dorothea8000": (8000, 90.261),
}  # fmt: skip
LEFT_OUT = {"colon": 62, "golub": 72}  # folds of leave one out; the other tables have 5
DIGITS = {"accuracy": 1, "f1": 1, "f1_other": 1, "log_score": 2}


class NoRows(Exception):
    """A figure has no rows."""


# --- files ----------------------------------------------------------------------------------------


@lru_cache
def read(path):
    if not path.exists():
        return {}
    found = {}
    with path.open(newline="") as file:
        for x in csv.DictReader(file):
            if x["status"] != "failed":
                found.setdefault((x["row"], x["step"]), {})[int(x["fold"])] = x
    return found


def folds_of(name, step=""):
    table, data = name.split("/")[:2]
    return read(FOLDS / f"{table}_{data}{'_paths' if step else ''}.csv").get((name, step), {})


def lines(name):
    return list(folds_of(name).values())


def column(name, what, step=""):
    if what == "f1_other":
        return {k: f1_other(x) for k, x in folds_of(name, step).items()}
    return {k: float(x[what]) for k, x in folds_of(name, step).items() if x[what]}


def f1_other(x):
    """The F1 of y = 0 of a fold: the one pair of counts that has its accuracy and its F1."""
    n, right = int(x["n_test"]), round(int(x["n_test"]) * float(x["accuracy"]))
    wrong = n - right
    f1 = [2 * tp / (2 * tp + wrong) if tp + wrong else 0.0 for tp in range(right + 1)]
    tp = min(range(right + 1), key=lambda i: abs(f1[i] - float(x["f1"])))
    return 2 * (right - tp) / (2 * (right - tp) + wrong) if wrong else 1.0


def data_of(name):
    return name.split("/")[1]


def label_of(group, word):
    if word == "@l1":
        return "l1_logistic"
    paper = {"pfcvm": "PFCVM", "jcfo": "JCFO", "rfvm": "RFVM", "fsklr": "FSKLR"}
    rows = sheets.BY_PAPER[paper[group.split("-")[0]]].rows
    return rows.get(word[1:], "") if word.startswith("@") else word


def measure_of(group, what):
    f1 = group.startswith("fsklr")
    return ("f1" if f1 else "accuracy") if what == "measure" else what


def measured_here(group):
    """Whether a table has a printed figure of its measure, and any stored row."""
    rows = next(g for g in GROUPS if g.name == group).rows
    printed = any(measure_of(group, "measure") in r.printed for r in rows)
    return printed and any(lines(f"{group}/{r.label}") for r in rows)


def whole(name):
    return len(lines(name)) == LEFT_OUT.get(data_of(name), 5)


def collapsed(name):
    count = sum(x["reason"].startswith("the fit collapsed") for x in lines(name))
    return count if 2 * count > len(lines(name)) else 0


# --- figures --------------------------------------------------------------------------------------


def error(values, binomial=False):
    p, n = fmean(values), len(values)
    if n == 1 and not binomial:
        return math.nan
    return math.sqrt(p * (1 - p) / n if binomial else variance(values) / n)


def mean(name, what, step=""):
    found = column(name, what, step)
    if what in ("features", "samples"):
        if data_of(name) in LEFT_OUT:
            values = list(found.values())
        else:
            D, at = SIZES[data_of(name)][0], folds_of(name, step)
            size = {k: D if what == "features" else int(x["n_train"]) for k, x in at.items()}
            values = [100 * v / size[k] for k, v in found.items()]
        return fmean(values), error(values)
    unit, values = 1 if what == "log_score" else 100, list(found.values())
    binomial = what == "accuracy" and data_of(name) in LEFT_OUT
    return unit * fmean(values), unit * error(values, binomial)


def text(value, sd, digits):
    said = f"{value:.{digits}f}"
    said = said[1:] if float(said) == 0 and said[0] == "-" else said
    return said + ("" if math.isnan(sd) else f" +- {sd:.{digits}f}")


def signed(said):
    return said if said[0] == "-" else f"+{said}"


def difference_text(value, sd, digits):
    return "0 in each fold" if value == sd == 0 else signed(text(value, sd, digits))


def mean_text(name, what, step=""):
    return text(*mean(name, what, step), DIGITS[what])


def kept_text(name, what, step=""):
    value = mean(name, what, step)[0]
    unit = "" if data_of(name) in LEFT_OUT else " %"
    return (f"{value:.3g}" if value < 1000 else f"{value:.0f}") + unit


def converged_text(name):
    return f"{sum(x['status'] == 'finished' for x in lines(name))} of {len(lines(name))}"


def paired(first, second, what):
    a, b = column(first, what), column(second, what)
    values = [a[k] - b[k] for k in sorted(a.keys() & b.keys())]
    if not values:
        return None
    unit = 1 if what == "log_score" else 100
    return unit * fmean(values), unit * error(values)


def difference(group, first, second, what):
    if not (whole(f"{group}/{first}") and whole(f"{group}/{second}")):
        return ""
    pair = paired(f"{group}/{first}", f"{group}/{second}", what)
    return difference_text(*pair, DIGITS[what]) if pair else ""


def gap(name, what):
    return mean(name, what)[0] - find(name)[1].printed[what]


def printed_text(name, what):
    row = find(name)[1]
    if what not in row.printed:
        return ""
    sd = row.printed_sd.get(what)
    return f"{row.printed[what]:g}" + ("" if sd is None else f" (sd {sd:g})")


# --- cells ----------------------------------------------------------------------------------------


def counted(name):
    done, of = (int(x) for x in converged_text(name).split(" of "))
    return f"{done}/{of}" + ("" if whole(name) else f" of {LEFT_OUT.get(data_of(name), 5)}")


def cell(name, what, lead=""):
    if not column(name, what):
        return ""
    if not whole(name):
        said = f"({counted(name)} folds)"
    elif collapsed(name):
        said = f"collapsed {collapsed(name)}/{len(lines(name))}"
    elif what == "features":
        said = kept_text(name, what)
    else:
        said = mean_text(name, what)
        if find(name)[1].model:
            said += f" ({counted(name)})"
    own, other = printed_text(name, what), printed_text(lead, what) if lead else ""
    return said + (f" [{own}]" if lead and own and own != other else "")


def pair(name, what):
    if name.endswith(")") or not column(name, what):
        return ""
    if collapsed(name) or not whole(name):
        return cell(name, what)
    score = f", {mean_text(name, 'log_score')}" if column(name, "log_score") else ""
    features = column(name, "features")
    none = "; no feature" if features and not any(features.values()) else ""
    return f"{mean_text(name, what)}{score} ({counted(name)}{none})"


# --- verbs of sentences ---------------------------------------------------------------------------


def rows(groups, *words):
    """The tables that have all of these rows in all folds, most of which did not collapse."""
    out = []
    for group in groups:
        names = [f"{group}/{label_of(group, word)}" for word in words]
        if all(whole(name) and not collapsed(name) for name in names):
            out.append((group, *names))
    if not out:
        raise NoRows
    return out


def called(groups, group):
    papers = {g.split("-")[0] for g in groups}
    names = {"pfcvm": "PFCVM", "jcfo": "JCFO", "rfvm": "RFVM", "fsklr": "FS-SKLR"}
    of = "" if len(papers) == 1 else f" ({names[group.split('-')[0]]})"
    return data_of(group) + of


def one(groups, data, word):
    where = [data] if "/" in data else [g for g in groups if data_of(g) == data]
    for group in where:
        name = f"{group}/{label_of(group, word)}"
        if whole(name):
            return name
    raise NoRows


def measured(name, what):
    if collapsed(name):
        return f"collapsed in {collapsed(name)} of {len(lines(name))} folds"
    if what in ("features", "samples"):
        return kept_text(name, what)
    row = find(name)[1]
    count = f" ({converged_text(name)})" if row.model and not row.select else ""
    return mean_text(name, what) + count


def value(groups, data, word, what):
    name = one(groups, data, word)
    return measured(name, measure_of(name, what))


def printed(groups, data, word, what):
    name = one(groups, data, word)
    return printed_text(name, measure_of(name, what))


def all_gaps(groups, word):
    found = [(g, n, measure_of(g, "measure")) for g, n in rows(groups, word)]
    return [(gap(n, what), called(groups, g)) for g, n, what in found if what in find(n)[1].printed]


def gaps(groups, word):
    return ", ".join(
        f"{where} {signed(text(x, math.nan, 1))}" for x, where in all_gaps(groups, word)
    )


def ends(found):
    if not found:
        raise NoRows
    low, high = min(found)[1], max(found)[1]
    return low if len(found) == 1 else f"from {low} to {high}"


def gaprange(groups, word):
    return ends([(x, f"{signed(text(x, math.nan, 1))} on {w}") for x, w in all_gaps(groups, word)])


def near(groups, word):
    found = [(n, measure_of(g, "measure")) for g, n in rows(groups, word)]
    found = [(n, what) for n, what in found if what in find(n)[1].printed]
    return f"{sum(abs(gap(*x)) <= 2 * mean(*x)[1] for x in found)} of {len(found)}"


def all_pairs(groups, first, second, what):
    found = [
        (g, measure_of(g, what), paired(a, b, measure_of(g, what)))
        for g, a, b in rows(groups, first, second)
    ]
    found = [(called(groups, g), kind, pair) for g, kind, pair in found if pair]
    if not found:
        raise NoRows
    return found


def minus(groups, *words):
    return ", ".join(
        f"{where} {difference_text(*pair, DIGITS[kind])}"
        for where, kind, pair in all_pairs(groups, *words)
    )


def spread(groups, *words):
    return ends([
        (pair[0], f"{difference_text(*pair, DIGITS[kind])} on {where}")
        for where, kind, pair in all_pairs(groups, *words)
    ])  # fmt: skip


def between(groups, word, what):
    found = [(n, measure_of(g, what), called(groups, g)) for g, n in rows(groups, word)]
    found = [(mean(n, k)[0], measured(n, k), w) for n, k, w in found if column(n, k)]
    if len(found) > 1 and len({said for _, said, _ in found}) == 1:
        return f"{found[0][1]} on all {len(found)} data sets"
    return ends([(x, f"{said} on {w}") for x, said, w in found])


def converged(groups, word):
    found = [n for _, n in rows(groups, word)]
    right = sum(x["status"] == "finished" for n in found for x in lines(n))
    return f"{right} of {sum(len(lines(n)) for n in found)}"


def settled(groups, data, word):
    return converged_text(one(groups, data, word))


def majority(groups, word):
    found = [(mean(n, "accuracy")[0], SIZES[data_of(n)][1]) for _, n in rows(groups, word)]
    return f"{sum(abs(x - larger) < 1.5 for x, larger in found)} of {len(found)}"


def sets(groups, *words):
    return ", ".join(called(groups, found[0]) for found in rows(groups, *words))


def fewer(groups, data, word, number):
    counts = column(one(groups, data, word), "features").values()
    return f"{sum(x < float(number) for x in counts)} of {len(counts)}"


def right(groups, data, word, other, number):
    counts = column(one(groups, data, other), "features")
    among = [folds_of(one(groups, data, word))[k]["accuracy"] == "1.0" for k in counts
             if counts[k] == float(number)]  # fmt: skip
    return f"{sum(among)} of {len(among)}"


def printed_pairs(groups, word):
    found = [(g, n, measure_of(g, "measure")) for g, n in rows(groups, word)]
    return [(g, n, what) for g, n, what in found if what in find(n)[1].printed]


def errors(groups, word):
    said = []
    for g, n, what in printed_pairs(groups, word):
        N = LEFT_OUT.get(data_of(g))
        if N:
            wrong = sum(x["accuracy"] == "0.0" for x in lines(n))
            theirs = round(N - N * find(n)[1].printed[what] / 100)
            data, _, paper = called(groups, g).partition(" (")
            inner = f"{paper[:-1]}; " if paper else ""
            said.append(f"{wrong} of {N} on {data} ({inner}the paper: {theirs})")
    return listed(said)


def listed(said):
    if not said:
        raise NoRows
    return ", ".join(said)


def both_columns(groups, first, second, what):
    for g, a, b in rows(groups, first, second):
        x, y = column(a, measure_of(g, what)), column(b, measure_of(g, what))
        if x and y:
            yield called(groups, g), [x[k] - y[k] for k in x if k in y]


def wins(groups, *words):
    return listed([f"{w} {sum(x > 0 for x in d)} of {len(d)}"
                   for w, d in both_columns(groups, *words)])  # fmt: skip


def median(groups, *words):
    return listed([f"{w} {signed(text(middle(d), math.nan, 2))}"
                   for w, d in both_columns(groups, *words)])  # fmt: skip


def clearly(groups, direction, *words):
    found = all_pairs(groups, *words)
    sign = 1 if direction == "higher" else -1
    clear = [where.partition(" (") for where, _, (x, sd) in found if sign * x > 2 * sd]
    papers = list(dict.fromkeys(paper for _, _, paper in clear))
    where = [f"{p[:-1]} on {', '.join(d for d, _, q in clear if q == p)}" for p in papers]
    return f"{len(clear)} of {len(found)}" + (f" ({'; '.join(where)})" if where else "")


def constant(groups, *words):
    return listed([
        called(groups, g)
        for g, n, *_ in rows(groups, *words)
        if abs(mean(n, "accuracy")[0] - SIZES[data_of(n)][1]) < 1.5
    ])  # fmt: skip


def subjects(groups, word):
    patients = {"colon_discrete": "colon", "leukemia_discrete": "golub", "allaml": "golub"}
    found = {data_of(g) for g, _, _ in printed_pairs(groups, word)}
    return str(len({patients.get(data, data) for data in found}))


def unsettled(groups, word):
    return listed([
        called(groups, g)
        for g, n, what in printed_pairs(groups, word)
        if abs(gap(n, what)) <= 2 * mean(n, what)[1]
        and sum(x["status"] == "finished" for x in lines(n)) < len(lines(n)) / 2
    ])  # fmt: skip


def effects(groups, data):
    found = []
    for name in ("filter", "l1", "pfcvm", "jcfo", "rfvm"):
        inside, outside = (one(groups, data, f"select-{name}-{x}") for x in ("inside", "outside"))
        pair = paired(outside, inside, "accuracy")
        found.append((pair[0], f"{difference_text(*pair, 1)} (`select-{name}`)"))
    return ends(found)


def across(groups, data, word, what):
    mine, found = one(groups, data, word), []
    group = "/".join(mine.split("/")[:2])
    for row in next(g for g in GROUPS if g.name == group).rows:
        name = f"{group}/{row.label}"
        if row.reading != "as printed" or not whole(name) or collapsed(name):
            continue
        if sum(x["status"] == "finished" for x in lines(name)) > len(lines(name)) / 2:
            pair = paired(mine, name, what)
            found.append((pair[0], f"{difference_text(*pair, DIGITS[what])} (`{row.label}`)"))
    return ends(found)


def clipped(groups, data, word):
    scores = list(column(one(groups, data, word), "log_score").values())
    at = [x for x in scores if x <= -13.81]
    if not at:
        raise NoRows
    return f"{len(at)} of {len(scores)} make {sum(at) / len(scores):.2f} of the mean"


def declared(groups):
    every = [(g, r) for g in GROUPS for r in g.rows]
    return f"{sum(len(lines(f'{g.name}/{r.label}')) == g.folds for g, r in every)} of {len(every)}"


VERBS = {
    f.__name__: f
    for f in (
        value, printed, gaps, spread, gaprange, between, near, minus, converged,
        settled, majority, sets, fewer, right, errors, wins, median, clearly,
        constant, subjects, unsettled, effects, across, clipped, declared,
    )
}  # fmt: skip
