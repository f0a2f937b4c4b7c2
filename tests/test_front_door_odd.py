"""Anything at the front door makes a problem, or is refused by one InputError; nothing is written.

The default run draws the same examples each time; the slow one draws others, and more.
"""

import contextlib
import dataclasses
import io
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import sparse

import ardvark as av
from ardvark.cli.app import main
from ardvark.inference.comparison import study
from ardvark.models import ZOO
from tests.support import rng

GOOD = rng(0).normal(size=(12, 3)), np.arange(12) % 2
few = settings(max_examples=60, derandomize=True, deadline=None, database=None)
many = settings(
    max_examples=500, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)
SIZES = pytest.mark.parametrize(
    "size", [pytest.param(few, id="few"), pytest.param(many, id="many", marks=pytest.mark.slow)]
)

numbers = st.one_of(
    st.integers(-3, 3), st.floats(-5, 5), st.sampled_from([np.nan, np.inf, 1e308, 2**70, -0.0])
)
texts = st.sampled_from(["", "a", "B", "é", "1", "2.5", "NA", "x,y", 'q"', "\n", " ", "True", "∞"])
odd = st.sampled_from([None, pd.NA, pd.NaT, 1j, b"a", [1, 2], {}, object(), np.datetime64("2020")])
values = st.one_of(numbers, texts, st.booleans(), odd)


# --- (X, y) ---------------------------------------------------------------------------------------


@st.composite
def columns(draw, size):
    """One column: of one kind mostly, so that some are good."""
    good = [st.floats(-5, 5), st.integers(-9, 9)] * 3
    kind = draw(st.sampled_from([*good, numbers, texts, values]))
    return draw(st.lists(kind, min_size=size, max_size=size))


@st.composite
def labels(draw, size):
    good = [st.integers(0, 1), st.sampled_from("ab"), st.booleans()] * 2
    kind = draw(st.sampled_from([*good, numbers, texts, values]))
    found = draw(st.lists(kind, min_size=size, max_size=size))
    forms = [list, tuple, pd.Series, lambda v: pd.Series(v, dtype="category"), as_objects, np.array]
    return attempt(draw(st.sampled_from(forms)), found)


def as_objects(found):
    array = np.empty(len(found), dtype=object)
    array[:] = found
    return array


def attempt(form, found):
    """Return the values in a form, as they are where it does not take them."""
    try:
        return form(found)
    except (TypeError, ValueError, OverflowError, IndexError, Warning):
        return found


FORMS = (
    lambda table: table,
    pd.DataFrame.to_numpy,
    lambda table: table.to_numpy().tolist(),
    lambda table: table.to_numpy(float),
    lambda table: sparse.csr_array(table.to_numpy(float)),
    lambda table: table.to_numpy(str),
    lambda table: table.to_numpy().astype("datetime64[D]"),
    lambda table: table.set_axis(["same"] * table.shape[1], axis=1),
    lambda table: table.set_axis(["p"] * len(table), axis=0),
    lambda table: table.to_numpy()[:, 0],
    lambda table: table.to_numpy()[None],
    lambda table: table.to_dict(),
    lambda table: table.convert_dtypes(),
    lambda table: table.astype("category"),
    lambda table: table * 1e-170,
)


@st.composite
def pairs(draw):
    N, D = draw(st.sampled_from([0, 1, 2, 5, 8, 8])), draw(st.sampled_from([0, 1, 2, 3, 3]))
    parts = {f"c{k}": pd.Series(draw(columns(N)), dtype=object) for k in range(D)}
    table = pd.DataFrame(parts, index=range(N))
    frame = attempt(pd.DataFrame.infer_objects, table)
    X = attempt(draw(st.sampled_from([*FORMS[:2] * 5, *FORMS])), frame)
    size = draw(st.sampled_from([N] * 8 + [N + 1]))
    return X, draw(labels(size) if draw(st.integers(0, 7)) else st.one_of(st.just("c0"), values))


def check_pair(pair):
    try:
        problem = av.problem("pfcvm", *pair)
    except av.InputError:
        return
    data = problem.data
    assert data.N >= 2
    assert data.D >= 1
    assert min(data.counts) >= 1
    assert np.isfinite(problem.X).all()
    assert problem.describe()
    assert problem._repr_html_().count("\n") < 39
    tree = av.fit(problem, "paper", draws=4, chains=1, random_seed=0, progressbar=False)
    assert all(np.isfinite(v).all() for v in tree["posterior"].data_vars.values())


@SIZES
def test_any_x_and_y_make_a_problem_or_one_input_error(size):
    size(given(pairs())(check_pair))()


