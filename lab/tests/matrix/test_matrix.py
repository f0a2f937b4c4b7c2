"""The matrix: its declaration, its run, its file."""

import dataclasses

import numpy as np
import pytest

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.methods import registry
from lab.matrix import blocks as matrix
from lab.matrix import cost, declared
from lab.matrix.blocks import Matrix
from lab.matrix.declared import (
    AGAIN,
    BLOCKS,
    CELLS,
    EXACT,
    FLAT,
    Block,
    chosen,
)
from lab.matrix.rows import ROWS, identity, read, tidy, whole
from tests.support import seed

TABLES = {  # what the issue of the matrix asks for: model, its data sets
    "rfvm": "colon_discrete lymphoma_discrete leukemia_discrete allaml prostate_ge digits38",
    "pfcvm": "colon golub duke_lymph waveform sonar",
    "jcfo": "colon golub duke_lymph sonar",
    "sparse_probit": "colon golub duke_lymph sonar",
    "fsklr": "sonar heart ionosphere breast_wisconsin australian messidor digits38_noisy",
    "sklr": "sonar heart ionosphere breast_wisconsin australian messidor digits38_noisy",
}
PRIORS = {"pfcvm": 4, "rfvm": 4, "jcfo": 1, "sparse_probit": 1, "fsklr": 2, "sklr": 2}


# --- what is declared -----------------------------------------------------------------------------


@pytest.mark.parametrize("model", TABLES)
def test_every_data_set_of_a_paper_has_every_prior(model):
    for data in TABLES[model].split():
        kernels = {b.kernel for b in BLOCKS.values() if (b.model, b.data) == (model, data)}
        assert kernels
        for kernel in kernels:
            mine = [
                b for b in BLOCKS.values() if (b.model, b.data, b.kernel) == (model, data, kernel)
            ]
            assert len({b.prior for b in mine}) == len(mine) == PRIORS[model]


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


def test_the_cost_of_a_block_is_that_of_a_like_one_in_proportion_to_the_entries():
    known = {
        "fsklr/sonar/independent": 10.0, "fsklr/heart/independent": 20.0,
        "fsklr/sonar/printed_masks": 90.0, "rfvm/colon_discrete/flat": 0.0,
    }  # fmt: skip
    assert cost.to_come(BLOCKS["fsklr/sonar/independent"], known) == (0.0, "")
    near, like = cost.to_come(BLOCKS["fsklr/ionosphere/independent"], known)
    assert like == "fsklr/heart/independent"
    assert near == pytest.approx(20.0 * 351 * (351 + 34) / (270 * (270 + 13)))
    _, same_prior = cost.to_come(BLOCKS["fsklr/heart/printed_masks"], known)
    assert same_prior == "fsklr/sonar/printed_masks"
    assert cost.to_come(BLOCKS["rfvm/allaml/sparse"], known) == (None, "")  # flat says nothing
    assert cost.to_come(BLOCKS["pfcvm/colon/flat"], known) == (0.0, "one line, no fit")


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
    """Let the matrix consist of one block with three cells, and the line of an improper prior."""
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
    blocks = [Tiny(model="rfvm", data="tiny", prior=p) for p in ("sparse", FLAT)]
    monkeypatch.setattr(matrix, "chosen", lambda only: blocks)
    BLOCKS_BEFORE = dict(BLOCKS)
    BLOCKS.clear()
    BLOCKS.update({b.name: b for b in blocks})
    yield blocks[0]
    BLOCKS.clear()
    BLOCKS.update(BLOCKS_BEFORE)


