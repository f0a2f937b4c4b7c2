"""The data sets that need no download: scikit-learn's digits, and three that are simulated.

Simulated ones have a fixed seed and their own generator, so every call gives the same values.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ardvark.common.validate import InputError

from .dataset import Dataset

_DIGITS = (
    "Alpaydin, E. and Kaynak, C. (1998). Optical Recognition of Handwritten Digits. UCI Machine "
    "Learning Repository. The copy of scikit-learn."
)


def digits38(*, raw: bool = False) -> Dataset:
    """Return handwritten 3 against 8: 357 images of 8 x 8 pixels, 183 and 174 per class.

    Source: `sklearn.datasets.load_digits`, part of scikit-learn. y = 1 is the 8. Feature
    `pixel_r_c` is row r, column c, both from 0. Ten pixels are constant: white in every image.

    Parameters
    ----------
    raw : bool
        False divides the 16 grey levels by 16, so that pixels lie in [0, 1], as the FS-SKLR paper
        says of its images (section V.A); True keeps 0 to 16.
    """
    from sklearn.datasets import load_digits

    images, digits = load_digits(return_X_y=True)
    keep = np.isin(digits, (3, 8))
    return Dataset.from_arrays(
        images[keep] if raw else images[keep] / 16,
        digits[keep],
        name="digits38",
        feature_names=[f"pixel_{r}_{c}" for r in range(8) for c in range(8)],
        citation=_DIGITS,
        transform="" if raw else "/16",
    )


def digits38_noisy(*, random_seed: int = 0) -> Dataset:
    """Return `digits38` with noise: the data of the FS-SKLR paper, as far as its text goes.

    The paper says that grey levels are scaled to [0, 1], and noise from U(0, 1) is added to the
    input patterns. We take this to mean independent noise on every pixel of every image, added once
    before any split. The sum is neither clipped nor rescaled (values in [0, 2]). The draw and its
    seed are not published, so the paper's figures can be reproduced only up to the draw.

    Parameters
    ----------
    random_seed : int
        Seed of the noise.
    """
    clean = digits38()
    noise = np.random.default_rng(random_seed).random(clean.X.shape)  # (N, D)
    return Dataset(
        clean.X + noise,
        clean.y,
        clean.feature_names,
        clean.sample_names,
        clean.class_names,
        "digits38_noisy",
        clean.citation,
        "/16, + U(0, 1)",
    )


def waveform(*, n_per_class: int = 200, random_seed: int = 0) -> Dataset:
    """Return wave 1 against wave 2 of the CART waveform problem, with noise features.

    Breiman, Friedman, Olshen and Stone (1984), Classification and Regression Trees, section 2.6.2.
    Three triangles of height 6 over the points k = 1 to 21,

        h1(k) = max(6 - |k - 7|, 0),  h2(k) = max(6 - |k - 15|, 0),  h3(k) = max(6 - |k - 11|, 0)

    and, with u ~ U(0, 1) drawn for each sample and e ~ N(0, 1) for each value,

        wave 1:  x = u h1 + (1 - u) h2 + e
        wave 2:  x = u h1 + (1 - u) h3 + e

    followed by 19 features of pure N(0, 1) noise, so D = 40. y = 1 is wave 2. Features `wave_1` to
    `wave_21` carry the waves (`wave_1` and `wave_21` have mean 0 in both classes); `noise_22` to
    `noise_40` are noise. Some textbooks number the classes differently. The numbers here are those
    of UCI's file (`waveform_uci`, where they start from 0); a test compares the class means.

    Parameters
    ----------
    n_per_class : int
        Samples of each wave; 200 as in the PFCVM paper.
    random_seed : int
        Seed of the draw.
    """
    if n_per_class < 1:
        raise InputError(f"n_per_class must be at least 1, got {n_per_class}.")
    rng = np.random.default_rng(random_seed)
    point = np.arange(1, 22)
    h1, h2, h3 = (np.maximum(6 - np.abs(point - peak), 0.0) for peak in (7, 15, 11))
    u = rng.random((2 * n_per_class, 1))  # (N, 1)
    other = np.repeat([h2, h3], n_per_class, axis=0)  # (N, 21)
    X = rng.standard_normal((2 * n_per_class, 40))  # (N, 40)
    X[:, :21] += u * h1 + (1 - u) * other
    return Dataset.from_arrays(
        X,
        np.repeat(["wave 1", "wave 2"], n_per_class),
        name="waveform",
        feature_names=waveform_names(),
        citation="Breiman, L., Friedman, J. H., Olshen, R. A. and Stone, C. J. (1984). "
        "Classification and Regression Trees. Wadsworth.",
    )


def waveform_names() -> list[str]:
    """Return the 40 feature names of `waveform` and of `waveform_uci`."""
    return [f"wave_{k}" if k <= 21 else f"noise_{k}" for k in range(1, 41)]


INFORMATIVE = 10
"""Features of `fat` that tell the classes apart."""


def fat(*, n: int = 60, d: int = 2000, random_seed: int = 0) -> Dataset:
    """Return a synthetic set with many more features than samples, and known informative ones.

    Half of the samples have y = 1. Every value is N(0, 1). Each of the 10 informative features is
    shifted by +0.75 in one class and by -0.75 in the other, so its two class means are 1.5 standard
    deviations apart, in a random direction. The best rule is linear in the informative features,
    with weights of equal size. Their columns are chosen at random. They are called `informative_k`,
    and all others `noise_k`, where k is the column, counted from 1.

    Parameters
    ----------
    n, d : int
        Samples and features.
    random_seed : int
        Seed of the draw.
    """
    if n < 4 or d < INFORMATIVE:
        raise InputError(f"fat needs n >= 4 and d >= {INFORMATIVE}, got n={n}, d={d}.")
    rng = np.random.default_rng(random_seed)
    y = np.arange(n) % 2
    informative = np.sort(rng.choice(d, INFORMATIVE, replace=False))
    direction = rng.choice([-0.75, 0.75], INFORMATIVE)
    X = rng.standard_normal((n, d))
    X[:, informative] += np.outer(2 * y - 1, direction)
    planted = set(informative.tolist())
    return Dataset.from_arrays(
        X,
        y,
        name="fat",
        feature_names=[f"{'informative' if k in planted else 'noise'}_{k + 1}" for k in range(d)],
        citation="Synthetic: ardvark.data.builtin.fat.",
    )


@dataclass(frozen=True)
class Builtin:
    """What `available` says about a built-in data set without making it.

    Parameters
    ----------
    make : callable
        Returns the data set.
    shape, counts : tuple of int
        (N, D), and the numbers of y = 0 and y = 1.
    positive : str
        What y = 1 means.
    home, note : str
        Where it comes from, and what to know about it.
    raw : bool
        Whether `make` takes `raw=True`.
    """

    make: Callable[..., Dataset]
    shape: tuple[int, int]
    counts: tuple[int, int]
    positive: str
    home: str
    note: str
    raw: bool = False


BUILTIN: dict[str, Builtin] = {
    "digits38": Builtin(
        digits38,
        (357, 64),
        (183, 174),
        "8",
        "scikit-learn",
        "3 against 8, pixels in [0, 1]; 10 constant features",
        raw=True,
    ),
    "digits38_noisy": Builtin(
        digits38_noisy,
        (357, 64),
        (183, 174),
        "8",
        "scikit-learn",
        "digits38 with U(0, 1) noise on every pixel; FS-SKLR's data",
    ),
    "waveform": Builtin(
        waveform,
        (400, 40),
        (200, 200),
        "wave 2",
        "drawn",
        "CART waves 1 and 2; features 22 to 40 are noise",
    ),
    "fat": Builtin(
        fat, (60, 2000), (30, 30), "1", "drawn", "10 planted features named informative_k"
    ),
}
