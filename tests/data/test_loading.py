"""Finding, fetching and refusing files: everything local, no test touches the network."""

import dataclasses
import functools
import http.server
import logging
import pickle
import subprocess
import sys
import threading
from hashlib import sha256

import numpy as np
import pytest

from ardvark.common.validate import InputError
from ardvark.data import available, fetch, load, loading, parsers
from ardvark.data.sources import CHANGES, SOURCES, Form, Source

TABLE = b"y,a,b\n1,0.5,2\n0,1.5,3\n1,2.5,4\n"
X = np.array([[0.5, 2], [1.5, 3], [2.5, 4]])
Y = np.array([1, 0, 1], dtype=np.int8)
TOY = Source(
    home="https://example.org/toy",
    shape=(3, 2),
    counts=(1, 2),
    classes=("off", "on"),
    arrays=sha256(X.tobytes() + Y.tobytes()).hexdigest(),
    forms=(),
    citation="Nobody (2000).",
    licence="none",
    transform="+ 1",
)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Address of a local server of the folder `tmp_path / "site"`, and the requests it got."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    site = tmp_path / "site"
    site.mkdir()
    (site / "toy.csv").write_bytes(TABLE)
    asked = []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            asked.append(self.path)

    handler = functools.partial(Handler, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}", asked
        running.shutdown()
        thread.join()


@pytest.fixture
def toy(monkeypatch, empty, server):
    """Register the set "toy", served locally; returns a function that changes its entry."""
    url, _ = server

    def register(*addresses, **changes):
        addresses = addresses or ((f"{url}/toy.csv", sha256(TABLE).hexdigest()),)
        urls, hashes = zip(*addresses, strict=True)
        form = Form(parsers.tidy, tuple(u.rsplit("/", 1)[1] for u in urls), urls, hashes)
        entry = dataclasses.replace(TOY, forms=(form,), **changes)
        monkeypatch.setitem(SOURCES, "toy", entry)
        monkeypatch.setitem(CHANGES, "+ 1", lambda X: X + 1)

    register()
    return register


def kept(cache):
    return sorted(path.name for path in cache.iterdir()) if cache.exists() else []


def test_load_fetches_checks_and_caches(toy, empty, server):
    _, asked = server
    assert available().loc["toy", "present"] == "no"
    data = load("toy")
    np.testing.assert_array_equal(data.X, X + 1)
    assert data.y.tolist() == [1, 0, 1]
    assert data.feature_names == ("a", "b")
    assert data.class_names == ("off", "on")
    assert (data.name, data.citation, data.transform) == ("toy", "Nobody (2000).", "+ 1")
    assert kept(empty) == ["toy.csv"]
    assert available().loc["toy", "present"] == "cache"
    raw = load("toy", raw=True)
    np.testing.assert_array_equal(raw.X, X)
    assert raw.transform == ""
    assert raw.fingerprint == TOY.arrays
    assert len(asked) == 1  # the second time it came from the cache


def test_fetch_returns_the_files(toy, empty, server):
    _, asked = server
    assert fetch("toy") == (empty / "toy.csv",)
    assert fetch("toy") == (empty / "toy.csv",)
    assert len(asked) == 1
    assert fetch("digits38") == ()


def test_a_file_of_unknown_hash_is_kept_when_its_values_are_right(toy, empty, server):
    toy((server[0] + "/toy.csv", ""))
    assert load("toy").N == 3
    assert kept(empty) == ["toy.csv"]


def test_the_users_folder_comes_before_the_cache(toy, empty, server, tmp_path, monkeypatch):
    fetch("toy")
    monkeypatch.setenv("HOME", str(tmp_path))
    for place in ("", "tables", "raw"):  # the later is found first
        folder = tmp_path / "own" / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "toy.csv").write_bytes(TABLE)
        monkeypatch.setenv("ARDVARK_DATA", "~/own")
        found = loading.locate("toy")
        assert found.place == "ARDVARK_DATA"
        assert found.paths == (folder / "toy.csv",)
    assert available().loc["toy", "present"] == "ARDVARK_DATA"


def test_a_wrong_hash_is_refused_and_nothing_is_kept(toy, empty, server):
    url = server[0] + "/toy.csv"
    toy((url, "0" * 64))
    with pytest.raises(InputError) as refused:
        load("toy")
    for part in (url, "0" * 64, sha256(TABLE).hexdigest(), "Nothing was kept", TOY.home):
        assert part in str(refused.value)
    assert kept(empty) == []


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"arrays": "0" * 64}, "its sha256 of the arrays is [0-9a-f]{64}, expected 0{64}"),
        ({"shape": (3, 4)}, r"its shape is \(3, 2\), expected \(3, 4\)"),
        ({"counts": (2, 1)}, r"its counts of y = 0 and 1 is \(1, 2\), expected \(2, 1\)"),
    ],
)
def test_wrong_values_are_refused_and_nothing_is_kept(toy, empty, server, changes, message):
    toy((server[0] + "/toy.csv", ""), **changes)
    with pytest.raises(InputError, match=message):
        load("toy")
    assert kept(empty) == []


