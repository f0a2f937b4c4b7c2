"""Declared settings: the language, and every declared range of every model and method."""

import dataclasses
import re
from typing import Literal

import numpy as np
import pytest

import ardvark as av
from ardvark.common.declared import Settings, hyper, option
from ardvark.common.validate import InputError
from ardvark.inference import BACKENDS
from ardvark.models import ZOO

OWNERS = {name: spec.Hypers for name, spec in ZOO.items()}
OWNERS |= {name: backend.Options for name, backend in BACKENDS.items()}
DECLARED = [(owner, d) for owner, settings in OWNERS.items() for d in settings.declared()]
every_setting = pytest.mark.parametrize(
    ("owner", "declared"), [pytest.param(o, d, id=f"{o}-{d.name}") for o, d in DECLARED]
)


# --- the language ---------------------------------------------------------------------------------


def test_settings_read_the_type_from_the_annotation():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Own(Settings):
        word: Literal["a", "b"] | None = option(None, "one of two words")
        sizes: tuple[float, ...] = option((1.0,), "steps", above=0.0, at_most=2.0)
        share: float = option(0.5, "a part", at_least=0.0, below=1.0)
        three: Literal["a", "b", "c"] = option("a", "one of three words")
        count: float | Literal["all"] | None = hyper(None, "weights", above=0.0, paper="-")
        scale: float | tuple[float, ...] = hyper(1.0, "of a weight", at_least=0.0, paper="1")
        width: float = hyper(np.inf, "of a slab", above=0.0, at_most=np.inf, paper="none")
        degree: int = hyper(1, "a power", at_least=1, paper="2", outside="It is a power.")
        on: bool = option(True, "a switch")

    assert {d.name: d.accepts() for d in Own.declared()} == {
        "word": "a or b, or None",
        "sizes": "several, each a number in (0, 2]",
        "share": "a number in [0, 1)",
        "three": "a, b, c",
        "count": "a number above 0, or all, or None",
        "scale": "a number of at least 0, or several",
        "width": "a number above 0 (inf allowed)",
        "degree": "an integer of at least 1",
        "on": "True or False",
    }
    assert Own.choices() == {"word": ("a", "b"), "three": ("a", "b", "c")}
    assert Own(sizes=[0.5, 2]).sizes == (0.5, 2)  # what the command line gives
    assert hash(Own(sizes=[0.5])) == hash(Own(sizes=(0.5,)))
    assert (Own(count="all").count, Own(count=2).count) == ("all", 2)
    assert (Own(scale=np.ones(2)).scale, Own(scale=3).scale) == ((1.0, 1.0), 3)
    # a degree of NumPy's would be no JSON, and so no part of a fingerprint
    assert type(Own(degree=np.int64(2)).degree) is int


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"word": "c"}, "word must be one of 'a', 'b', got 'c'"),
        ({"sizes": (1.0, 3)}, "each value of sizes must be a finite number in (0, 2], got 3."),
        ({"sizes": 1.0}, "sizes must be several, each a finite number in (0, 2], got 1.0."),
        ({"count": "some"}, "count must be a finite number above 0, or all, got 'some'."),
        ({"count": 0}, "count must be a finite number above 0, or all, got 0."),
        ({"scale": [1, "x"]}, "each value of scale must be a finite number of at least 0, got 'x'"),
        ({"degree": 0}, "degree must be an integer of at least 1, got 0. It is a power."),
        ({"degree": 10**400}, "degree must be an integer of at least 1, got 1000"),
    ],
)
def test_an_error_says_what_is_accepted_and_why(given, message):
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Own(Settings):
        word: Literal["a", "b"] | None = option(None, "one of two words")
        sizes: tuple[float, ...] = option((1.0,), "steps", above=0.0, at_most=2.0)
        count: float | Literal["all"] | None = option(None, "weights", above=0.0)
        scale: float | tuple[float, ...] = option(1.0, "of a weight", at_least=0.0)
        degree: int = hyper(1, "a power", at_least=1, paper="2", outside="It is a power.")

    with pytest.raises(InputError, match=re.escape(message)):
        Own(**given)


