"""A person's own table in a file: what is read, what is said, what is refused, and the way on."""

import logging

import numpy as np
import pytest

from ardvark.data import table

PLAIN = "a,b,y\n1.5,2,u\n3,-4,v\n5,6,u\n"
X = [[1.5, 2.0], [3.0, -4.0], [5.0, 6.0]]


@pytest.fixture
def read(tmp_path):
    def reading(text, target="y", **settings):
        path = tmp_path / "own.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return table(path, target, **settings)

    return reading


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (PLAIN, {}),
        (PLAIN.replace(",", ";"), {}),
        (PLAIN.replace(",", "\t"), {}),
        (PLAIN.replace(",", " | "), {}),
        (PLAIN.replace(",", "/"), {"sep": "/"}),
        (PLAIN.replace(",", "\t"), {"sep": "tab"}),
        (PLAIN.replace(",", ";").replace(".", ","), {}),
        (PLAIN.replace("\n", "\r\n"), {}),
        (PLAIN.replace("\n", "\r"), {}),
        ("\ufeff" + PLAIN, {}),
        ("\n" + PLAIN.replace("\n", "\n\n"), {}),
        (PLAIN.replace("a,", '"a",').replace("1.5,", '"1.5",'), {}),
        ("a,b,y,extra\n1.5,2,u,red\n3,-4,v,\n5,6,u,blue\n", {"drop": ["Extra"]}),
        ("a,b,y\n1.5,2,u\n,9,v\n3,-4,v\n5,6,u\n9,9,\n", {"drop_missing": True}),
        ("a,b,y\n1.5,2,u\n9,,w\n3,-4,v\n5,6,u\n", {"classes": ["u", "v"]}),
    ],
)
def test_the_same_table_in_many_forms(read, text, settings):
    data = read(text, **settings)
    assert data.feature_names == ("a", "b")
    assert data.class_names == ("u", "v")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, [0, 1, 0])
    assert data.name == "own"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (",a,b,y\np,1.5,2,u\nq,3,-4,v\nr,5,6,u\n", ("p", "q", "r")),  # pandas' index
        ("a,b,y\np,1.5,2,u\nq,3,-4,v\nr,5,6,u\n", ("p", "q", "r")),  # R's write.table
        ("a,b,y\n0,1.5,2,u\n1,3,-4,v\n2,5,6,u\n", ("0", "1", "2")),
        ("ID,a,b,y\n7,1.5,2,u\n8,3,-4,v\n9,5,6,u\n", ("7", "8", "9")),
        (",a,b,y\np,1.5,2,u\np,3,-4,v\nr,5,6,u\n", ("0", "1", "2")),
    ],
)
def test_a_column_of_row_names_is_no_feature(read, text, names, caplog):
    with caplog.at_level(logging.INFO, "ardvark"):
        data = read(text)
    assert data.feature_names == ("a", "b")
    assert data.sample_names == names
    np.testing.assert_array_equal(data.X, X)
    assert len(caplog.messages) == 1  # never in silence


@pytest.mark.parametrize("first", ["height", "id"])
def test_a_first_column_of_measurements_stays(read, first):
    data = read(f"{first},y\n1.5,u\n2.5,v\n3.5,u\n")
    assert data.feature_names == (first,)


@pytest.mark.parametrize(
    ("labels", "settings", "names", "y"),
    [
        ("uvu", {"positive": "u"}, ("v", "u"), [1, 0, 1]),
        ("uvu", {"classes": ["v", "u"]}, ("v", "u"), [1, 0, 1]),
        ("uvu", {"classes": ["v", "u"], "positive": "v"}, ("u", "v"), [0, 1, 0]),
        ("uvw", {"positive": "w"}, ("not w", "w"), [0, 0, 1]),
        ("uvw", {"classes": ["w", "v"]}, ("w", "v"), [1, 0]),
        (["2", "10", "2"], {}, ("2", "10"), [0, 1, 0]),  # by number, as for an array
        (["1.0", "2.0", "1.0"], {"positive": "1"}, ("2", "1"), [1, 0, 1]),
        (["True", "False", "True"], {}, ("False", "True"), [1, 0, 1]),
        (["u", "v", "Not known", "v"], {"na": ["not known "]}, ("u", "v"), [0, 1, 1]),
    ],
)
def test_labels_are_chosen(read, labels, settings, names, y):
    rows = "".join(f"{k}.5,{label}\n" for k, label in enumerate(labels))
    data = read(f"a,y\n{rows}", **settings)
    assert data.class_names == names
    np.testing.assert_array_equal(data.y, y)


@pytest.mark.parametrize(
    ("encode", "notes"),
    [
        ("onehot", ["", *(f"1 if {s}; 0 if another" for s in "pqr"), "1 if no; 0 if ja"]),
        ("ordinal", ["", "0 if p; 1 if q; 2 if r", "0 if ja; 1 if no"]),
    ],
)
def test_what_the_numbers_of_text_mean_is_noted(read, encode, notes):
    """For `panel.csv`: with three levels 0 is any other one, and with two it is the other one."""
    data = read("a,site,old,y\n1,q,no,u\n3,p,ja,v\n5,r,no,u\n7,p,ja,v\n", encode=encode)
    assert [*data.encoder.notes().values()] == notes