def test_two_files_are_kept_only_together(toy, empty, server, tmp_path):
    url = server[0]
    toy((f"{url}/toy.csv", ""), (f"{url}/gone.csv", ""))
    with pytest.raises(InputError, match=r"gone\.csv failed"):
        load("toy")
    assert kept(empty) == []
    (tmp_path / "site" / "gone.csv").write_bytes(TABLE)
    load("toy")
    assert kept(empty) == ["gone.csv", "toy.csv"]


def test_a_failed_download_names_address_folder_and_command(toy, empty, monkeypatch, tmp_path):
    url = "http://127.0.0.1:9/toy.csv"  # nobody answers there
    toy((url, ""))
    with pytest.raises(InputError) as refused:
        load("toy")
    message = str(refused.value)
    for part in (
        f"data set 'toy' was found neither in ARDVARK_DATA (not set) nor in the cache ({empty})",
        f"fetching {url} failed (ConnectionError",
        f"Get it from https://example.org/toy (files: {url})",
        f"put toy.csv or toy.csv.gz into {empty}",
        "`ardvark data fetch toy`",
        "Nobody (2000).",
    ):
        assert part in message
    assert kept(empty) == []
    monkeypatch.setenv("ARDVARK_DATA", str(tmp_path))
    with pytest.raises(InputError, match=rf"or toy\.csv\.gz into {tmp_path};"):
        fetch("toy")


@pytest.mark.parametrize("name", SOURCES)
def test_every_missing_set_says_what_to_do(empty, name):
    source = SOURCES[name]
    with pytest.raises(InputError) as refused:
        load(name, fetch=False)
    message = str(refused.value)
    for part in (source.home, f"into {empty}", f"`ardvark data fetch {name}`", source.citation):
        assert part in message
    for form in source.forms:
        assert all(part in message for part in form.files + form.urls)


@pytest.mark.parametrize("name", ["gli_85", "lund_breast", "seed_eeg"])
def test_sets_without_public_download_are_not_fetched(empty, name):
    with pytest.raises(InputError, match="no public download with a known hash") as refused:
        load(name)
    assert f"`ardvark data fetch {name}` cannot do that for this set" in str(refused.value)
    with pytest.raises(InputError, match="no public download"):
        fetch(name)


def test_a_users_own_table_is_loaded_with_a_warning(empty, tmp_path, monkeypatch, caplog):
    (tmp_path / "lund_breast.csv").write_bytes(TABLE)
    monkeypatch.setenv("ARDVARK_DATA", str(tmp_path))
    with caplog.at_level(logging.WARNING, "ardvark"):
        data = load("lund_breast")
    assert data.X.shape == (3, 2)
    assert "lund_breast cannot be checked" in caplog.text


def test_a_wrong_data_folder_is_named(empty, monkeypatch, tmp_path):
    monkeypatch.setenv("ARDVARK_DATA", str(tmp_path / "typo"))
    for function in (functools.partial(load, "colon"), available):
        with pytest.raises(InputError, match=r"ARDVARK_DATA is '.*typo', which is not a folder"):
            function()


def test_damaged_files_are_named(empty, tmp_path, monkeypatch):
    monkeypatch.setenv("ARDVARK_DATA", str(tmp_path))
    (tmp_path / "sonar.csv").write_bytes(b"0.1,0.2\nnot,numbers,R\n")
    with pytest.raises(InputError) as refused:
        load("sonar")
    message = str(refused.value)
    assert message.startswith(f"{tmp_path / 'sonar.csv'} could not be read as 'sonar' (ParserError")
    assert "delete it and run `ardvark data fetch sonar`" in message


class Trap:
    """Unpickling it leaves a trace."""

    def __init__(self, trace):
        self.trace = str(trace)

    def __reduce__(self):
        return (exec, (f"open({self.trace!r}, 'w').close()",))


@pytest.mark.parametrize("name", SOURCES)
def test_nothing_is_unpickled(empty, tmp_path, monkeypatch, name):
    trace, own = tmp_path / "trace", tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("ARDVARK_DATA", str(own))
    content = pickle.dumps(Trap(trace))
    array = tmp_path / "array.npy"
    np.save(array, np.array([Trap(trace)], dtype=object), allow_pickle=True)
    for bytes_ in (content, array.read_bytes()):
        for form in loading.forms(name):
            paths = [own / file for file in form.files]
            for path in paths:
                path.write_bytes(bytes_)
            with pytest.raises(InputError, match="could not be read"):
                loading._read(name, form, paths)
        with pytest.raises(InputError, match="could not be read"):
            load(name)
    assert not trace.exists()
    pickle.loads(content)  # the trap does work
    assert trace.exists()


def test_loading_is_not_needed_to_import():
    code = (
        "import sys, ardvark.data; "
        "print([m for m in ('sklearn', 'scipy', 'pooch', 'requests', 'pymc') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
