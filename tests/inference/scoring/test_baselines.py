"""Predictions beside those of plain classifiers: paired differences, by hand."""

import numpy as np
import pytest

from ardvark.inference.scoring.baselines import Predicted, beside_baselines

Y = np.array([1, 0, 1, 1, 0, 1])
P = np.array([0.9, 0.2, 0.6, 0.3, 0.4, 0.8])


def line(fit, **plain):
    return beside_baselines({"fit": fit}, plain)["fit"]


def test_paired_differences_worked_out_by_hand():
    """Log scores of the true class, with the error of the mean of their differences."""
    own, flat = (np.log([p if y else 1.0 - p for p, y in zip(each, Y, strict=True)])
                 for each in (P, np.full(6, 0.6)))  # fmt: skip
    gap = own - flat
    error = np.sqrt(np.square(gap - gap.mean()).sum() / 5 / 6)
    coin = Predicted.of(Y, np.ones(6), np.full(6, 0.6))
    found = Predicted.of(Y, P > 0.5, P)
    said = f"(log score {own.mean():.2f} against {flat.mean():.2f}, difference "
    assert line(found, majority=coin, L1=coin) == (
        f"predicts no better than the majority {said}{gap.mean():.2f} +- {error:.2f}; accuracy "
        f"0.83 against 0.67); no better than L1 {said}{gap.mean():.2f} +- {error:.2f}; accuracy "
        "0.83 against 0.67)."
    )


def test_without_probabilities_classes_are_compared():
    right, wrong = Predicted.of(Y, Y, None), Predicted.of(Y, 1 - Y, P)
    better = line(right, L1=wrong)
    assert (
        better == "predicts better than L1 (accuracy 1.00 against 0.00, difference 1.00 +- 0.00)."
    )
    assert line(wrong, L1=right).startswith("predicts worse than L1 (accuracy 0.00 against 1.00")
    assert line(right, L1=right).startswith("predicts no better than L1")


@pytest.mark.parametrize(("shift", "word"), [(2.1, "better"), (1.9, "no better"), (-2.1, "worse")])
def test_two_standard_errors_are_noise(shift, word):
    """Differences of mean `shift` and error 1."""
    gap = np.array([-1.0, 1.0, 0.5, -0.5])
    gap = gap / (gap.std(ddof=1) / 2.0) + shift
    right, base = np.ones(4, dtype=bool), np.full(4, -9.0)
    found, other = Predicted(right, base + gap), Predicted(right, base)
    assert line(found, L1=other).startswith(f"predicts {word} than L1 ")
