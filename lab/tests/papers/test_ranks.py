"""Friedman's test, (20) and kappa by hand, and the page's tables and sentences."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from lab import tables
from lab.papers import ranks
from tests.support import rng

PAGE = ranks.Path(ranks.__file__).with_name("pfcvm.md").read_text()
RANKED = ranks.ranked().set_index(["table", "figures"])


def test_the_critical_difference_is_that_of_the_paper():
    """PFCVM sec. 4.2: 1.82 for six methods on fourteen sets, with q = 2.576."""
    found = ranks.friedman(pd.DataFrame(rng(1).random((14, 6))))
    assert found.critical == pytest.approx(2.576 * np.sqrt(6 * 7 / (6 * 14)), abs=1e-3)


def test_ranks_by_hand():
    scores = pd.DataFrame({"a": [0.9, 0.8, 0.7], "b": [0.5, 0.8, 0.6], "c": [0.1, 0.2, 0.3]})
    found = ranks.friedman(scores)
    assert found.ranks.tolist() == pytest.approx([3.5 / 3, 5.5 / 3, 3.0])
    assert found.critical == pytest.approx(2.2414 * np.sqrt(12 / 18), abs=1e-3)
    assert (found.beyond(1), found.beyond(-1)) == (["c"], [])
    last = ranks.friedman(scores[["c", "b", "a"]])
    assert (last.beyond(1), last.beyond(-1)) == ([], ["a"])


@pytest.mark.parametrize("seed", range(5))
def test_kappa_is_cohens(seed):
    label, y = (rng(seed).random((2, 40)) < 0.4).astype(int)
    assert ranks.kappa(label, y)[0] == pytest.approx(cohen_kappa_score(y, label))


def test_the_page_has_the_tables_and_says_what_they_say():
    for name, frame in (("ranks", RANKED.reset_index()), ("kappa", ranks.kappas())):
        shown = tables.markdown(frame)
        assert f"<!-- table: {name} -->\n\n{shown}\n\n<!-- end -->" in PAGE
    behind, ahead = (RANKED[f"beyond it: {x}"] for x in ("behind", "ahead"))
    count = {key: 0 if said == "none" else len(said.split(", ")) for key, said in behind.items()}
    assert sorted(count.values()) == [0, 0, 1, 2]
    assert count["FS-SKLR, tables 2 and 3", "printed"] == 2
    assert count["RFVM, table 3", "printed"] == 1
    assert ahead[ahead != "none"].to_dict() == {("RFVM, table 3", "ours"): "L1-SVM"}
