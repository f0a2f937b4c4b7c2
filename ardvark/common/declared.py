"""Declared settings: hyperparameters and options with their default, meaning, type and range.

    class Options(Settings):
        update: Literal["mackay", "em"] = option("mackay", "how precisions are re-estimated")
        damping: float = option(0.0, "weight of the old value", at_least=0.0, below=1.0)
        threshold: float | None = option(None, "prune above; None: never", above=0.0)

    class Hypers(Settings):
        bias_sd: float = hyper(1.0, "prior standard deviation of the bias", above=0.0, paper="1")

The annotation gives the type: int, float, bool, a `Literal` of words, a tuple of one of these, or a
union of a number with words, a tuple or None. Values are checked when the settings are created,
before anything is computed. `ardvark models NAME` and `ardvark methods NAME` print the settings.
"""

import dataclasses
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from .validate import InputError, one_of


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


def option(
    default: Any,
    meaning: str,
    *,
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
    draws_depend: bool = True,
) -> Any:
    """Declare one option of a method: its default, its meaning, and the range of its numbers.

    Parameters
    ----------
    default : object
        The value of an option that is not given.
    meaning : str
        What it means; `ardvark methods NAME` prints it.
    above, at_least, below, at_most : float, optional
        The range of its numbers. A number must be finite, unless `at_most` is infinity.
    draws_depend : bool
        Whether the draws depend on it. A stored fit is reused whatever the value of one that they
        do not depend on.

    Returns
    -------
    dataclasses.Field
        The default of a field of a subclass of `Settings`, whose docstring has the whole example.

    Examples
    --------
    >>> from ardvark.inference import option
    >>> option(0.1, "sd of a proposal", above=0.0).default
    0.1
    """
    limits = Limits(above, at_least, below, at_most)
    metadata = {"meaning": meaning, "limits": limits, "draws_depend": draws_depend}
    return dataclasses.field(default=default, metadata=metadata)


def hyper(
    default: Any,
    meaning: str,
    *,
    paper: str,
    why: str = "",
    outside: str = "",
    above: float | None = None,
    at_least: float | None = None,
    below: float | None = None,
    at_most: float | None = None,
) -> Any:
    """Declare one hyperparameter: like an option, with the paper's value and two explanations.

    Parameters
    ----------
    default : object
        Our default; None if it is computed from the sizes of the data.
    meaning : str
        What it means.
    paper : str
        The paper's value, in words.
    why : str
        Why the default differs from the paper's value, or how it is computed.
    outside : str
        What a value outside the range would do. It is the last sentence of the error.
    above, at_least, below, at_most : float, optional
        The range of its numbers, as for an `option`.
    """
    limits = Limits(above, at_least, below, at_most)
    words = {"meaning": meaning, "limits": limits, "paper": paper, "why": why, "outside": outside}
    return dataclasses.field(default=default, metadata=words)


