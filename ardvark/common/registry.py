"""A registry that imports what it lists when it is first asked for it."""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import cache, partial
from importlib import import_module
from typing import Any


class Registry[V](MutableMapping[str, V]):
    """Things by name, each in a file that is imported when the thing is first asked for.

    So a fit imports its own model and method alone. To list the names imports nothing.

    Parameters
    ----------
    package : str
        From where the files are named: `__package__` of the module with the registry.
    files : dict of str
        The file of each name, as in a relative import: ``".rfvm"``.
    made : callable, optional
        From the module to the thing. By default the thing is the module.

    Examples
    --------
    >>> from ardvark.common.registry import Registry
    >>> numbers = Registry("ardvark", {"pi": "math", "tau": "math"}, lambda module: module.pi)
    >>> numbers  # nothing has been imported yet
    Registry(pi, tau)
    >>> round(numbers["pi"], 2), "e" in numbers
    (3.14, False)
    """

    def __init__(
        self, package: str, files: Mapping[str, str], made: Callable[[Any], V] = lambda file: file
    ) -> None:
        def imported(file: str) -> V:
            return made(import_module(file, package))

        self._makers = {name: cache(partial(imported, file)) for name, file in files.items()}

    def __getitem__(self, name: str) -> V:
        return self._makers[name]()

    def __setitem__(self, name: str, thing: V) -> None:
        self._makers[name] = cache(lambda: thing)

    def __delitem__(self, name: str) -> None:
        del self._makers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __contains__(self, name: object) -> bool:
        return name in self._makers

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self)})"
