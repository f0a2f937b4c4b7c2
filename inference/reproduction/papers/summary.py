"""What the tables say, in sentences whose figures are computed from the stored folds.

`{row:what}` in a sentence stands for a figure of a row; `Figure` lists what there is. A sentence
ends with the rows it rests on, and with "k of n folds" where one is partial; a sentence that rests
on a row without folds is not said.
"""

import math
import string
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .results import REFERENCE, Result
from .tables import GROUPS


def about(sentence: str, **rows: str) -> str:
    """Return the sentence with full names of rows for the short ones it is written with."""
    for short, name in rows.items():
        sentence = sentence.replace("{" + short + ":", "{" + name + ":")
    return " ".join(sentence.split())


RFVM = """
    RFVM as printed on DATA, until nothing drifts or 20 000 sweeps ({rfvm:finished} folds settled):
    {rfvm:features} of the features and {rfvm:samples} of the samples are kept, where the paper has
    {rfvm:printed_features} and {rfvm:printed_samples} %; accuracy {rfvm:accuracy},
    {rfvm:gap_accuracy} the printed {rfvm:printed_accuracy} and {rfvm:l1} to L1. After 300 sweeps of
    the same fits {rfvm:features@300} of the features were left, and their means alone had an
    accuracy of {rfvm:accuracy@300}.
"""
RELEASED = """
    RFVM with the released code's start, order and update of v on DATA ({code:finished} folds
    settled): {code:features} of the features, {code:samples} of the samples, accuracy
    {code:accuracy}.
"""
TRUNCATED = """
    RFVM with the mean-field optimum of v, a truncated normal, in place of the folded normal, on
    DATA ({cut:finished} folds settled): {cut:features} of the features, {cut:samples} of the
    samples, accuracy {cut:accuracy}, {cut:gap_accuracy} the printed {cut:printed_accuracy} and
    {cut:l1} to L1.
"""
BESIDE = """
    The RFVM paper's own baselines on DATA: the SRVM has {srvm:accuracy} with {srvm:samples} of the
    samples (printed {srvm:printed_accuracy} with {srvm:printed_samples} %), XOLON
    {xolon:accuracy} with {xolon:features} of the features (printed {xolon:printed_accuracy} with
    {xolon:printed_features} %).
"""
PFCVM = """
    PFCVM on DATA, `LABEL`: {lp:features} genes where the paper has {lp:printed_features}; accuracy
    {lp:accuracy}, {lp:gap_accuracy} the printed {lp:printed_accuracy} and {lp:l1} to L1.
"""
FLOOR = """
    That is with footnote 3 at 0.1. Its state after 20 iterations has {lp:features@20} genes and
    an accuracy of {lp:accuracy@20}.
"""
JCFO = """
    JCFO WHICH, one start, on DATA: accuracy {jcfo:accuracy} with {jcfo:features} genes,
    {jcfo:gap_accuracy} the printed {jcfo:printed_accuracy} and {jcfo:l1} to L1.
"""
FSKLR = """
    FS-SKLR on DATA with the paper's shared mask prior, (21) and (22): F1 {printed:f1} with
    {printed:features} of the features and {printed:samples} of the samples, {printed:gap_f1} the
    printed {printed:printed_f1}; with independent masks, which are ours, {ours:f1} with
    {ours:features} and {ours:samples}.
"""
MATCHED = """
    With every method as near as it comes to three tenths of what it selects from, on DATA: FS-SKLR
    has F1 {both:f1}
    ({both:features} of the features, {both:samples} of the samples; printed {both:printed_f1}),
    FS-SKR {errors:f1} ({errors:features}, {errors:samples}; printed {errors:printed_f1}), SKLR
    {sklr:f1} ({sklr:samples} of the samples; printed {sklr:printed_f1}), the rbf SVM {svm:f1}
    ({svm:samples}; printed {svm:printed_f1}), L1 {l1:f1} ({l1:features} of the features; printed
    {l1:printed_f1}).
"""
CHOSEN = """
    The same classifier on 50 genes of DATA that L1 logistic regression chose: {in:accuracy} where
    they are chosen inside each fold, {out:accuracy} where they are chosen once, with the left-out
    rows in sight ({in:outside}); chosen by a filter, gene for gene, {each:accuracy} and
    {once:accuracy}.
"""
OWN = """
    The same classifier on PAPER's ten leading genes of DATA: {in:accuracy} where they are chosen
    inside each fold, {out:accuracy} where they are chosen once, with the left-out rows in sight
    ({in:outside}).
"""