@few
@given(st.lists(st.floats(-5, 5), min_size=12, max_size=12), st.permutations("aaabbb"))
def test_good_pairs_are_not_refused(numbers, labels):
    X = np.reshape(numbers, (6, 2))
    assert av.problem("rfvm", X, labels).data.counts == (3, 3)


# --- hyperparameters ------------------------------------------------------------------------------

EXTREME = [None, -1, 0, np.nan, np.inf, 1e-320, 1e300, 10**30, "word", "", [1], {}, True, "RBF"]


@pytest.mark.parametrize(
    ("model", "name"),
    [(model, f.name) for model, spec in ZOO.items() for f in dataclasses.fields(spec.Hypers)],
)
def test_any_hyperparameter_makes_a_problem_or_one_input_error(model, name, caplog):
    made = 0
    for value in EXTREME:
        with contextlib.suppress(av.InputError):
            problem = av.problem(model, GOOD, **{name: value})
            assert problem.describe()
            assert problem.fingerprint
            made += 1
    assert made < len(EXTREME)


# --- CSV files ------------------------------------------------------------------------------------


def cell(value, sep, quoted):
    text = str(value)
    if quoted or any(c in text for c in f'{sep}"\r\n'):
        doubled = text.replace('"', '""')
        return f'"{doubled}"'
    return text


@st.composite
def files(draw):
    """The bytes of a CSV file: a table in some dialect and encoding, and what may befall one."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.binary(max_size=60))
    D, N = draw(st.integers(1, 4)), draw(st.sampled_from([0, 1, 2, 8, 8]))
    names = st.sampled_from(["y", "a", "b", "id", "", "Unnamed: 0", "größe", "a b", "Y", "1"])
    header = draw(st.one_of(st.just(list("abcd")[:D]), st.lists(names, min_size=D, max_size=D)))
    parts = [draw(columns(N)) for _ in header]
    if draw(st.integers(0, 3)):
        y = draw(st.lists(st.sampled_from("uv"), min_size=N, max_size=N))
        header, parts = [*header, "y"], [*parts, y]
    sep, quoted = draw(st.sampled_from(",;\t|, ")), draw(st.booleans())
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n", f"{sep}\n"]))
    rows = [[part[k] for part in parts] for k in range(N)]
    if draw(st.integers(0, 4)) == 0:
        rows = [row[: draw(st.sampled_from([None, None, 1]))] for row in rows]
    text = "".join(sep.join(cell(v, sep, quoted) for v in row) + end for row in (header, *rows))
    encodings = ["utf-8"] * 4 + ["utf-8-sig", "latin-1", "utf-16"]
    encoding = draw(st.sampled_from(encodings))
    content = text.encode(encoding, errors="replace")
    if draw(st.integers(0, 4)) == 0:  # something goes wrong on the way
        at = draw(st.integers(0, len(content)))
        content = content[:at] + draw(st.sampled_from([b"", b'"', b"\0", b"\xff", b"\n"]))
    return content


OPTIONS = st.lists(
    st.sampled_from(
        [
            ["--drop-missing"],
            ["--drop", "a"],
            ["--drop", "a,b"],
            ["--positive", "u"],
            ["--positive", "1"],
            ["--classes", "u,v"],
            ["--classes", "u"],
            ["--sep", ";"],
            ["--sep", "xx"],
            ["--test-size", "0.5"],
            ["--test-size", "7"],
            ["--draws", "0"],
            ["--set", "slab=-1"],
            ["--set", "slab"],
        ]
    ),
    max_size=3,
)


class Reached(Exception):
    """The fits would begin here."""


def check_file(content, options):
    def reached(*args, **settings):
        raise Reached

    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        path, out = Path(folder) / "own.csv", Path(folder) / "out"
        path.write_bytes(content)
        words = [word for option in options for word in option]
        words = ["compare", "rfvm", path, "--target", "y", "--out", out, *words]
        said = io.StringIO()
        patch.setattr(sys, "argv", ["ardvark", *map(str, words), "--methods", "laplace"])
        patch.setattr(sys, "stderr", said)
        patch.setattr(study, "run", reached)
        with pytest.raises((Reached, SystemExit)) as ended:
            main()
        assert not out.exists()
        if ended.type is SystemExit:
            assert ended.value.code == 2
            assert said.getvalue().count("ardvark: ") == 1
            assert "Traceback" not in said.getvalue()


@SIZES
def test_any_csv_file_makes_a_problem_or_one_line(size):
    size(given(files(), OPTIONS)(check_file))()
