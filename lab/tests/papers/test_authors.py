"""RFVM's released program: our option against its numbers, and what is made of its runs."""

import numpy as np
import pandas as pd
import pytest

from ardvark.inference.papers.rfvm.program import IMPLIED, Program
from ardvark.inference.papers.rfvm.vb import PRUNE_FROM, Options
from ardvark.models import rfvm
from lab import tables
from lab.papers import authors
from lab.papers.tables import RELEASED


def test_forty_iterations_are_those_of_the_released_program():
    """From the program's own start, on its small problem; the numbers agree to ten digits.

    `python -m lab.papers.authors --code FOLDER --trace` has stored them. 4 features and 26 samples
    are pruned on the way, so every bound from the seventh on has what returns in it.
    """
    wanted, (X, y) = tables.read(authors.TRACE), authors.small()
    N, D = X.shape
    v, a = (wanted[[f"{x}{k}" for k in range(n)]].to_numpy() for x, n in (("v", D), ("a", N)))
    h = rfvm.Hypers(**RELEASED).fill(N, N, D)
    options = Options(program=True, **IMPLIED)
    q = Program(X, y.astype(float), X, h, np.random.default_rng(0), options)
    q.start_from(v[0], a[0], float(wanted["bias"][0]))
    assert len(wanted) == authors.SHORT + 1 == 41
    for t in range(1, len(wanted)):
        q.sweep()
        q.add_bound()
        found = np.zeros(D + N)
        found[np.concatenate([q.features, D + q.samples])] = np.concatenate([q.v, q.a])
        if t >= PRUNE_FROM:
            q.prune()
        one = wanted.iloc[t]
        np.testing.assert_allclose(found[:D], v[t], rtol=1e-9, atol=1e-10 * v[t].max())
        np.testing.assert_allclose(found[D:], a[t], rtol=1e-9, atol=1e-10 * np.abs(a[t]).max())
        np.testing.assert_allclose([q.b, q.tau], one[["bias", "tau"]].astype(float), rtol=1e-8)
        assert q.bounds[-1] == pytest.approx(one["bound"], abs=1e-6)
        assert (len(q.features), len(q.samples)) == (one["features"], one["vectors"])
    assert (len(q.features), len(q.samples)) == (2, 14)


def test_the_stored_example_of_the_authors_is_reproduced():
    frame = tables.read(authors.STORED)
    rows = frame[frame["data"] == "the released example"]
    assert list(rows["by"]) == [authors.THEIRS, authors.OURS]
    for _, row in rows.iterrows():
        assert {name: row[name] for name in authors.ENDS} == authors.ENDS
        assert row["bound"] == pytest.approx(1333537.71836122, rel=1e-9)  # as it is stored there


def test_our_option_ends_where_the_program_does():
    """The program prunes once more where its bound is no number, so features may differ by one."""
    frame = tables.read(authors.STORED).set_index(["data", "fold"])
    theirs, ours = (frame[frame["by"] == by] for by in (authors.THEIRS, authors.OURS))
    ours = ours.loc[theirs.index]
    assert len(theirs) > 10
    for name in ("iterations", "ended", "vectors", "right"):
        pd.testing.assert_series_equal(theirs[name], ours[name])
    assert (theirs["features"] - ours["features"]).abs().max() <= 1


def test_an_example_that_ends_elsewhere_is_refused():
    with pytest.raises(RuntimeError, match="'features': 7"):
        authors.check_example(authors.ENDS | {"features": 7})


def test_a_line_of_the_table_is_the_mean_over_folds():
    frame = pd.DataFrame(
        {
            "data": ["x"] * 2, "by": ["y"] * 2, "ended": ["its rule", "no number"],
            "right": [9, 8], "test": [10, 10], "features": [1, 3],
            "of_features": [100, 100], "vectors": [2, 4], "train": [20, 20],
            "iterations": [400, 900],
        }
    )  # fmt: skip
    (line,) = authors.summary(frame).to_dict("records")
    assert line == {
        "data": "x", "by": "y", "iterations": "400 to 900", "no number": "1 of 2",
        "accuracy, %": "85.0 +- 5.0", "features, %": "2", "vectors, %": "15",
    }  # fmt: skip


def test_the_page_has_the_stored_table():
    page = (authors.HERE.parent / "papers" / "rfvm.md").read_text()
    assert tables.markdown(authors.summary(tables.read(authors.STORED))) in page


PROGRAM = '''
import numpy as np
from types import SimpleNamespace as Space
from scipy import linalg

class LR_ARD:
    """Keeps one feature and one sample, and answers by the first column."""

    def update(self):
        linalg.pinv(np.eye(2), rcond=1e-10)
        self.q_dist.b["mean"] += 1.0

    def fit(self, z, t, z_tst, t_tst, maxit, **settings):
        self.K_dep, self.N = z.shape[1], len(z)
        self.index, self.index_a = np.array([1]), np.array([0])
        tau = np.array([[2.0]])
        self.q_dist = Space(
            V={"mean": np.array([[0.5]])}, A={"mean": np.array([[3.0]])}, b={"mean": 0.0},
            tau_mean=lambda: tau,
        )
        self.L, self.labels_pred, self.labs_final = [], [], []
        self.num_feat, self.num_sample = [1], [1]
        for _ in range(maxit):
            self.update()
            self.L.append(np.float64(np.random.normal()))
            self.labels_pred.append(1 / (1 + np.exp(-z_tst[:, :1])))
            self.labs_final.append((z_tst[:, 0] > 0).astype(int))
            print("an iteration")
'''


def test_a_program_runs_in_a_process_of_its_own(tmp_path, capfd):
    """A stand-in for the released program: the seed, the dropped keyword, labels and the trace."""
    (tmp_path / authors.PROGRAM).write_text(PROGRAM)
    X, y = np.array([[1.0, 2.0], [-1.0, 0.5], [2.0, 0.0]]), np.array([1, 0, 1])
    end = authors.run(tmp_path, X, y, X, y, seed=5, iterations=3, trace=True)
    np.testing.assert_allclose(end["bound"], np.random.RandomState(5).normal(size=3))
    np.testing.assert_array_equal(end["label"], y)
    np.testing.assert_allclose(end["probability"], 1 / (1 + np.exp(-X[:, 0])))
    np.testing.assert_array_equal(end["bias"], [0.0, 1.0, 2.0, 3.0])
    np.testing.assert_array_equal(end["v"], [[0.0, 0.5]] * 4)
    np.testing.assert_array_equal(end["a"], [[3.0, 0.0, 0.0]] * 4)
    line = authors.theirs(tmp_path, (X, y, X, y))
    assert (line["right"], line["features"], line["ended"]) == (3, 1, "most iterations")
    assert capfd.readouterr().out == ""
