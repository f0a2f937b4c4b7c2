"""`ardvark panel`: from a finished study to coefficients in a file."""

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.metrics import brier_score_loss, roc_auc_score

import ardvark as av
from ardvark.inference.comparison import study
from ardvark.inference.methods import run
from ardvark.inference.target.sampling import Sampling
from tests.support import rng, seed


@pytest.fixture
def table(tmp_path):
    """A table whose columns `a` and `c` decide, with a column of names."""
    g = rng(0)
    frame = pd.DataFrame(g.normal(size=(60, 5)), columns=list("abcde")) * [1, 10, 100, 1, 1]
    eta = 4.0 * frame["a"] - 0.04 * frame["c"]
    labels = np.where(g.uniform(size=60) < special.expit(eta), "ill", "well")
    frame.assign(status=labels).to_csv(tmp_path / "patients.csv", index=False)
    return tmp_path / "patients.csv"


def test_a_study_has_its_panel_in_a_file(command, table, tmp_path, monkeypatch):
    folder = tmp_path / "out"
    data, test = av.table(table, target="status").split(0.25, random_seed=0)
    problem = av.problem("pfcvm", data)
    asked = {
        "model": "pfcvm",
        "data": str(table),
        "table": {"target": "status"},
        "test_size": 0.25,
        "split_seed": 0,
        "hypers": {},
        "command": "ardvark compare",
    }
    sampling = Sampling(draws=100, chains=2, seed=seed())
    fit = study.run(problem, {"paper": {}}, folder, sampling, settings=asked)["pfcvm_lp"]
    early = command("predict", folder, table, "--panel")
    assert f"{folder} has no panel.csv. Make it: ardvark panel {folder}" in early.stderr
    done = command("panel", folder, "--sizes", 3, "--size", 2, "--folds", 3)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) <= 30
    assert max(len(line.replace(str(folder), "DIR")) for line in lines) <= 80
    found = pd.read_csv(folder / "panel.csv", index_col="name")["coefficient"]
    assert set(found.index) == {"intercept", "a", "c"}
    assert pd.read_csv(folder / "panel-sizes.csv")["size"].tolist() == [0, 1, 2, 3]
    assert {"a", "c"} <= set(pd.read_csv(folder / "panel-folds.csv", index_col=0).index)
    assert (folder / "panel.png").stat().st_size > 1000
    page = (folder / "panel.html").read_text()
    assert f'<td title="coefficient, a: {found["a"]:.3g}">' in page
    assert "--size 2" in page  # the command
    # rows that the study left out, by plain NumPy
    p = av.predict(problem, fit, test).mean(("chain", "draw")).values
    full = np.log(np.where(test.y == 1, p, 1.0 - p))
    assert f"{full.mean():.3f} ± {full.std(ddof=1) / np.sqrt(test.N):.3f}" in done.stdout
    told = pd.read_csv(folder / "panel-performance.csv", index_col=["prediction", "of"])
    left_out = told.loc["the full posterior", "left out"]
    assert left_out["auc"] == pytest.approx(roc_auc_score(test.y, p))
    assert left_out["brier"] == pytest.approx(brier_score_loss(test.y, p))
    # the file predicts as a spreadsheet does
    new = pd.read_csv(table)[["c", "a"]].head(4)
    new.to_csv(tmp_path / "new.2.csv", index=False)
    predicted = command("predict", folder, tmp_path / "new.2.csv", "--panel")
    assert predicted.returncode == 0, predicted.stderr
    p = pd.read_csv(folder / "predicted-new.2-by-panel.csv", index_col="row")["P(well)"]
    eta = found["intercept"] + new.to_numpy() @ found[["c", "a"]].to_numpy()
    np.testing.assert_allclose(p, special.expit(eta), rtol=1e-9)
    lacking = command("predict", folder, tmp_path / "new.2.csv")
    assert "lack 3 of 5 columns: b, d, e" in lacking.stderr

    def refuse(*args, **given):
        raise AssertionError("a finished refit is computed again")

    monkeypatch.setattr(run, "compute", refuse)
    again = command("panel", folder, "--sizes", 3, "--size", 2, "--folds", 3)
    assert again.stdout == done.stdout
    bad = command("panel", folder, "--sizes", 9)
    assert bad.returncode == 2
    assert "sizes must be an integer from 1 to 5" in bad.stderr
