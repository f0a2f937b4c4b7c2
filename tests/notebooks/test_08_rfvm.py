"""RFVM: a mean field, step by step."""

import nbformat
import numpy as np
import pytest

from tests.notebooks.running import FOLDER, SIZES, values


@SIZES
@pytest.mark.usefixtures("size")
def test_rfvm(full, tmp_path):
    agreement, prior_active, varies, survivors, starts, truncated_gap, rate = values(
        "08_rfvm", tmp_path, "agreement", "prior_active", "varies", "survivors", "starts",
        "truncated_gap", "rate",
    )  # fmt: skip
    # the algorithm from scratch is the package's, at the same sweep
    assert agreement.shape == (9, 4)
    assert agreement.to_numpy().max() < 1e-8
    assert truncated_gap < 1e-8
    error = abs(rate["simulation"] - rate["diagonal only"])
    assert error < 5 * rate["its standard error"]  # of draws with a fixed seed
    assert rate["all pairs"] - rate["simulation"] > 30 * rate["its standard error"]
    assert varies.sum() == 52
    assert 6.5 < prior_active.mean() < 9.0  # sd 4 of a draw
    assert np.mean(prior_active > 15) < 0.1
    assert survivors == 1
    assert np.ptp(starts) < 0.01


def test_the_algorithm_has_at_most_sixty_lines_with_their_shapes():
    notebook = nbformat.read(FOLDER / "08_rfvm.ipynb", as_version=4)
    cells = [c.source for c in notebook.cells if c.source.startswith(("def folded", "def sweep"))]
    assert len(cells) == 2
    lines = [line for line in "\n".join(cells).splitlines() if line.strip()]
    assert len(lines) <= 60
    computed = [line for line in lines if " = " in line or " += " in line or "return" in line]
    assert len(computed) > 30
    assert [line for line in computed if "  # (" not in line] == []
