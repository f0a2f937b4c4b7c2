"""One fit on one screen."""

import logging
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ardvark as av
from ardvark.common.validate import InputError
from ardvark.inference.fits import diagnostics
from ardvark.inference.fits.effects import printed
from tests.support import rng

EXACT = "mcmc"


def tree_of(kind, eta):
    """Return a fit with these decision values (4, draws, N)."""
    posterior = xr.Dataset({"eta": (("chain", "draw", "obs"), eta)})
    tree = xr.DataTree.from_dict({"/posterior": posterior})
    tree.attrs = {"method": "nuts", "kind": kind, "status": "finished", "reason": ""}
    tree.attrs |= {"model": "rfvm", "data": "a <b> table", "form": "one"}
    return tree


def texts(page):
    found = []
    parser = HTMLParser()
    parser.handle_data = found.append
    parser.feed(page)
    return found


def test_the_paper_s_own_algorithm(caplog):
    problem = av.problem("rfvm", "fat")
    with caplog.at_level(logging.CRITICAL, "ardvark"):
        fit = av.fit(problem, "paper", draws=50, progressbar=False, random_seed=0)
    found = av.summary(fit)
    N, D = problem.X.shape
    assert found.title == "rfvm_vb: rfvm on fat"
    assert found.rows["draws"] == "4 chains of 50"
    assert f"feature_weight ({D})" in found.rows["variables"]
    assert f"eta ({N})" in found.rows["variables"]
    assert "no exact posterior to compare it with" in " ".join(found.verdict.reasons)
    assert found.active == av.inference.selection_text(fit) != ""
    assert max(map(len, repr(found).splitlines())) <= 80
    page = found._repr_html_()
    assert page.count("\n") < 52
    assert {found.title, "4 chains of 50", found.active} <= set(texts(page))
    # the leading features, with direction and size, beside the prior
    want = av.effects(fit).sort_values("p_active", ascending=False, kind="stable").iloc[:8]
    pd.testing.assert_frame_equal(found.effects, want)
    lines = repr(found).splitlines()
    told = printed(want)
    assert lines[-9].split() == " ".join(told).split()
    for line, (name, row) in zip(lines[-8:], told.iterrows(), strict=True):
        assert line.split() == " ".join([name, *row]).split()
    assert "Leading features" in set(texts(page))


def test_a_chain_is_judged_by_its_own_diagnostics():
    good = rng(1).normal(size=(4, 1000, 3))
    found = av.summary(tree_of(EXACT, good))
    assert found.verdict.words["predictions"] == "good"
    assert float(found.rows["smallest ESS"].partition(",")[0]) > 400.0
    apart = good + np.arange(4.0)[:, None, None]  # each chain at another place
    assert "R-hat" in repr(av.summary(tree_of(EXACT, apart)))
    assert av.summary(tree_of(EXACT, apart)).verdict.level == "do not use"
    # one component elsewhere is the worst, though the others agree
    one = good + np.arange(4.0)[:, None, None] * np.array([0.0, 1.0, 0.0])
    rhat = diagnostics.rhat(xr.DataArray(one[..., 1:2], dims=("chain", "draw", "obs")))
    assert av.summary(tree_of(EXACT, one)).rows["worst R-hat"] == f"{rhat.item():.3f}, of eta[1]"
    assert rhat > 1.2
    assert found.effects.empty  # there are no weights
    assert "a <b> table" in " ".join(texts(found._repr_html_()))
    assert "<b> table" not in found._repr_html_()


def test_what_is_no_fit_is_refused():
    with pytest.raises(InputError, match="this tree does not name its method"):
        av.summary(xr.DataTree())


def test_a_failed_fit_says_why():
    tree = xr.DataTree()
    tree.attrs = {"method": "mine", "kind": EXACT, "status": "failed", "reason": "no start"}
    found = av.summary(tree)
    assert "draws" not in found.rows
    assert "no start" in repr(found)
