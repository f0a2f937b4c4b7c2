"""The matrix: its declaration, its run, its file."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.methods import registry
from lab.matrix import declared, figure, pages, rows, run
from lab.matrix.declared import (
    AGAIN,
    BLOCKS,
    CELLS,
    EXACT,
    FLAT,
    Block,
    chosen,
)
from tests.support import seed

BUILT_IN = [block for block in BLOCKS.values() if block.data in ("waveform", "digits38")]


@pytest.mark.parametrize("block", BUILT_IN, ids=lambda block: block.name)
def test_priors_and_options_can_be_had(block):
    problem = block.problem()
    assert [cell.label for cell in block.cells][:1] == [EXACT]
    for cell in block.cells:
        mine = cell.problem(block)
        assert not cell.form or mine.fingerprint == problem.fingerprint  # the same posterior
        assert not cell.form or mine.form != problem.form
        if registry.BACKENDS[cell.method].supports(registry.Target(mine)) is None:
            registry.prepare(cell.method, mine, cell.options)


def test_labels_are_unique_and_the_exact_posterior_comes_first():
    for cells in CELLS.values():
        labels = [cell.label for cell in cells]
        assert len(set(labels)) == len(labels)
        assert labels[:2] == [EXACT, AGAIN]
        assert cells[0].seed != cells[1].seed


def test_blocks_are_chosen_by_name_part_or_pattern():
    assert [b.name for b in chosen(["rfvm/allaml/dense"])] == ["rfvm/allaml/dense"]
    assert {b.model for b in chosen(["jcfo", "sklr/heart/*"])} == {"jcfo", "sklr"}
    assert len(chosen([])) == len(BLOCKS)
    with pytest.raises(InputError, match="no block matches lupus"):
        chosen(["lupus"])


# --- a run ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tiny(Block):
    """A block on 24 samples of 3 features, the first of which decides."""

    def problem(self, hypers=None):
        X = np.random.default_rng(0).normal(size=(24, 3))
        y = X[:, 0] + 0.8 * np.random.default_rng(1).normal(size=24) > 0
        return av.problem(self.model, X, y, **dict(self.hypers if hypers is None else hypers))


@pytest.fixture
def tiny(monkeypatch):
    """Let the matrix consist of one block with five cells, and the line of an improper prior."""
    exact = {"method": "exact", "options": {"ess": 200.0, "sampler": "gibbs"}}
    vb, other = {"method": "rfvm_vb"}, declared.OTHER_FORM["rfvm"]  # nothing has to be compiled
    cells = (
        declared.Cell(label=EXACT, seed=seed(1), **exact),
        declared.Cell(label=AGAIN, seed=seed(2), **exact),
        declared.Cell(label="paper's, own settings", hypers={"bias_sd": 2.0}, **vb),
        declared.Cell(label="paper's", **vb),
        declared.Cell(label="paper's, other form", form=other, seed=seed(3), **vb),
        declared.Cell(label="savb", method="fsklr_savb"),
    )
    monkeypatch.setitem(CELLS, "rfvm", cells)
    blocks = {p: Tiny(model="rfvm", data="tiny", prior=p) for p in ("sparse", FLAT)}
    for module in (declared, rows):
        monkeypatch.setattr(module, "BLOCKS", {b.name: b for b in blocks.values()})
    return blocks


def test_a_run_goes_on_and_keeps_a_row_a_cell(tiny, tmp_path, monkeypatch):
    """A run that is killed loses the fit in progress alone."""
    file, fits, fitted = tmp_path / "matrix.csv", tmp_path / "fits", av.fit

    def killed(problem, method, **settings):
        if method == "rfvm_vb" and problem.hypers.bias_sd != 2.0:
            raise KeyboardInterrupt
        return fitted(problem, method, **settings)

    monkeypatch.setattr(run.av, "fit", killed)
    with pytest.raises(KeyboardInterrupt):
        run.compute([tiny["sparse"]], file, fits)
    kept = {p.name: p.stat().st_mtime_ns for p in fits.glob("*/*.nc")}
    assert set(kept) == {"exact.nc", "exact_again.nc", "papers_own_settings.nc"}
    monkeypatch.setattr(run.av, "fit", fitted)
    with monkeypatch.context() as patched:
        patched.setattr(run.shutil, "rmtree", lambda *given, **more: None)
        assert run.compute(list(tiny.values()), file, fits) == 0
    assert kept.items() <= {p.name: p.stat().st_mtime_ns for p in fits.glob("*/*.nc")}.items()
    found = rows.read(file).set_index(["prior", "cell"])
    exact, again = found.loc["sparse", EXACT], found.loc["sparse", AGAIN]
    assert exact["status"] == again["status"] == "finished"
    assert exact["sampler"] == "gibbs"
    assert np.isnan(exact["eta_error"])  # nothing to compare it with
    assert exact["active"] == again["active_exact"]
    assert again["p_off"] < 0.25  # at least 200 effective draws a side: its sd is below 0.05
    own = found.loc["sparse", "paper's, own settings"]
    assert own["method"] == "rfvm_vb"
    assert own["p_off"] > 0.0
    form = found.loc["sparse", "paper's, other form"]
    assert form["p_between"] > 0.0
    assert form["p_off"] != found.loc["sparse", "paper's"]["p_off"]
    assert found.loc["sparse", "savb"]["status"] == "absent"
    assert "does not apply" in found.loc["sparse", "savb"]["reason"]
    assert found.loc[FLAT, EXACT]["status"] == "improper"
    assert len(figure.draw(rows.read(file)).figure.axes) == 6
    before = file.read_bytes()
    held = rows.read(file)
    rows.add(held[held["prior"] == "sparse"].to_dict("records"), file)  # a block twice
    assert file.read_bytes() == before
    rows.add(held[held["cell"] == EXACT].assign(identity="of old").to_dict("records"), file)
    assert file.read_bytes() == before


def test_a_failed_block_has_its_reason_and_no_rows(tiny, tmp_path, monkeypatch, capsys):
    def broken(*given, **more):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(run, "fit", broken)
    file = tmp_path / "matrix.csv"
    assert run.compute(list(tiny.values()), file, tmp_path) == 1
    assert f"{tiny['sparse'].name} RuntimeError: out of luck" in capsys.readouterr().out
    assert set(rows.read(file)["prior"]) == {FLAT}


def test_a_changed_setting_is_another_block(tiny):
    other = dataclasses.replace(tiny["sparse"], hypers={"bias_sd": 3.0})
    assert rows.identity(other) != rows.identity(tiny["sparse"])


# --- what is written ------------------------------------------------------------------------------


def test_every_stored_block_is_as_it_is_declared():
    """A changed identity would compute it again."""
    assert len(rows.read()) == len(pd.read_csv(rows.FILE))


def test_the_page_is_what_the_rows_say():
    text = (run.HERE / "MATRIX.md").read_text()
    for name, table in pages.texts(rows.read()).items():
        assert f"<!-- table: {name} -->\n\n{table}\n\n<!-- end -->" in text


@pytest.mark.parametrize(
    ("close", "near", "p_off", "worst", "width"),
    [
        (True, True, 0.01, 0.05, 1.1),
        (False, True, 0.01, 0.05, 1.6),
        (False, True, 0.01, 0.2, 1.1),
        (False, True, 0.01, 0.05, np.nan),
        (False, False, 0.3, 0.05, 1.1),
        (False, False, np.nan, np.nan, np.nan),
    ],
)
def test_a_fit_is_close_in_probability_in_every_row_and_in_width(close, near, p_off, worst, width):
    place = {"model": "pfcvm", "kernel": "", "data": "colon", "prior": "sparse",
             "status": "finished", "active_exact": 0.9, "p_off_base": 0.4}  # fmt: skip
    fit = {**place, "cell": "ADVI", "p_off": p_off, "p_worst": worst, "eta_width": width}
    found = pages.held(pd.DataFrame([{**place, "cell": EXACT}, fit])).iloc[1]
    assert (found["close"], found["near"], found["droppable"]) == (close, near, False)
