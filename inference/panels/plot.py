"""The figure of a panel: how the log score rises with its size."""

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def sizes(table: "pd.DataFrame", suggested: int | None, what: str) -> "Figure":
    """Draw the log score of each size, relative to the full posterior, with its standard error.

    `what` is the model and the data, for the title.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    axis.axhline(0.0, color="0.5", lw=0.8)
    axis.errorbar(
        table.index, table["difference"], table["se"], fmt="o-", color="#0072B2", ms=4, lw=1.2
    )
    if suggested is not None:
        axis.axvline(suggested, color="#D55E00", lw=1.0, ls="--")
    axis.set_xticks(np.unique(np.linspace(0, table.index[-1], 11).round().astype(int)))
    axis.set_xlabel("features in the panel")
    axis.set_ylabel("log score minus the posterior's\n(bars: 1 standard error)")
    noun = "feature" if suggested == 1 else "features"
    found = "no size" if suggested is None else f"{suggested} {noun} (dashed)"
    figure.suptitle(
        f"{what}\nPredicts as the full posterior within one standard error: {found}", fontsize=10
    )
    return figure
