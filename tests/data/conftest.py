import pytest

from ardvark.data import loading


@pytest.fixture
def shared():
    """Path of the registered data sets, for tests marked `data`."""
    return loading.data_folder()


@pytest.fixture
def empty(monkeypatch, tmp_path):
    """An empty cache in a temporary folder, which is returned."""
    cache = tmp_path / "cache"
    monkeypatch.setattr(loading, "cache_folder", lambda: cache)
    return cache
