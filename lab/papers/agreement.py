"""How well selections agree that were made on different parts of the data.

For sets s and t out of D features, with r features in each and b in both, the measures are Jaccard
b / (r_s + r_t - b), and Pearson's correlation of their indicators, which is 0 for sets that share
no more than chance (PFCVM_LP, (16)-(19)).
"""

import numpy as np


def agreement(chosen: np.ndarray) -> dict[str, float]:
    """Return Jaccard and Pearson of selections (R, D), each the mean over pairs.

    PFCVM (16) of a pair gives PFCVM (17), and PFCVM (18) of a pair gives PFCVM (19).

    Pairs for which a measure is 0 / 0 (nothing, or everything, is selected) are left out of it.
    """
    S = chosen.astype(float)
    D, r, both = S.shape[1], S.sum(axis=1), S @ S.T
    pair = np.triu_indices(len(S), 1)
    with np.errstate(invalid="ignore"):
        jaccard = both / (r[:, None] + r - both)
        pearson = (D * both - np.outer(r, r)) / np.sqrt(np.outer(r * (D - r), r * (D - r)))
    out = {}
    for name, of_pairs in (("jaccard", jaccard[pair]), ("pearson", pearson[pair])):
        defined = of_pairs[np.isfinite(of_pairs)]
        out[name] = float(defined.mean()) if len(defined) else float("nan")
    return out


def jackknife(chosen: np.ndarray, name: str) -> float:
    """Return the standard error of an agreement, by leaving each selection out."""
    R = len(chosen)
    if R < 3:
        return float("nan")
    left = np.array([agreement(np.delete(chosen, i, axis=0))[name] for i in range(R)])
    return float(((R - 1) * left.var()) ** 0.5)
