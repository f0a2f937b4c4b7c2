"""A registry imports what it lists when it is first asked for it."""

import sys

import pytest

from ardvark.common.registry import Registry


def test_names_are_listed_without_an_import_and_a_thing_is_made_once(tmp_path, monkeypatch):
    (tmp_path / "listed_only_here.py").write_text("made = []")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry[list]("", {"first": "listed_only_here"}, lambda file: [file.made])
    assert list(registry) == ["first"]
    assert "first" in registry
    assert "second" not in registry
    assert len(registry) == 1
    assert "first" in repr(registry)
    assert "listed_only_here" not in sys.modules
    assert registry["first"] is registry["first"]
    assert sys.modules.pop("listed_only_here").made is registry["first"][0]


def test_a_registry_is_a_dict_otherwise():
    registry = Registry[object]("", {"math": "math"})
    registry["own"] = "a thing"
    assert dict(registry) == {"math": sys.modules["math"], "own": "a thing"}
    registry["math"] = "another"
    assert list(registry.values()) == ["another", "a thing"]
    del registry["own"]
    with pytest.raises(KeyError, match="own"):
        del registry["own"]
    assert registry.get("own") is None
    with pytest.raises(KeyError, match="own"):
        _ = registry["own"]