EXACT = """
    The exact posterior of PAPER on DATA, `LABEL` ({e:finished} folds converged): accuracy
    {e:accuracy}, {e:l1} to L1; log score {e:log_score}; active features: {e:features}. The
    paper's algorithm, `OTHER`, is at {p:exact} to it in accuracy.
"""
DENSELY = """
    Under the dense prior, on DATA ({d:finished} folds converged): accuracy {d:accuracy},
    {d:exact} to the sparse one; log score {d:log_score}.
"""


MASKED = (
    "digits38_noisy", "australian", "breast_wisconsin", "heart", "ionosphere", "messidor", "sonar",
)  # fmt: skip
RFVM_SETS = ("colon_discrete", "lymphoma_discrete", "leukemia_discrete", "allaml", "prostate_ge")
EXACTLY = {"rfvm-3-4": ("RFVM", "rfvm_vb"), "pfcvm-6": ("PFCVM", "pfcvm_lp"),
           "jcfo-1": ("JCFO", "jcfo-printed")}  # fmt: skip


def worded(sentence: str, words: Mapping[str, str]) -> str:
    """Return the sentence with its capital words replaced."""
    for name, word in words.items():
        sentence = sentence.replace(name, word)
    return sentence


def _tables() -> Iterator[str]:
    """Return the sentences, in order."""
    for data in RFVM_SETS:
        names = {"rfvm": "rfvm_vb", "code": "rfvm_vb-released", "cut": "rfvm_vb-truncated"}
        names |= {"srvm": "srvm", "xolon": "xolon"}
        rows = {short: f"rfvm-3-4/{data}/{label}" for short, label in names.items()}
        yield from (
            about(x.replace("DATA", data), **rows) for x in (RFVM, RELEASED, TRUNCATED, BESIDE)
        )
    for group in (g for g in GROUPS if g.name.split("/")[0] in EXACTLY):
        paper, other = EXACTLY[group.name.split("/")[0]]
        rows = {"e": f"{group.name}/exact", "p": f"{group.name}/{other}"}
        words = {"PAPER": paper, "DATA": group.data, "LABEL": "exact", "OTHER": other}
        yield about(worded(EXACT, words), **rows)
        if paper != "JCFO":
            yield about(DENSELY.replace("DATA", group.data), d=f"{group.name}/exact-dense")
    for data in ("colon", "golub"):
        for label in ("pfcvm_lp", "pfcvm_lp-30/10", "pfcvm_lp-50/30"):
            sentence = PFCVM.replace("DATA", data).replace("LABEL", label)
            yield about(sentence, lp=f"pfcvm-6/{data}/{label}")
        sentence = (PFCVM + FLOOR).replace("DATA", data).replace("LABEL", "pfcvm_lp-floor")
        yield about(sentence, lp=f"pfcvm-6/{data}/pfcvm_lp-floor")
    for data in ("colon", "golub"):
        for label, which in (("printed", "as printed"), ("one", "with corrected rates")):
            sentence = JCFO.replace("DATA", data).replace("WHICH", which)
            yield about(sentence, jcfo=f"jcfo-1/{data}/jcfo-{label}")
    for data in MASKED:
        at = f"fsklr-{2 if data.startswith('digits') else 3}/{data}"
        rows = {"printed": f"{at}/fsklr-printed", "ours": f"{at}/fsklr"}
        yield about(FSKLR.replace("DATA", data), **rows)
        words = {"PAPER": "FS-SKLR", "DATA": data, "LABEL": "fsklr-exact", "OTHER": "fsklr-printed"}
        exact = {"e": f"{at}/fsklr-exact", "p": f"{at}/fsklr-printed"}
        yield about(worded(EXACT, words), **exact)
        names = {"both": "fsklr", "errors": "fs_skr", "sklr": "sklr", "svm": "rbf_svm"}
        names |= {"l1": "l1_logistic"}
        rows = {short: f"{at}/{label}-matched" for short, label in names.items()}
        yield about(MATCHED.replace("DATA", data), **rows)
    for data in ("colon", "golub"):
        at = f"pfcvm-6/{data}/select"
        rows = {"in": f"{at}-l1-inside", "out": f"{at}-l1-outside"}
        rows |= {"each": f"{at}-filter-inside", "once": f"{at}-filter-outside"}
        yield about(CHOSEN.replace("DATA", data), **rows)
        for paper in ("PFCVM", "JCFO", "RFVM"):
            rows = {x: f"{at}-{paper.lower()}-{x}side" for x in ("in", "out")}
            yield about(OWN.replace("PAPER", paper).replace("DATA", data), **rows)


