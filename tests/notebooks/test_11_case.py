"""A case: adjusted for age, sex and batch, from a messy table to a panel."""

import importlib.util

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from tests.notebooks.running import DATA, SIZES, values

FILES = (
    *(f"{name}.txt" for name in ("report", "plain", "adjusted", "choose", "panel")),
    *(f"{name}.csv" for name in ("tissues", "genes", "shifted", "odds", "choice")),
    *(f"{name}.csv" for name in ("sizes", "folds", "panel")),
)


@SIZES
@pytest.mark.usefixtures("size")
def test_the_case(full, tmp_path):
    first, genes, shifted, odds, choice, sizes, folds, powers, mediator, transfer = values(
        "11_case", tmp_path, "first", "genes", "shifted", "odds", "choice", "sizes", "folds",
        "powers", "mediator", "transfer",
    )  # fmt: skip
    # of stored files, which are the same in every run
    assert first["shifted"].sum() > 5
    follows = genes["shifted"] & (genes["plain_p_active"] > 0.05)
    assert (genes["adjusted_p_active"] < 0.25 * genes["plain_p_active"])[follows].all()
    assert genes["plain_p_active"]["Z50753"] < 0.01 < 0.03 < genes["adjusted_p_active"]["Z50753"]
    assert genes.loc["R87126", "adjusted_p_active"] < 0.05 < genes.loc["R87126", "plain_p_active"]
    assert shifted["p_any"]["plain"] > 0.7
    assert shifted["p_any"]["adjusted"] < shifted["prior_any"]["adjusted"] + 0.15
    assert odds["5 %"]["age"] > 1.0
    assert odds["5 %"]["age"] < np.exp(6 / 64) < odds["95 %"]["age"]
    assert odds["5 %"]["sex=m"] < 1.0 < odds["95 %"]["sex=m"]
    assert odds["5 %"]["batch=spring"] < 16.0 < odds["odds ratio"]["batch=spring"]
    clear = choice["difference"] < -2 * choice["difference_se"]
    assert choice.index[0] == "ridge"
    assert set(choice.index[clear]) == {"share"}
    assert choice["difference_se"].iloc[1:5].max() < 0.08
    assert sizes.index[sizes["to_best"] + sizes["to_best_se"] >= 0][0] == 1
    assert sizes["log_score"][0] < -0.45
    assert folds.loc["T86473", "1"] == 0.8
    assert folds["5"].iloc[1:].max() <= 0.4
    adjusted = genes["adjusted_p_active"].sort_values(ascending=False)
    assert 5 < list(adjusted.index).index("T86473") < 20
    assert adjusted["T86473"] < 0.55 * adjusted.iloc[0]
    assert powers.loc["10 years"].between(1.5, 60.0).all()
    if full:
        assert mediator.loc["gene 1", "genes alone"] > 0.95
        assert mediator.loc["gene 1", "beside the protein"] < 0.6
        assert transfer["same study"].idxmax() == "with the batch"
        assert transfer["same study"].idxmin() == "mean over batches"
        assert transfer["other clinic"].idxmax() == "mean over batches"
        assert transfer["other clinic"]["with the batch"] < np.log(0.5)
        assert transfer["other clinic"]["genes alone"] < np.log(0.5)


@pytest.mark.parametrize("name", FILES)
def test_files_are_small_and_of_the_script(name):
    """Screens say what was printed; tables begin with the command that makes them."""
    text = (DATA / f"case_{name}").read_text()
    assert len(text) < 10_000
    assert "Traceback" not in text
    made = text.startswith("# ARDVARK_DATA=... python notebooks/data/case.py; ")
    assert made == name.endswith("csv")


@pytest.mark.course
def test_the_script_writes_what_the_notebook_reads(tmp_path, monkeypatch, command):
    """On a small table with names of its own; its commands are those of the page, but quick."""
    spec = importlib.util.spec_from_file_location("case", DATA / "case.py")
    case = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(case)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 30))
    labels = np.where(X[:, 0] + rng.normal(size=60) > 0, "tumour", "normal")
    data = av.Dataset.from_arrays(X, labels, feature_names=[f"g{k}" for k in range(30)])
    frame, shifted = case.patients(data)
    assert len(shifted) == 10
    spring = (frame["batch"] == "spring").to_numpy()
    moved = frame[shifted].to_numpy(float) - data.X[:, [int(name[1:]) for name in shifted]]
    assert np.nanmax(np.abs(moved[~spring])) < 0.001
    assert np.nanmin(np.abs(moved[spring])) > 1.0

    def say(words, folder):
        quick = {"compare": ["--draws", 50, "--option", "exact.limit=256"]}
        quick["choose"] = ["--candidates", "l1,share"]
        more = [] if words == case.COMMANDS["report"] else quick.get(words[0], [])
        done = command(*words, *more, cwd=folder)
        return done.stdout if done.returncode == 0 else done.stderr

    monkeypatch.setattr(case, "say", say)
    monkeypatch.setattr(case, "HERE", tmp_path / "here")
    (tmp_path / "here").mkdir()
    case.main(tmp_path / "work", data)
    assert {path.name for path in (tmp_path / "here").iterdir()} == {f"case_{n}" for n in FILES}
    for name in FILES:
        made, kept = tmp_path / "here" / f"case_{name}", DATA / f"case_{name}"
        if name in ("genes.csv", "shifted.csv", "odds.csv", "choice.csv", "sizes.csv", "panel.csv"):
            columns = [list(pd.read_csv(path, comment="#").columns) for path in (made, kept)]
            assert columns[0] == columns[1]
    assert "This mends" in (tmp_path / "here" / "case_report.txt").read_text()
