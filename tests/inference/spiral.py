"""A data set without a random number, so that no draw of it decides what a test can see."""

import numpy as np


def spiral(N, D=2):
    """Return X (N, D), D up to 3, and y (N,): two halves of a circle, two labels flipped."""
    angle = 2.0 * np.pi * (np.arange(N) + 0.25) / N
    X = np.stack([np.cos(angle), np.sin(angle), np.cos(3.0 * angle)], axis=1)[:, :D]
    X[1::2] *= 1.5
    y = (X[:, 0] > X[:, 1]).astype(int)
    y[[N // 5, N - 2]] = 1 - y[[N // 5, N - 2]]
    return X, y