SENTENCES: tuple[str, ...] = tuple(_tables())


def plus_minus(value: float, error: float, digits: int = 1) -> str:
    """Return a figure with its error, where there is one."""
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # no -0.0
    return text if error != error else f"{text} +- {error:.{digits}f}"


def signed(value: float, error: float, digits: int = 1) -> str:
    """Return a difference with its sign and its error."""
    text = plus_minus(value, error, digits)
    return text if text.startswith("-") else f"+{text}"


def kept(value: float) -> str:
    """Return a number kept: three digits."""
    return f"{value:.3g}" if value < 1000 else f"{value:.0f}"


@dataclass(frozen=True)
class Figure:
    """A row's figures, by name, as text."""

    result: Result
    all: Mapping[str, Result]

    def __format__(self, what: str) -> str:
        """Return one of them.

        accuracy, f1 : in percent, with the error. features, samples : the mean. printed_X : the
        paper's X. gap_X : how far X is from the printed one, in points; where the paper prints an
        sd, with the error of ours and that sd together. finished : converged of
        stored folds. l1 : difference in accuracy to L1 logistic regression, paired, in points.
        exact : the same to the exact posterior. log_score : in nats.
        outside : what selection on all rows adds to the accuracy of a row "-inside", paired.
        X@300 : X at step 300 of the path.
        """
        what, _, step = what.partition("@")
        r = self.result.at(step) if step else self.result
        kind = what.removeprefix("printed_").removeprefix("gap_")
        mean, error = r.mean(kind) or (float("nan"), float("nan"))
        if what.startswith("printed_"):
            return f"{r.row.printed[kind]:g}"
        if what.startswith("gap_"):
            difference = round(mean - r.row.printed[kind], 1)
            side = "below" if difference < 0 else "above"
            sd = r.row.printed_sd.get(kind)
            both = "" if sd is None else f" (errors together {math.hypot(error, sd):.1f})"
            return f"{abs(difference):.1f} points{both} {side}"
        if what in ("accuracy", "f1"):
            return plus_minus(mean, error)
        if what == "log_score":
            return plus_minus(mean, error, 2)
        if what in ("features", "samples"):
            return f"{kept(mean)}{' %' if r.group.percent else ''}"
        if what == "finished":
            return f"{r.finished} of {len(r.lines)}"
        other = beside(r.name, what)
        if not other:
            raise ValueError(f"no figure {what!r}")
        first, second = (self.all[other], r) if what == "outside" else (r, self.all[other])
        return signed(*(first.beside(second, "accuracy") or (float("nan"), float("nan"))))


def beside(name: str, what: str) -> str:
    """Return the row that a figure sets the row beside, "" where there is none."""
    group = name.split("/")[:2]
    if what == "l1":
        return "/".join([*group, REFERENCE])
    if what == "exact":
        return "/".join([*group, "fsklr-exact" if group[0].startswith("fsklr") else "exact"])
    return name.replace("-inside", "-outside") if what == "outside" else ""


def rows_of(sentence: str) -> list[str]:
    """Return the rows a sentence rests on, each once, in order."""
    fields = [
        (name, what) for _, name, what, _ in string.Formatter().parse(sentence) if name and what
    ]
    names = [name for field in fields for name in (field[0], beside(*field)) if name]
    return list(dict.fromkeys(names))


def say(sentence: str, found: Mapping[str, Result]) -> str | None:
    """Return the sentence with its figures and rows, None where a row has no folds."""
    rows = rows_of(sentence)
    if any(name not in found for name in rows):
        return None
    figures = {name: Figure(found[name], found) for name in rows}
    text = string.Formatter().vformat(sentence, (), figures)
    basis = []
    for name in rows:
        done, of = len(found[name].lines), found[name].group.folds
        basis.append(f"`{name}`" + (f" ({done} of {of} folds)" if done < of else ""))
    return f"{text} [{', '.join(basis)}]"
