import pytest


@pytest.fixture
def size(full, monkeypatch):
    """Run notebooks at full size, or with the small settings of tests."""
    if full:
        monkeypatch.delenv("ARDVARK_QUICK", raising=False)
    else:
        monkeypatch.setenv("ARDVARK_QUICK", "1")
