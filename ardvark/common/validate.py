"""One clear error for each kind of invalid input.

It says what was wrong, what was given, what was expected and what to do next. Everything here runs
before any compilation, and nothing here imports PyMC.
"""

import difflib
import json
import logging
from collections.abc import Iterable, Sequence
from numbers import Real
from typing import Any

import numpy as np

LARGEST_DENSE = 1e8
"""Numbers up to which a sparse matrix is made dense (800 MB)."""

_LISTED = 40  # names in a message
_MEASURED = 20  # different numbers are no classes

logger = logging.getLogger("ardvark")


class InputError(ValueError):
    """Invalid input from the user. The message says what was wrong and what to do next.

    Examples
    --------
    >>> import ardvark as av
    >>> try:
    ...     av.load("digit38")
    ... except av.InputError as error:
    ...     print(error)
    unknown data set 'digit38'. Did you mean 'digits38' ...
    """


def named(kind: str, got: object, known: Iterable[str], hint: str = "") -> str:
    """Return the name that the user meant, in any case, or raise the error of `unknown`.

    Parameters are those of `unknown`.
    """
    names = list(known)
    if got in names:
        return str(got)
    found = [name for name in names if name.casefold() == str(got).strip().casefold()]
    if len(found) == 1:
        return found[0]
    raise unknown(kind, got, names, hint)


def unknown(kind: str, got: object, known: Iterable[str], hint: str = "") -> InputError:
    """Return the error for a name that is not in a registry, with the nearest names.

    Parameters
    ----------
    kind : str
        What the name should have been: "model", "method", "data set".
    got : object
        What the user wrote.
    known : iterable of str
        The names that exist.
    hint : str
        One more sentence, for example the command that lists them.
    """
    names = sorted(known)
    near = nearest(got, names)
    guess = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    more = f" and {len(names) - _LISTED} more" * (len(names) > _LISTED)
    listing = f"{', '.join(names[:_LISTED])}{more}"
    return InputError(
        f"unknown {kind} {got!r}.{guess} Known: {listing}.{' ' + hint if hint else ''}"
    )


def nearest(got: object, known: Iterable[str], cutoff: float = 0.5) -> list[str]:
    """Return the names most like a word, in any case: three at most, the most similar first."""
    names = list(known)
    lower = dict.fromkeys(name.casefold() for name in names)
    close = difflib.get_close_matches(str(got).casefold(), lower, n=3, cutoff=cutoff)
    return [name for word in close for name in names if name.casefold() == word]


def unknown_option(
    owner: str, got: Iterable[str], known: Iterable[str], beside: Sequence[str] = ()
) -> TypeError:
    """Return the TypeError for keyword arguments that an owner does not have.

    Those `beside` its options, which every owner takes, may have been meant.
    """
    names = sorted(known)
    parts = []
    for name in got:
        near = nearest(name, [*names, *beside])
        parts.append(repr(name) + (f" (did you mean {near[0]!r}?)" if near else ""))
    listed = ", ".join(names) if names else "none"
    return TypeError(f"{owner} has no option {', '.join(parts)}. Its options: {listed}.")


def positive(name: str, value: object, why: str = "") -> None:
    """Refuse a hyperparameter that is not a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) < np.inf:
        shown = value.item() if isinstance(value, np.generic) else value
        reason = f" {why}" if why else ""
        raise InputError(f"{name} must be a finite number above 0, got {shown!r}.{reason}")


def whole(name: str, value: object, least: int = 0, most: int | None = None) -> int:
    """Return an integer of at least `least`, and of at most `most`; refuse anything else."""
    number = least - 1  # refused
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
    if number < least or (most is not None and number > most):
        shown = value.item() if isinstance(value, np.generic) else value
        limit = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{name} must be an integer {limit}, got {shown!r}.")
    return number


def one_of(name: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse a setting that is not among the allowed words."""
    if value not in allowed:
        words = ", ".join(map(repr, allowed))
        raise InputError(f"{name} must be one of {words}, got {value!r}.")


def pairs(given: Sequence[str] | None, flag: str) -> dict[str, Any]:
    """Return {name: value} of name=value words; a value is JSON, or else a plain word."""
    found: dict[str, Any] = {}
    for word in given or ():
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InputError(f"{flag} {word!r}: expected name=value.")
        try:
            found[name] = json.loads(value)
        except json.JSONDecodeError:
            found[name] = value
    return found


