"""Find a data set by name, download it if it is missing, check it and return it.

The places are searched in this order: the built-in data sets; the folder in the environment
variable ARDVARK_DATA (its sub-folders `raw` and `tables`, then the folder itself); the user's
cache; the public source. A download is kept in the cache only after it has been read and checked.
"""

import os
import tempfile
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from ardvark.common.validate import InputError, logger, named

from .builtin import BUILTIN
from .dataset import Dataset
from .parsers import GOLUB_TRAIN, Parsed
from .sources import SOURCES, Form, forms

TIMEOUT = 30  # seconds without an answer from a server


class Found(NamedTuple):
    """Where a data set is: "ARDVARK_DATA" or "cache", in which form, in which files."""

    place: str
    form: Form
    paths: tuple[Path, ...]


def load(name: str, *, raw: bool = False, fetch: bool = True) -> Dataset:
    """Return a data set by name; `available` lists the names.

    Parameters
    ----------
    name : str
        A built-in set, or one of the registry.
    raw : bool
        Skip the usual transform (`Dataset.transform`) of a data set that has one: `colon` (natural
        log), `golub` (clip to [100, 16000], log10), `digits38` (pixels divided by 16). For the
        others it makes no difference.
    fetch : bool
        Download a data set that is neither in ARDVARK_DATA nor in the cache, if it has a public
        download.

    Raises
    ------
    InputError
        The name is unknown. Or the data set is missing and could not be downloaded; the message
        then gives the address, the folder and the command. Or a file cannot be read or contains
        other values.

    Examples
    --------
    >>> from ardvark.data import load
    >>> load("waveform")
    Dataset('waveform', N=400, D=40, 'wave 1': 200, 'wave 2': 200)
    >>> load("digits38").transform, float(load("digits38").X.max())
    ('/16', 1.0)
    >>> float(load("digits38", raw=True).X.max())
    16.0
    """
    name = known_name(name)
    if name in BUILTIN:
        return BUILTIN[name].make(raw=True) if raw and BUILTIN[name].raw else BUILTIN[name].make()
    found = locate(name)
    if found is None:
        if not fetch:
            raise _missing(name, "it was not fetched, because fetch=False")
        found, table = _download(name)
    else:
        table = _read(name, found.form, found.paths)
    source = SOURCES[name]
    X = table.X if raw else source.change(table.X)
    said = "" if raw else source.transform
    names = table.feature_names, table.sample_names, source.classes, name
    return Dataset(X, table.y, *names, source.citation, said)


def fetch(name: str) -> tuple[Path, ...]:
    """Download a data set into the user's cache, unless it is there or in ARDVARK_DATA already.

    Returns
    -------
    tuple of Path
        Its files; none for a built-in set.

    Raises
    ------
    InputError
        An unknown name, no public download, no connection, or a file that is not the expected one.

    Examples
    --------
    >>> from ardvark.data import fetch
    >>> fetch("digits38")  # it is built in: there is nothing to download
    ()
    """
    name = known_name(name)
    if name in BUILTIN:
        return ()
    found = locate(name) or _download(name)[0]
    return found.paths


def available() -> pd.DataFrame:
    """Return a table of all data sets, indexed by name, without reading any of them.

    The columns are `n`, `d` (samples, features), `class_1`, `class_0` (their counts), `positive`
    (the meaning of y = 1), `present` ("built-in", "ARDVARK_DATA", "cache" or "no"), `home` and
    `note`. Sizes are missing for a data set without a fixed form.

    Examples
    --------
    >>> from ardvark.data import available
    >>> table = available()
    >>> table.loc[["digits38", "fat"], ["n", "d", "positive", "present"]]
                n     d positive   present
    name
    digits38  357    64        8  built-in
    fat        60  2000        1  built-in
    >>> table.loc["colon", ["n", "d"]].tolist()
    [62, 2000]
    """
    rows: list[tuple] = [
        (name, *b.shape, b.counts[1], b.counts[0], b.positive, "built-in", b.home, b.note)
        for name, b in BUILTIN.items()
    ]
    for name, s in SOURCES.items():
        n, d = s.shape or (None, None)
        zero, one = s.counts or (None, None)
        found = locate(name)
        present = "no" if found is None else found.place
        rows.append((name, n, d, one, zero, s.classes[1], present, s.home, s.note))
    columns = ["name", "n", "d", "class_1", "class_0", "positive", "present", "home", "note"]
    sizes = dict.fromkeys(("n", "d", "class_1", "class_0"), "Int64")
    return pd.DataFrame(rows, columns=columns).astype(sizes).set_index("name")


def golub_split(dataset: Dataset) -> tuple[Dataset, Dataset]:
    """Return the 38 training and the 34 test samples of Golub et al. (1999).

    Parameters
    ----------
    dataset : Dataset
        `load("golub")`, or rows of it: samples are found by name.

    Examples
    --------
    >>> from ardvark.data import Dataset, golub_split
    >>> samples = [f"sample_{s}" for s in (1, 2, 39, 40)]
    >>> few = Dataset([[1.0], [2.0], [3.0], [4.0]], [0, 1, 0, 1], ["gene"], samples, ("ALL", "AML"))
    >>> train, test = golub_split(few)
    >>> train.sample_names, test.sample_names
    (('sample_1', 'sample_2'), ('sample_39', 'sample_40'))
    """
    trained = {f"sample_{s}" for s in GOLUB_TRAIN}
    if not all(name.startswith("sample_") for name in dataset.sample_names):
        raise InputError(f"golub_split needs the samples of load('golub'), got {dataset!r}.")
    mask = np.array([name in trained for name in dataset.sample_names])
    return dataset.take(mask, both=False), dataset.take(~mask, both=False)


