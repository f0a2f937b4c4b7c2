"""What is parsed once, and again when its file has changed."""

import os

from ardvark.common.store import identity, parsed


def test_a_file_is_parsed_again_when_it_has_changed(tmp_path):
    path, asked = tmp_path / "own.txt", []

    def parse(path, *given):
        asked.append(given)
        return path.read_text() if path.exists() else None

    assert parsed(parse, path) is None
    for moment, text in enumerate(("one", "two", "three")):  # of one size, and of another
        path.write_text(text)
        os.utime(path, ns=(moment, moment))
        assert [parsed(parse, path) for _ in range(2)] == [text, text]
    assert parsed(parse, path, "a way") == "three"
    assert asked == [(), (), (), (), ("a way",)]


def test_an_identity_has_the_digits_that_are_asked_for():
    assert identity({"a": 1, "b": 2}) == identity({"b": 2, "a": 1})
    assert identity({"a": 1, "b": 2}, 7, sort_keys=False) != identity(
        {"b": 2, "a": 1}, 7, sort_keys=False
    )
    assert len(identity({"a": 1}, 7)) == 7