def matrix(X: Any, *, name: str = "X", min_rows: int = 1) -> np.ndarray:
    """Return X as a C-ordered float64 array (rows, columns), or say why that is not possible.

    A data frame's own row and column labels are used in the message.
    """
    X = _dense(X, name)
    frame = all(hasattr(X, a) for a in ("index", "columns", "dtypes", "iloc"))
    rows = [str(r) for r in X.index] if frame else None
    columns = [str(c) for c in X.columns] if frame else None
    if columns is not None:
        bad = [c for c, kind in zip(columns, X.dtypes, strict=True) if kind.kind not in "biuf"]
        if bad:
            kind = X.dtypes.iloc[columns.index(bad[0])]
            raise InputError(
                f"{name} must be numeric, but column {bad[0]!r} contains {kind} "
                f"({len(bad)} such column(s)). Encode or drop it first."
            )
    try:
        values = X.to_numpy(np.float64, na_value=np.nan) if frame else np.asarray(X)
        if values.dtype.kind not in "biufO":
            raise TypeError(f"its values have the type {values.dtype}")
        array = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"{name} must be a numeric array (samples, features), got {type(X).__name__}: {error}."
        ) from None
    if array.ndim != 2:
        raise InputError(
            f"{name} must have two dimensions (samples, features), got shape {array.shape}. "
            "For a single feature, pass X.reshape(-1, 1)."
        )
    if array.shape[1] == 0:
        raise InputError(
            f"{name} has no features: shape {array.shape}, expected at least 1 column."
        )
    if array.shape[0] < min_rows:
        raise InputError(
            f"{name} has {array.shape[0]} sample(s), expected at least {min_rows}. Give more rows."
        )
    finite = np.isfinite(array)
    if not finite.all():
        i, k = map(int, np.argwhere(~finite)[0])
        row = rows[i] if rows else i
        column = columns[k] if columns else k
        raise InputError(
            f"{name} contains {int((~finite).sum())} NaN or infinite value(s), the first in row "
            f"{row!r}, column {column!r}: {array[i, k]}. Drop or impute them first."
        )
    return array


def _dense(X: Any, name: str) -> Any:
    """Return a sparse matrix as an array; refuse one that is too large. Return others unchanged."""
    if not (hasattr(X, "toarray") and hasattr(X, "nnz")):
        return X
    numbers = float(np.prod(X.shape))
    if numbers > LARGEST_DENSE:
        raise InputError(
            f"{name} is a sparse matrix of shape {X.shape}. Models need it dense, which takes "
            f"{8e-9 * numbers:.3g} GB. Keep fewer columns, for example those with the most entries."
        )
    logger.info(
        "%s is sparse and is converted to a dense matrix, which takes %.3g GB", name, 8e-9 * numbers
    )
    return X.toarray()


def two_classes(y: Any, n_rows: int, *, both: bool = True) -> tuple[np.ndarray, tuple[Any, Any]]:
    """Return y as 0/1 integers and the two labels in sorted order (the second is y = 1).

    Parameters
    ----------
    y : array-like (N,)
        Labels of any kind that sorts: numbers, booleans, strings.
    n_rows : int
        The number of rows of X, which y must have.
    both : bool
        Whether both classes must occur.
    """
    try:
        labels = np.asarray(y)
    except ValueError:  # parts of different lengths
        raise InputError(
            f"y must contain one label for each row, got {type(y).__name__} of lists."
        ) from None
    if labels.ndim != 1:
        raise InputError(
            f"y must have one dimension (samples,), got shape {labels.shape}. "
            "For a single column, pass y.ravel()."
        )
    if len(labels) != n_rows:
        raise InputError(
            f"X has {n_rows} rows but y has {len(labels)} labels; the numbers must match."
        )
    values = labels.tolist()
    if any(isinstance(value, list | tuple | dict | set | np.ndarray) for value in values):
        raise InputError(
            "y must contain one label for each row, got lists or other collections of values."
        )
    missing = np.array([_is_missing(value) for value in values], dtype=bool)
    if missing.any():
        raise InputError(
            f"y has {int(missing.sum())} missing label(s), the first in row "
            f"{int(missing.argmax())}. Drop those rows."
        )
    try:
        classes = np.unique(labels)
    except TypeError:
        kinds = ", ".join(sorted({type(value).__name__ for value in values}))
        raise InputError(
            f"labels must all be of one kind (strings, numbers or booleans), got {kinds}."
        ) from None
    shown = ", ".join(repr(c) for c in classes[:6].tolist()) + (", ..." if len(classes) > 6 else "")
    if len(classes) > _MEASURED and labels.dtype.kind in "iuf":
        raise InputError(
            f"y must contain two classes, and has {len(classes)} numbers: {shown}. If it is a "
            "measurement, say from where on it is one class, such as y > 0."
        )
    if len(classes) > 2:
        one = classes.tolist()[-1]
        raise InputError(
            f"y must contain two classes, got {len(classes)}: {shown}. Compare one with the rest, "
            f"y == {one!r} (positive={str(one)!r} of av.table, --positive {one}), or fit "
            "one against the rest for each: scikit-learn's "
            "OneVsRestClassifier(SparseBayesClassifier())."
        )
    if len(classes) < 2 and both:
        raise InputError(
            f"y must contain two classes, got only {shown}. Add samples of the other class."
        )
    first, last = classes.tolist()[0], classes.tolist()[-1]
    return (labels == classes[-1]).astype(np.int64), (first, last)


def _is_missing(value: Any) -> bool:
    """Whether a label is None, NaN, or one of pandas' missing values."""
    try:
        return value is None or bool(value != value)
    except TypeError:  # pandas.NA is neither equal nor unequal
        return True


def distinct(kind: str, names: Sequence[str]) -> None:
    """Refuse duplicate names."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(
                f"{kind} names must be distinct, but {name!r} occurs twice. Rename one."
            )
        seen.add(name)
