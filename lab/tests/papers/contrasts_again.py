"""The verbs of `contrasts` once more, from the files of folds by the standard library."""

from statistics import fmean

from lab.papers.fold import find
from lab.tests.papers import folds_again as again

T = {5: 2.7764}  # Student's t, 5 % two-sided, by the number of folds
METHODS = ["fsklr-printed", "sklr", "fs_skr", "l1_logistic", "kernel_l1", "rbf_svm"]
SAMPLES = {"colon_discrete": 62, "lymphoma_discrete": 96, "leukemia_discrete": 72, "allaml": 72,
           "prostate_ge": 102}  # fmt: skip


def joined(said):
    if not said:
        raise again.NoRows
    return ", ".join(said)


def beside_print(name, what):
    figure = find(name)[1].printed[what]
    return f"{again.kept_text(name, what)} on {again.data_of(name)} (printed {figure:g})"


def beside(groups, word, what):
    found = [n for _, n in again.rows(groups, word) if what in find(n)[1].printed]
    return joined([beside_print(n, what) for n in found])


def apart(groups, word, what):
    def ratio(name):
        ours, printed = again.mean(name, what)[0], find(name)[1].printed[what]
        return max(ours / printed, printed / ours)

    found = [n for _, n in again.rows(groups, word) if what in find(n)[1].printed]
    return beside_print(max(found, key=ratio), what)


def larger(groups, word):
    return joined([
        f"{again.data_of(n)} "
        + again.signed(f"{again.SIZES[again.data_of(n)][1] - find(n)[1].printed['accuracy']:.1f}")
        for _, n in again.rows(groups, word)
    ])  # fmt: skip


def correct(name):
    return round(sum(int(x["n_test"]) * float(x["accuracy"]) for x in again.lines(name)))


def against(groups, first, second):
    return joined([
        f"{correct(a)} against {correct(b)} of {SAMPLES[again.data_of(a)]} on {again.data_of(a)}"
        for _, a, b in again.rows(groups, first, second)
    ])  # fmt: skip


def steps_apart(groups, word, early, late, what):
    for _, name in again.rows(groups, word):
        a, b = (again.column(name, what, step) for step in (early, late))
        if len(a) == len(b) == 5:
            unit = 1 if what == "log_score" else 100
            values = [unit * (a[k] - b[k]) for k in sorted(a)]
            yield again.data_of(name), fmean(values), again.error(values)


def moved(groups, word, early, late, what):
    digits = again.DIGITS[what]
    return joined([
        f"{data} {again.signed(again.text(x, sd, digits))}"
        for data, x, sd in steps_apart(groups, word, early, late, what)
    ])  # fmt: skip


def beyond(groups, word, early, late, what):
    found = list(steps_apart(groups, word, early, late, what))
    if not found:
        raise again.NoRows
    return f"{sum(abs(x) > T[5] * sd for _, x, sd in found)} of {len(found)}"


def unrun(groups, word, early, late, missing):
    said, kept = [], []
    for group, name in again.rows(groups, word):
        whole = all(len(again.folds_of(name, step)) == 5 for step in (early, late))
        if again.whole(f"{group}/{missing}") or not whole:
            continue
        right, features = (
            [again.mean(name, what, step) for step in (early, late)]
            for what in ("accuracy", "features")
        )
        if right[0] == right[1] and features[0] == features[1]:
            gap = again.signed(f"{right[0][0] - find(name)[1].printed['accuracy']:.1f}")
            kept.append(again.kept_text(name, "features", early))
            said.append(f"{again.data_of(name)} {again.mean_text(name, 'accuracy', early)} ({gap})")
    return f"{joined(said)}, with {' and '.join(dict.fromkeys(kept))} of the features"


def f1_gaps(name):
    """Ours minus the printed F1, by y = 1 and by y = 0."""
    found = [again.mean(name, "f1")[0], 100 * fmean(again.column(name, "f1_other").values())]
    return [x - find(name)[1].printed["f1"] for x in found]


def otherrange(groups, word):
    found = [(f1_gaps(n)[1], again.data_of(n)) for _, n in again.rows(groups, word)]
    return again.ends([(x, f"{again.signed(f'{x:.1f}')} on {data}") for x, data in found])


def above(groups, data):
    group = next(g for g in groups if again.data_of(g) == data)
    found = [f"{group}/{label}" for label in METHODS if again.whole(f"{group}/{label}")]
    if not found:
        raise again.NoRows
    return f"{sum(f1_gaps(n)[0] > 0 for n in found)} of {len(found)}"


def shares(groups, word):
    said = []
    for _, name in again.rows(groups, word):
        kept = [x for x in ("features", "samples") if again.column(name, x)]
        text = " and ".join(f"{again.kept_text(name, x)} of the {x}" for x in kept)
        said.append(f"{text} on {again.data_of(name)}")
    return joined(said)


VERBS = again.VERBS | {
    f.__name__: f
    for f in (
        beside, apart, larger, against, moved, beyond, unrun, otherrange, above, shares,
    )
}  # fmt: skip
