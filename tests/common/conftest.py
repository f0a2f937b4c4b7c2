"""Work that another process can import."""

import importlib
import sys
from pathlib import Path

import pytest


@pytest.fixture
def sums(tmp_path, monkeypatch):
    """Makes the work, which stores in its folder."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    monkeypatch.delitem(sys.modules, "sums", raising=False)
    out = tmp_path / "out"
    out.mkdir()
    return lambda folder=out, **settings: importlib.import_module("sums").Sums(folder, **settings)
