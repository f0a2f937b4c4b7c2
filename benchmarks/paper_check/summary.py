"""What the tables say, in sentences whose figures are computed from the stored folds.

`{row:what}` in a sentence stands for a figure of a row; `Figure` lists what there is. A sentence
ends with the rows it rests on, and with "k of n folds" where one is partial; a sentence that rests
on a row without folds is not said.
"""

import string
from collections.abc import Mapping
from dataclasses import dataclass

from .results import REFERENCE, Result


def _rfvm(data: str) -> str:
    """Return what is said of the RFVM on a set of its tables."""
    row, srvm, xolon = (f"rfvm-3-4/{data}/{x}" for x in ("rfvm_vb", "srvm", "xolon"))
    return (
        f"RFVM as printed on {data}: {{{row}:features}} of the features and {{{row}:samples}} of "
        f"the samples are kept (printed {{{row}:printed_features}} and "
        f"{{{row}:printed_samples}} %; {{{row}:finished}} folds converged); accuracy "
        f"{{{row}:accuracy}}, {{{row}:gap_accuracy}} the printed {{{row}:printed_accuracy}} and "
        f"{{{row}:l1}} to L1. The SRVM has {{{srvm}:accuracy}} (printed "
        f"{{{srvm}:printed_accuracy}}), XOLON {{{xolon}:accuracy}} (printed "
        f"{{{xolon}:printed_accuracy}})."
    )


def _pfcvm(data: str, label: str) -> str:
    """Return what is said of one reading of PFCVM on a set of genes."""
    row = f"pfcvm-6/{data}/{label}"
    return (
        f"PFCVM on {data}, `{label}`: {{{row}:features}} genes (printed "
        f"{{{row}:printed_features}}), accuracy {{{row}:accuracy}}, {{{row}:gap_accuracy}} the "
        f"printed {{{row}:printed_accuracy}} and {{{row}:l1}} to L1."
    )


def _jcfo(data: str) -> str:
    """Return what is said of JCFO on a set of genes."""
    row, one = f"jcfo-1/{data}/jcfo-printed", f"jcfo-1/{data}/jcfo-one"
    return (
        f"JCFO as printed, one start, on {data}: accuracy {{{row}:accuracy}}, "
        f"{{{row}:gap_accuracy}} the printed {{{row}:printed_accuracy}} and {{{row}:l1}} to L1; "
        f"with the corrected rates {{{one}:accuracy}}."
    )


def _outside(data: str) -> str:
    """Return what is said of genes chosen outside the folds."""
    one, each = (f"pfcvm-6/{data}/select-{x}" for x in ("l1", "filter"))
    return (
        f"The same classifier on 50 genes of {data} that L1 logistic regression chose: "
        f"{{{one}-inside:accuracy}} where they are chosen inside each fold, "
        f"{{{one}-outside:accuracy}} where they are chosen once, with the left-out rows in sight "
        f"({{{one}-inside:outside}}); by a filter, gene for gene, {{{each}-inside:accuracy}} and "
        f"{{{each}-outside:accuracy}}."
    )


SONAR = "fsklr-3/sonar/fsklr"
SENTENCES: tuple[str, ...] = (
    *(_rfvm(data) for data in ("colon_discrete", "lymphoma_discrete", "leukemia_discrete")),
    _rfvm("allaml"),
    *(_pfcvm("colon", label) for label in ("pfcvm_lp", "pfcvm_lp-30/10", "pfcvm_lp-50/30")),
    _pfcvm("golub", "pfcvm_lp"),
    _jcfo("colon"),
    _jcfo("golub"),
    f"FS-SKLR on sonar with the shared mask prior of (21) and (22) has an F1 of "
    f"{{{SONAR}-printed:f1}} with {{{SONAR}-printed:features}} of the features and "
    f"{{{SONAR}-printed:samples}} of the samples, {{{SONAR}-printed:gap_f1}} the printed "
    f"{{{SONAR}-printed:printed_f1}}; with independent masks, which are ours, {{{SONAR}:f1}} with "
    f"{{{SONAR}:features}} and {{{SONAR}:samples}}.",
    _outside("colon"),
    _outside("golub"),
)  # fmt: skip


def plus_minus(value: float, error: float, digits: int = 1) -> str:
    """Return a figure with its error, where there is one."""
    text = f"{round(value, digits) + 0.0:.{digits}f}"  # no -0.0
    return text if error != error else f"{text} +- {error:.{digits}f}"


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

        accuracy, f1 : with the error, in percent. log_score : with the error. features, samples :
        the mean. printed_X : the paper's X. gap_X : how far X is from the printed one, in points.
        times_features : ours over the printed. finished : converged of stored folds. l1, l1_log :
        paired difference in accuracy (points) and log score to L1 logistic regression. outside :
        how much accuracy (points) selection on all rows adds, paired; of a row "-inside".
        """
        r = self.result
        if what in ("accuracy", "f1", "log_score"):
            found = r.mean(what)
            return plus_minus(*found, 2 if what == "log_score" else 1) if found else "?"
        if what in ("features", "samples"):
            found = r.mean(what)
            return f"{kept(found[0])}{' %' if r.group.percent else ''}" if found else "?"
        if what.startswith("printed_"):
            return f"{r.row.printed[what.removeprefix('printed_')]:g}"
        if what.startswith("gap_"):
            kind = what.removeprefix("gap_")
            found = r.mean(kind)
            difference = round(found[0] - r.row.printed[kind], 1) if found else float("nan")
            return f"{abs(difference):.1f} points {'below' if difference < 0 else 'above'}"
        if what == "times_features":
            found = r.mean("features")
            return f"{kept(found[0] / r.row.printed['features'])} times" if found else "?"
        if what == "finished":
            return f"{r.finished} of {len(r.lines)}"
        other = beside(r.name, what)
        if not other:
            raise ValueError(f"no figure {what!r}")
        column = "log_score" if what == "l1_log" else "accuracy"
        found = r.beside(self.all[other], column)
        if found is None:
            return "?"
        sign = -1.0 if what == "outside" else 1.0
        text = plus_minus(sign * found[0], found[1], 2 if what == "l1_log" else 1)
        return text if text.startswith("-") else f"+{text}"


def beside(name: str, what: str) -> str:
    """Return the row that a figure sets the row beside, "" where there is none."""
    if what in ("l1", "l1_log"):
        return "/".join([*name.split("/")[:2], REFERENCE])
    return name.replace("-inside", "-outside") if what == "outside" else ""


def rows_of(sentence: str) -> list[str]:
    """Return the rows a sentence rests on, each once, in order."""
    fields = [(name, what) for _, name, what, _ in string.Formatter().parse(sentence) if name]
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