def data_folder() -> Path | None:
    """Return the folder in the environment variable ARDVARK_DATA, or None if it is not set."""
    value = os.environ.get("ARDVARK_DATA", "")
    if not value:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        raise InputError(
            f"the environment variable ARDVARK_DATA is {value!r}, which is not a folder. "
            "Set it to the folder with your data files, or unset it."
        )
    return folder


def cache_folder() -> Path:
    """Return the folder for downloaded files; it need not exist."""
    import pooch

    return Path(pooch.os_cache("ardvark"))


def locate(name: str) -> Found | None:
    """Return where the files of a registered data set are, or None if they are nowhere."""
    own = data_folder()
    places = {"ARDVARK_DATA": [] if own is None else [own / "raw", own / "tables", own]}
    places["cache"] = [cache_folder()]
    for place, folders in places.items():
        for form in forms(name):
            candidates = [
                [f / file for f in folders if (f / file).is_file()] for file in form.files
            ]
            if all(candidates):
                return Found(place, form, tuple(paths[0] for paths in candidates))
    return None


def known_name(name: str) -> str:
    """Return the name of a data set, given in any case; refuse an unknown name.

    Examples
    --------
    >>> from ardvark.data import known_name
    >>> known_name("Digits38")
    'digits38'
    >>> known_name("digit38")
    Traceback (most recent call last):
        ...
    ardvark.common.validate.InputError: unknown data set 'digit38'. Did you mean 'digits38' ...
    """
    hint = "`ardvark data` lists them with their sizes."
    return named("data set", name, [*BUILTIN, *SOURCES], hint)


def _read(name: str, form: Form, paths: Sequence[Path]) -> Parsed:
    """Parse files and check what comes out against the registry."""
    shown = " and ".join(str(path) for path in paths)
    remedy = f"Replace it by the right file, or delete it and run `ardvark data fetch {name}`."
    try:
        table = form.parse(paths)
    except Exception as error:  # foreign bytes may fail in any way
        what = f"{type(error).__name__}: {error}"
        raise InputError(f"{shown} could not be read as {name!r} ({what}). {remedy}") from error
    source = SOURCES[name]
    counts = (int((table.y == 0).sum()), int(table.y.sum()))
    digest = sha256(table.X)
    digest.update(table.y.astype(np.int8))
    for what, got, expected in (
        ("shape", table.X.shape, source.shape),
        ("counts of y = 0 and 1", counts, source.counts),
        ("sha256 of the arrays", digest.hexdigest(), source.arrays or None),
    ):
        if expected is not None and got != expected:
            raise InputError(
                f"{shown} does not contain {name!r}: its {what} is {got}, expected {expected}. "
                f"{remedy}"
            )
    if not source.arrays:
        logger.warning("the values of %s cannot be checked, because their hash is not known", name)
    return table


def _download(name: str) -> tuple[Found, Parsed]:
    """Fetch a set from its public home, check it, and move it into the cache."""
    import pooch

    form = next((form for form in SOURCES[name].forms if form.urls), None)
    if form is None:
        raise _missing(name, "it has no public download with a known hash")
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _missing(name, f"the cache is not writable ({_short(error)})") from error
    # files stay in a scratch folder until all are right: neither an interrupted download nor a
    # wrong file is ever found in the cache
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=cache) as scratch:
        pooch.get_logger().setLevel("WARNING")
        fresh = []
        for url, file, known in zip(form.urls, form.files, form.sha256, strict=True):
            how = {
                "fname": file,
                "path": scratch,
                "downloader": pooch.HTTPDownloader(timeout=TIMEOUT),
            }
            try:
                fresh.append(Path(pooch.retrieve(url, f"sha256:{known}" if known else None, **how)))
            except OSError as error:  # requests' errors are OSErrors
                raise _missing(name, f"fetching {url} failed ({_short(error)})") from error
            except ValueError as error:
                raise InputError(
                    f"{url} is not the file expected for {name!r}: {error} Nothing was kept. The "
                    f"page {SOURCES[name].home} may have changed. If you have a good copy, put it "
                    f"into {_folder()}."
                ) from error
        table = _read(name, form, fresh)
        kept = tuple(cache / path.name for path in fresh)
        for path, target in zip(fresh, kept, strict=True):
            os.replace(path, target)
    logger.info("fetched %s into %s", name, cache)
    return Found("cache", form, kept), table


def _folder() -> Path:
    """Return the folder to which a user should add files."""
    return data_folder() or cache_folder()


def _short(error: Exception) -> str:
    """Return an error as one line, because connection errors print whole objects."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:160]}{'...' if len(text) > 160 else ''}"


def _missing(name: str, why: str) -> InputError:
    """Return the error for a missing data set, with the address, the folder and the command."""
    source = SOURCES[name]
    own = data_folder()
    looked = f"ARDVARK_DATA ({own if own else 'not set'}) nor in the cache ({cache_folder()})"
    public = next((form for form in source.forms if form.urls), None)
    wanted = " or ".join(" with ".join(form.files) for form in forms(name))
    steps = f"Get it from {source.home}"
    if public is not None:
        steps += f" (files: {', '.join(public.urls)})"
    steps += f", and put {wanted} into {_folder()}"
    command = f"`ardvark data fetch {name}`"
    if public is None:
        steps += f"; {command} cannot do that for this set"
    else:
        steps += f"; or run {command} when you are online"
    if not source.forms:
        steps += ". The first column of the table is y (0 or 1); each further one is a feature"
    return InputError(
        f"data set {name!r} was found neither in {looked}, and {why}. {steps}. "
        f"Citation: {source.citation} Licence: {source.licence}."
    )
