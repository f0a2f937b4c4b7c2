"""The words of the matrix: what became of a posterior, judged by the numbers of one cell."""

import math

import pandas as pd

CLOSE, CLOSE_WORST = 0.02, 0.1
"""Of P(y = 1): on average, up to which the verdicts call it good
(`scoring/statistics/prediction.py`), and of the worst row."""
RIGHT_WIDTH = (0.8, 1.25)
"""Ratios of widths of eta that pass as right; half and twice are far from it."""


def fate(row: pd.Series) -> str:
    """Return in a few words what a method made of the posterior.

    close       P(y = 1) within 0.02 on average and 0.1 in every row, width of eta 0.8 to 1.25 of
                the exact one
    near        P(y = 1) within 0.02 on average, but a row or the width is not, or there is none
    a point     P(y = 1) off by more, and no width: the method returns one state
    narrow      P(y = 1) off by more, and the width of eta below half of the exact one
    wide        P(y = 1) off by more, and the width above twice the exact one
    shifted     P(y = 1) off by more, and the width between half and twice the exact one
    at zero     beside any of these: a mean number of active features below a twentieth of the
                exact one, where that is at least one and the model can drop features
    few active  likewise: below a half
    many active likewise: above twice
    """
    off, ratio = row["p_off"], row["eta_width"]
    if math.isnan(off):
        return ""
    if off <= CLOSE:
        right = RIGHT_WIDTH[0] <= ratio <= RIGHT_WIDTH[1] and row["p_worst"] <= CLOSE_WORST
        word = "close" if right else "near"
    elif math.isnan(ratio):
        word = "a point"
    else:
        word = "narrow" if ratio < 0.5 else "wide" if ratio > 2.0 else "shifted"
    if not drops(row):
        return word
    share = row["active"] / row["active_exact"]
    beside = "at zero" if share < 0.05 else "few active" if share < 0.5 else ""
    return ", ".join(filter(None, [word, beside or ("many active" if share > 2.0 else "")]))


def drops(row: pd.Series) -> bool:
    """Whether there is a feature to lose: one is active on average, and can be switched off."""
    return bool(row["model"] != "sklr" and row["active_exact"] >= 1.0)