def test_a_run_goes_on_keeps_a_row_a_cell_and_is_not_repeated(tiny, tmp_path, monkeypatch):
    """A run that is killed loses the fit in progress alone."""
    whole_fit = Matrix._fit

    def killed(self, block, cell, problem):
        if cell.label == "paper's":
            raise KeyboardInterrupt
        return whole_fit(self, block, cell, problem)

    def stored():
        return {p.name: p.stat().st_mtime_ns for p in tmp_path.glob("fits/*/*.nc")}

    monkeypatch.setattr(Matrix, "_fit", killed)
    with pytest.raises(KeyboardInterrupt):
        matrix.run(tmp_path, progressbar=False)
    kept = stored()
    assert set(kept) == {"exact.nc", "exact_again.nc", "papers_own_settings.nc"}
    monkeypatch.setattr(Matrix, "_fit", whole_fit)
    assert matrix.run(tmp_path, keep_fits=True, progressbar=False) == {}
    assert kept.items() <= stored().items()
    rows = whole(read(tmp_path / ROWS)).set_index(["prior", "cell"])
    exact, again = rows.loc["sparse", EXACT], rows.loc["sparse", AGAIN]
    assert exact["status"] == again["status"] == "finished"
    assert exact["sampler"] == "gibbs"
    assert np.isnan(exact["eta_error"])  # nothing to compare it with
    assert exact["active"] == again["active_exact"]
    assert again["p_off"] < 0.25  # at least 200 effective draws a side: its sd is below 0.05
    own = rows.loc["sparse", "paper's, own settings"]
    assert own["method"] == "rfvm_vb"
    assert own["p_off"] > 0.0
    form = rows.loc["sparse", "paper's, other form"]
    assert form["p_between"] > 0.0
    assert form["p_off"] != rows.loc["sparse", "paper's"]["p_off"]
    assert rows.loc["sparse", "savb"]["status"] == "absent"
    assert "does not apply" in rows.loc["sparse", "savb"]["reason"]
    assert rows.loc[FLAT, EXACT]["status"] == "improper"
    assert matrix.summarise(tmp_path).stat().st_size > 5000

    monkeypatch.setattr(Matrix, "_rows", lambda self, key: pytest.fail("it was computed again"))
    before = (tmp_path / ROWS).read_bytes()
    matrix.run(tmp_path, progressbar=False)
    assert (tmp_path / ROWS).read_bytes() == before
    work = Matrix(tmp_path)
    work.put(tiny.name, work.get(tiny.name))  # as at the end of a block: its fits are deleted
    assert not stored()


def test_a_failed_block_has_its_reason_and_no_rows(tiny, tmp_path, monkeypatch):
    def broken(self, block, cell, problem):
        raise RuntimeError("out of luck")

    monkeypatch.setattr(Matrix, "_fit", broken)
    failed = matrix.run(tmp_path, progressbar=False)
    assert failed == {tiny.name: "RuntimeError: out of luck"}
    assert set(read(tmp_path / ROWS)["prior"]) == {FLAT}


def test_a_changed_setting_is_another_block(tiny):
    other = dataclasses.replace(tiny, hypers={"bias_sd": 3.0})
    assert identity(other) != identity(tiny)


def test_an_unfinished_line_is_cut_and_half_a_block_does_not_count(tiny, tmp_path):
    path = tmp_path / ROWS
    matrix.append(path, [matrix._row(tiny, c, status="finished", N=24, identity=identity(tiny))
                         for c in tiny.cells])  # fmt: skip
    assert len(whole(read(path))) == len(tiny.cells)
    text = path.read_text()
    path.write_text(text[:-20])
    assert not len(whole(read(path)))
    assert path.read_text().endswith("\n")
    path.write_text(text + text.split("\n", 1)[1])  # twice, as two runs at once would leave it
    assert len(tidy(path)) == len(tiny.cells)
    assert path.read_text() == text


def test_rows_of_other_columns_are_moved_aside(tiny, tmp_path):
    path = tmp_path / ROWS
    old = "model,data,cell\nrfvm,tiny,exact\n"
    path.write_text(old)
    assert not len(read(path))
    rows = [matrix._row(tiny, c, status="finished", identity=identity(tiny)) for c in tiny.cells]
    matrix.append(path, rows)
    assert len(whole(read(path))) == len(tiny.cells)
    assert (tmp_path / f"{ROWS}.outdated").read_text() == old


def test_a_folder_without_rows_has_no_figure(tmp_path):
    with pytest.raises(InputError, match="no finished block"):
        matrix.summarise(tmp_path)
