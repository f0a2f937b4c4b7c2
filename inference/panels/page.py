"""The page of a panel: `panel.html` of `ardvark panel`."""

import pandas as pd

from ..comparison.report.page import answer
from ..comparison.report.style import Picture
from ..fits.selection import direction
from .panel import Panel
from .text import measured

_READING = (
    "Each point is the mean log score of panels of a size, minus that of the full posterior, on "
    "rows that the search, the refit and the projection have not seen; its bar is one standard "
    "error."
)
_NOTES = {
    "Members": (
        "Coefficients of size {size} are in log odds of {towards} per unit of the column. They are "
        "a rule that predicts, and have no interval: a member also takes over what columns left "
        "out do. 'in the full posterior' is what the column itself does, given all others: its "
        "effect per unit, in {unit}, with its 90 % interval. 'folds' is the share of folds that "
        "choose the feature; 'or instead' lists correlated features that keep at least 80 % of "
        "what the member adds."
    ),
    "Performance": (
        "Rows that were not seen: those of the folds, each without its fold, and those left out of "
        "the fit. The panel predicts by its one formula. Calibration: slope 1 and intercept 0 are "
        "right; a slope below 1 is too sure. Each with its standard error."
    ),
    "Sizes": (
        "'to the posterior' is the difference of log scores with its standard error. 'formula' is"
        " the log score of the one formula of the coefficients, without an average over draws. "
        "The suggested size is the smallest that comes within one standard error of the best."
        "{left_out}"
    ),
    "Chosen in the folds": ("The share of folds that choose the feature, in panels of each size."),
}
_HEADINGS = {
    "AUC": "auc",
    "Brier": "brier",
    "log score": "log_score",
    "calibration intercept": "intercept",
    "slope": "slope",
}
_CHOSEN = 20  # features in the last table


def panel_page(panel: Panel, command: str) -> str:
    """Return the page of a panel; nothing in it refers to another file."""
    suggested, full = panel.suggested, panel.table.attrs["full"]
    classes = panel.problem.data.class_names
    alt = (
        f"Log score of panels of 0 to {panel.table.index[-1]} features minus that of the full "
        f"posterior ({full:.3f}). "
        f"{'No size' if suggested is None else f'Size {suggested}'} is suggested."
    )
    about = {"towards": repr(classes[1]), "size": panel.size, "left_out": _left_out(panel)}
    about["unit"] = direction(panel.problem)["unit"]
    tables = {"Performance": _performance(panel)}
    tables |= {"Sizes": _sizes(panel), "Chosen in the folds": _chosen(panel)}
    if panel.size is not None:
        tables = {"Members": _members(panel)} | tables
    return answer(
        f"A small panel of {panel.problem.spec.name} on {panel.problem.data.name}",
        [panel.sentence],
        Picture(panel.plot(), alt),
        _READING,
        {heading: (cells, _NOTES[heading].format(**about)) for heading, cells in tables.items()},
        command,
    )


def _members(panel: Panel) -> pd.DataFrame:
    known = panel.members

    def effect(row: pd.Series) -> str:
        value, low, high = (row[f"posterior_{name}"] for name in ("effect", "low", "high"))
        interval = "" if pd.isna(low) else f" [{low:.3g}, {high:.3g}]"
        return "" if pd.isna(value) else f"{value:.3g}{interval}"

    def beside(name: str) -> dict[str, str]:
        if name not in known.index:
            return {"folds": "" if name == "intercept" else "always", "or instead": ""}
        row = known.loc[name]
        return {"folds": f"{100 * row['chosen']:.0f} %", "or instead": str(row["alternatives"])}

    rows = {
        name: {
            "coefficient": f"{row['coefficient']:.3g}",
            "in the full posterior": effect(row),
            **beside(str(name)),
        }
        for name, row in panel.coefficients.iterrows()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def _performance(panel: Panel) -> pd.DataFrame:
    def told(row: pd.Series, name: str) -> str:
        error = row[f"{name}_se"]
        return "" if pd.isna(row[name]) else f"{row[name]:.3f} ± {error:.3f}"

    known = panel.performance.reset_index()
    rows = {
        f"{row['prediction']}, {row['of']}": {
            "rows": f"{row['rows']:.0f}",
            "events": f"{row['events']:.0f}",
            **{heading: told(row, name) for heading, name in _HEADINGS.items()},
        }
        for _, row in known.iterrows()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def _left_out(panel: Panel) -> str:
    """Return what the column of rows that the fit has not seen says, "" without any."""
    known = panel.table.attrs
    if "test_rows" not in known:
        return ""
    return (
        f" 'left out' is the log score on {known['test_rows']} rows that the fit has not seen, by "
        f"panels of all training rows; the full posterior has {measured(known, 'test_full')} there."
    )


def _sizes(panel: Panel) -> pd.DataFrame:
    rows = {
        f"{size} (suggested)" if size == panel.suggested else str(size): {
            "adds": row["feature"] or ", ".join(panel.problem.always),
            "log score": f"{row['log_score']:.3f}",
            "to the posterior": f"{row['difference']:+.3f} ± {row['se']:.3f}",
            "formula": f"{row['formula']:.3f}",
            **({"left out": measured(row, "test_log_score")} if "test_log_score" in row else {}),
        }
        for size, row in panel.table.iterrows()
    }
    return pd.DataFrame.from_dict(rows, orient="index")


def _chosen(panel: Panel) -> pd.DataFrame:
    shares = panel.chosen.head(_CHOSEN).drop(columns=0, errors="ignore")
    return shares.map(lambda share: f"{100 * share:.0f} %" if share else "")
