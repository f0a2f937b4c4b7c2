import os

import pytest

from ardvark.data import loading


@pytest.fixture
def shared():
    """Path of the user's data; a test that needs it may be skipped only where there is none."""
    folder = os.environ.get("ARDVARK_DATA")
    if not folder:
        pytest.skip("ARDVARK_DATA is not set: this test needs the data sets of the registry")
    return loading.data_folder()


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """No ARDVARK_DATA, and an empty cache in a temporary folder, which is returned."""
    cache = tmp_path / "cache"
    monkeypatch.delenv("ARDVARK_DATA", raising=False)
    monkeypatch.setattr(loading, "cache_folder", lambda: cache)
    return cache
