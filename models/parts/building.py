"""Build a PyMC model that is nobody's child, wherever it is asked for."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_parent() -> Iterator[None]:
    """Leave the models that are open: inside `with model:` a new one would become a part of it."""
    from pymc.model.core import MODEL_MANAGER

    open_models = MODEL_MANAGER.active_contexts
    MODEL_MANAGER.active_contexts = []
    try:
        yield
    finally:
        MODEL_MANAGER.active_contexts = open_models
