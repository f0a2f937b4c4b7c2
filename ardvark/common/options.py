"""How a method declares its options: each with its default, what it means and what it accepts.

    class Options(BaseOptions):
        update: Literal["mackay", "em"] = option("mackay", "how precisions are re-estimated")
        damping: float = option(0.0, "weight of the old value", at_least=0.0, below=1.0)
        threshold: float | None = option(None, "prune above; None: never", above=0.0)

The annotation says the type: int, float, bool, a `Literal` of words, a tuple of numbers, or one of
these or None. Values are checked when an `Options` is made, before anything is computed.
"""

import dataclasses
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from .validate import InputError, one_of


def option(
    default: Any,
    meaning: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> Any:
    """Declare one option: its default, what it means, and the range of its numbers.

    A number must be finite, unless its range ends `at_most` at infinity.
    """
    limits = Limits(above, at_least, below, at_most)
    return dataclasses.field(default=default, metadata={"meaning": meaning, "limits": limits})


class Limits(NamedTuple):
    """The range of a number."""

    above: float | None
    at_least: float | None
    below: float | None
    at_most: float | None

    def hold(self, value: float) -> bool:
        """Whether a number lies in the range."""
        return (
            (np.isfinite(value) or value == self.at_most)
            and (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )

    def words(self) -> str:
        """Return the range in words; the empty string where there is none."""
        low = self.above if self.at_least is None else self.at_least
        high = self.below if self.at_most is None else self.at_most
        if low is None:
            return "" if high is None else f"{'below' if self.below else 'at most'} {high:g}"
        if high is None or high == np.inf:
            inf = "" if high is None else " (inf allowed)"
            return f"{'above' if self.at_least is None else 'of at least'} {low:g}{inf}"
        ends = "(" if self.at_least is None else "[", ")" if self.at_most is None else "]"
        return f"in {ends[0]}{low:g}, {high:g}{ends[1]}"


@dataclass(frozen=True)
class Declared:
    """One option as its class declares it."""

    name: str
    default: Any
    meaning: str
    limits: Limits
    kind: type
    """int, float or bool; str where it is one of a few words."""
    words: tuple[str, ...]
    several: bool
    """Whether it is a tuple of such values."""
    optional: bool
    """Whether None is accepted."""

    def accepts(self) -> str:
        """Return in words what the option accepts."""
        said = {int: "an integer", float: "a number", bool: "True or False"}.get(self.kind, "")
        if self.words:
            said = " or ".join(self.words) if len(self.words) < 3 else ", ".join(self.words)
        said = f"{said} {self.limits.words()}".rstrip()
        said = f"several, each {said}" if self.several else said
        return f"{said}, or None" if self.optional else said

    def checked(self, value: Any) -> Any:
        """Return the value, a list as a tuple; refuse one that the option does not accept."""
        if value is None and self.optional:
            return None
        if not self.several:
            self._check(self.name, value)
            return value
        if not isinstance(value, list | tuple | np.ndarray) or not len(value):
            raise InputError(f"{self.name} must be {self.accepts()}, got {_shown(value)}.")
        for one in value:
            self._check(f"each value of {self.name}", one)
        return tuple(value)

    def _check(self, name: str, value: Any) -> None:
        if self.words:
            one_of(name, value, self.words)
            return
        is_bool = isinstance(value, bool | np.bool_)
        if self.kind is bool:
            good = is_bool
        else:
            number = Integral if self.kind is int else Real
            good = isinstance(value, number) and not is_bool and self.limits.hold(float(value))
        if not good:
            raise InputError(f"{name} must be {self._wanted()}, got {_shown(value)}.")

    def _wanted(self) -> str:
        """Return what one value must be, for an error."""
        finite = "a finite number" if self.limits.at_most != np.inf else "a number"
        kind = {int: "an integer", float: finite}.get(self.kind, "True or False")
        return f"{kind} {self.limits.words()}".rstrip()


@dataclass(frozen=True, kw_only=True)
class BaseOptions:
    """What the options of every method can do; a method without options has these."""

    def __post_init__(self) -> None:
        for declared in self.declared():
            value = declared.checked(getattr(self, declared.name))
            object.__setattr__(self, declared.name, value)

    @classmethod
    @cache
    def declared(cls) -> tuple[Declared, ...]:
        """Return every option, in the order of the class.

        Raises
        ------
        TypeError
            A field was not declared with `option`, or its type is none that an option has.
        """
        hints = get_type_hints(cls)
        return tuple(_declared(f, hints[f.name]) for f in dataclasses.fields(cls))


def _declared(field: dataclasses.Field, hint: Any) -> Declared:
    if "meaning" not in field.metadata:
        raise TypeError(f"option {field.name!r} must be declared with option(default, meaning).")
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    inner = [part for part in parts if part is not NoneType]
    optional, several = len(inner) < len(parts), get_origin(inner[0]) is tuple
    one = get_args(inner[0])[0] if several else inner[0]
    words = get_args(one) if get_origin(one) is Literal else ()
    kind = str if words else one
    if len(inner) != 1 or kind not in (int, float, bool, str) or (kind is str and not words):
        raise TypeError(f"option {field.name!r} has the type {hint}, which no option has.")
    meaning, limits = field.metadata["meaning"], field.metadata["limits"]
    return Declared(field.name, field.default, meaning, limits, kind, words, several, optional)


def _shown(value: Any) -> str:
    return repr(value.item() if isinstance(value, np.generic) else value)