def test_an_undeclared_setting_is_a_mistake_of_its_author():
    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Bare(Settings):
        tune: int = 3

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Open(Settings):
        name: str = option("x", "any word")

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class Two(Settings):
        number: int | bool = option(1, "of two kinds")

    with pytest.raises(TypeError, match="'tune' must be declared with option"):
        Bare()
    with pytest.raises(TypeError, match="'name' has the type"):
        Open()
    with pytest.raises(TypeError, match="'number' has the type"):
        Two()


# --- every setting of the zoo ---------------------------------------------------------------------


def outside(d):
    """Return values that a setting does not accept: just outside its range, or of another kind."""
    wrong, limits = ["nothing", object()], d.limits
    if d.kind is not bool:
        wrong.append(True)
    if d.kind in (int, float):
        wrong += [np.nan, *([np.inf] if limits.at_most != np.inf else [])]
        wrong += [edge for edge in (limits.above, limits.below) if edge is not None]
        wrong += [beyond(d, e, -1) for e in (limits.at_least,) if e is not None]
        wrong += [beyond(d, e, 1) for e in (limits.at_most,) if e not in (None, np.inf)]
    if d.kind is int:
        wrong.append(2.5)
    if d.kind is str:
        wrong.append(d.words[0].upper())
    return wrong


def inside(d):
    """Return values that a setting accepts: the edges of its range, or next to them."""
    good, limits = [*d.words], d.limits
    if d.kind is bool:
        good += [True, False, np.True_]
    if d.kind in (int, float):
        good += [beyond(d, e, 1) for e in (limits.above,) if e is not None]
        good += [beyond(d, e, -1) for e in (limits.below,) if e is not None]
        good += [e for e in (limits.at_least, limits.at_most) if e is not None]
    return good


def beyond(d, edge, way):
    """Return the number next to an edge."""
    return edge + way if d.kind is int else float(np.nextafter(edge, way * np.inf))


@every_setting
def test_a_setting_says_what_it_means_and_accepts_its_default(owner, declared):
    assert len(declared.meaning) > 5
    assert declared.accepts()
    assert declared.checked(declared.default) == declared.default
    if owner in ZOO:
        assert declared.paper
        assert declared.kind is str or declared.limits.words()  # every number has a range


@every_setting
def test_a_value_outside_the_range_is_refused_by_name(owner, declared):
    for value in [*outside(declared), *([] if declared.optional else [None])]:
        alone = () if declared.several and not declared.single else (value,)
        tuples = ((value,), (), [value, value]) if declared.several else ((value,), [])
        for given in (*alone, *tuples):
            with pytest.raises(InputError, match=rf"{declared.name} must be"):
                OWNERS[owner](**{declared.name: given})


@every_setting
def test_a_value_inside_the_range_is_accepted(owner, declared):
    good = inside(declared)
    assert good
    for value in good:
        given = (value, 1.0) if declared.several else value  # theta may be 0, but not all of it
        made = OWNERS[owner](**{declared.name: given})
        assert getattr(made, declared.name) == given
    if declared.optional:
        assert getattr(OWNERS[owner](**{declared.name: None}), declared.name) is None


@pytest.mark.parametrize("name", ZOO)
def test_a_problem_and_a_fit_check_what_is_declared(name):
    data = np.arange(12.0).reshape(4, 3) ** 2, [0, 1, 0, 1]
    for declared in ZOO[name].Hypers.declared():
        with pytest.raises(InputError, match=rf"{declared.name} must be"):
            av.problem(name, data, **{declared.name: outside(declared)[-1]})
    problem = av.problem(name, data)
    for method in ("laplace", "fsklr_savb"):
        if BACKENDS[method].supports(av.inference.target.target.Target(problem)) is None:
            for declared in BACKENDS[method].Options.declared():
                with pytest.raises(InputError, match=rf"{declared.name} must be"):
                    av.fit(problem, method, **{declared.name: outside(declared)[-1]})
