"""What the posteriors of notebook 10 say of the printed genes.

They are PFCVM's under the sparse default, on the same data, but with the samples as they are: the
paper standardises each sample first. Their files hold the genes with the largest P(active), so of
another gene it is only known that its P(active) is smaller.
"""

from functools import cache

import pandas as pd

from .declared import HERE

FOLDER = HERE.parents[1] / "notebooks"
SAME = {"colon": "colon", "golub": "golub", "allaml": "golub"}


@cache
def stored_p_active(data: str) -> dict[str, float]:
    """Return P(active) of the leading genes of a data set by name, none if there is no file."""
    if data not in SAME:
        return {}
    path = FOLDER / f"genes_{SAME[data]}.csv"
    return pd.read_csv(path, comment="#", index_col=0)["p_active"].to_dict()
