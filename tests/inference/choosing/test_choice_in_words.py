"""What a choice says in words and shows: scores that are made, so that each sentence is known."""

import numpy as np
import pandas as pd
import pytest

from ardvark.inference import Choice
from tests.support import rng

N = 40


def made(unconverged=0, error=0.0, **leads):
    """A choice whose candidates have a log score, and noise of their own; shares are "share"."""
    y = np.arange(N) % 2
    log_p, kinds = {}, {"l1": "l1", "ridge": "ridge", "share": "share"}
    for i, (name, (mean, noise)) in enumerate(leads.items()):
        own = np.clip(mean + noise * rng(i).permutation(np.linspace(-1, 1, N)), -9.0, -1e-3)
        pair = np.stack([own, np.log1p(-np.exp(own))], axis=-1)
        log_p[name] = np.where(y[:, None] == 0, pair, pair[:, ::-1])[:, None]
    asked = {name: kinds.get(name, {"model": name}) for name in leads}
    first = next(iter(leads))
    fits = [
        {"candidate": name, "fold": fold, "status": "finished", "reason": "", "seconds": 0.25}
        | {"error": error * N / 2.0 * (name == first)}  # four of them, in quadrature, of N rows
        for name in leads
        for fold in range(4)
    ]
    for row in fits[:unconverged]:
        row |= {"status": "not_converged", "reason": "too few draws"}
    folds = (np.arange(N) // 2 % 4)[:, None]
    return Choice("made", asked, y, folds, log_p, pd.DataFrame(fits))


SURE, UNSURE = 0.01, 0.6


def test_the_error_of_a_log_score_is_that_of_its_folds():
    assert made(0, 0.1, rfvm=(-0.5, UNSURE), l1=(-0.6, UNSURE)).table.loc[
        "rfvm", "error"
    ] == pytest.approx(0.1)


def test_a_guess_far_below_does_not_squeeze_the_others():
    choice = made(a=(-0.4, UNSURE), b=(-0.42, UNSURE), share=(-4.0, 0.0))
    axes = choice.plot().figure.axes[0]
    assert axes.get_xlim()[0] > -1.0
    error = choice.table.loc["b", "difference_se"]
    ends = [ends for bars in axes.collections for ends in bars.get_segments()]
    assert np.ptp(ends[1], axis=0) == pytest.approx([4.0 * error, 0.0])  # two each way
    below = choice.difference("share", choice.best)[0]
    assert [text.get_text() for text in axes.texts] == [f"{below:.2f}"]
    near = made(a=(-0.4, UNSURE), share=(-0.45, UNSURE)).plot().figure.axes[0]
    assert not near.texts