@dataclass(frozen=True)
class Declared:
    """One setting as its class declares it."""

    name: str
    default: Any
    meaning: str
    limits: Limits
    kind: type
    """int, float or bool; str if only a few words are accepted."""
    words: tuple[str, ...]
    single: bool
    """Whether a single value is accepted."""
    several: bool
    """Whether a tuple of values is accepted."""
    optional: bool
    """Whether None is accepted."""
    paper: str = ""
    why: str = ""
    outside: str = ""
    draws_depend: bool = True
    """Whether the draws of a method depend on it."""

    def accepts(self) -> str:
        """Return what the setting accepts, in words."""
        said = {int: "an integer", float: "a number", bool: "True or False"}.get(self.kind, "")
        return self._alternatives(said) + (", or None" if self.optional else "")

    def checked(self, value: Any) -> Any:
        """Return the value, a list as a tuple; raise an error if it is not accepted."""
        if value is None and self.optional:
            return None
        array = isinstance(value, np.ndarray) and value.ndim > 0
        many = array or isinstance(value, list | tuple)
        if not self.several or (self.single and not many):
            return self._one(self.name, value)
        if not many or not len(value):
            raise self._refused(self.name, value)
        return tuple(self._one(f"each value of {self.name}", one, each=True) for one in value)

    def _one(self, name: str, value: Any, *, each: bool = False) -> Any:
        """Return one value; integers, and all values of a tuple, become Python's own types."""
        if isinstance(value, str) and value in self.words:
            return value
        if self.kind is str:
            one_of(name, value, self.words)
        if not self._is_number(value):
            raise self._refused(name, value, each=each)
        if self.kind is float:
            return float(value) if each else value
        return self.kind(value)

    def _is_number(self, value: Any) -> bool:
        """Whether a value is of the right kind and in the range."""
        is_bool = isinstance(value, bool | np.bool_)
        if self.kind is bool or is_bool:
            return is_bool and self.kind is bool
        if not isinstance(value, Integral if self.kind is int else Real):
            return False
        try:
            return self.limits.hold(float(value))
        except OverflowError:  # an integer of more than 308 digits
            return False

    def _refused(self, name: str, value: Any, *, each: bool = False) -> InputError:
        """Return the error for a value that is not accepted."""
        finite = "a finite number" if self.limits.at_most != np.inf else "a number"
        said = {int: "an integer", float: finite}.get(self.kind, "True or False")
        wanted = f"{said} {self.limits.words()}".rstrip() if each else self._alternatives(said)
        reason = f" {self.outside}" if self.outside else ""
        return InputError(f"{name} must be {wanted}, got {plain(value)!r}.{reason}")

    def _alternatives(self, number: str) -> str:
        """Return what is accepted apart from None; `number` is the word for a number."""
        words = " or ".join(self.words) if len(self.words) < 3 else ", ".join(self.words)
        said = words if self.kind is str else f"{number} {self.limits.words()}".rstrip()
        if self.several:
            said = f"{said}, or several" if self.single else f"several, each {said}"
        return f"{said}, or {words}" if self.words and self.kind is not str else said


@dataclass(frozen=True, kw_only=True)
class Settings:
    """A set of declared settings: the hyperparameters of a model, or the options of a method.

    A method without options uses this class as it is.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from typing import Literal
    >>> from ardvark.inference import Settings, option
    >>> @dataclass(frozen=True, kw_only=True)
    ... class Options(Settings):
    ...     step: float = option(0.1, "sd of a proposal", above=0.0)
    ...     law: Literal["normal", "uniform"] = option("normal", "law of a proposal")
    >>> Options(step=0.5).step
    0.5
    >>> Options(step=-1.0)
    Traceback (most recent call last):
    ardvark.common.validate.InputError: step must be a finite number above 0, got -1.0.
    >>> [declared.name for declared in Options.declared()], Options.choices()
    (['step', 'law'], {'law': ('normal', 'uniform')})
    """

    def __post_init__(self) -> None:
        for declared in self.declared():
            value = declared.checked(getattr(self, declared.name))
            object.__setattr__(self, declared.name, value)

    @classmethod
    @cache
    def declared(cls) -> tuple[Declared, ...]:
        """Return every setting, in the order of the class.

        Raises
        ------
        TypeError
            A field was not declared, or its type is not supported.
        """
        hints = get_type_hints(cls)
        return tuple(_declared(f, hints[f.name]) for f in dataclasses.fields(cls))

    @classmethod
    def choices(cls) -> dict[str, tuple[str, ...]]:
        """Return the accepted words of every setting that accepts only words."""
        return {d.name: d.words for d in cls.declared() if d.kind is str}


def _declared(field: dataclasses.Field, hint: Any) -> Declared:
    """Return what a field declares, with its type resolved."""
    if "meaning" not in field.metadata:
        raise TypeError(f"{field.name!r} must be declared with option(...) or hyper(...).")
    parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    inner = [part for part in parts if part is not NoneType]
    tuples = [get_args(part)[0] for part in inner if get_origin(part) is tuple]
    single = [part for part in inner if get_origin(part) is not tuple]
    literals = [part for part in (*single, *tuples) if get_origin(part) is Literal]
    kinds = {part for part in (*single, *tuples) if part not in literals} or {str}
    words = tuple(word for part in literals for word in get_args(part))
    if len(kinds) > 1 or not kinds <= {int, float, bool, str} or (kinds == {str} and not words):
        raise TypeError(f"setting {field.name!r} has the type {hint}, which is not supported.")
    return Declared(
        name=field.name,
        default=field.default,
        kind=kinds.pop(),
        words=words,
        single=bool(single),
        several=bool(tuples),
        optional=len(inner) < len(parts) or field.default is None,
        **field.metadata,
    )


def plain(value: Any) -> Any:
    """Return a value as one of Python's own, as it is shown to a user."""
    return value.item() if isinstance(value, np.generic) else value
