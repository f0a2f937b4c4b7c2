"""What is said of a table, word by word: each call with its report, or with what was made of it.

The answers are in `snapshots/tables.txt`; conftest.py says how they are written anew.
"""

import logging

import numpy as np
import pandas as pd

import ardvark as av

FRAME = pd.DataFrame(
    {
        "age": [31.0, np.nan, 52, 40, 45, 60],
        "site": ["A", "B", "A", "C", "A", "B"],
        "sex": list("fmfmfm"),
        "y": list("uvuvuv"),
    }
)
FULL = FRAME.dropna()
X = [0.25, 1.5, -2.75, 3.125, 4.5, -5.25, 6.0, 7.5, -8.25, 9.75, 10.5, 11.0]
LONG = pd.DataFrame({"a": X, "y": ["ill", "well"] * 6})
WRONG = FRAME.assign(
    day=pd.date_range("2024-01-03", periods=6).strftime("%Y-%m-%d"),
    name=[f"p{k}" for k in range(6)],
    one=1,
    odd=[1, 2, "?", 4, 5, 6],
    big=[1, 2, np.inf, 4, 5, -np.inf],
    none=None,
    y=["u", "v", "u", "v", "w", None],
)
WRONG.insert(1, "copy", 1.0)
WRONG = WRONG.rename(columns={"copy": "age"})
VISITS = LONG.assign(patient=np.repeat([f"P{k}" for k in range(6)], 2), site=list("nsw") * 4)
NOTES = pd.DataFrame({"note": [f"n{k // 2}" for k in range(60)], "a": np.arange(60.0)})
NOTES = NOTES.assign(few=NOTES["a"].where(NOTES["a"] < 20), y=np.arange(60) % 2)
COPIES = pd.DataFrame({"a": [1.5, np.nan, 3.0], "b": [1.5, np.nan, 3.5], "c": [1.5, np.nan, 3.0]})
OTHER = pd.DataFrame({"sample": list("rqp"), "y": list("uvu")})
COPIES = COPIES.assign(d=1.0, e=1.0, y=list("uvu"))
LINES = "a,b,y\n1.5,2,u\n3,-4,v\n5,6,u\n"

CALLS = r"""
read("")
read("\n \n")
read("a,b,y\n")
read('a,b,y\n1,"2,u\n3,4,v\n')
read('a,"b,y\n1,2,u\n3,4,v\n')
read("a,b,y\n1,2,u\n3,4,v,5\n")
read("a,b,y\n1,2,u\n3,v\n")
read("a,b,y\n1,2,u,\n3,4,v,\n")
read("a,b,y\n1,2,u,3,4\n3,4,v,3,4\n")
read("a,b,y\n1,2,3,u\n3,4,5,v\n1,2,8,u\n")
read("a,a,y\n1,2,u\n3,4,v\n")
read("a,,y\n1,2,u\n3,4,v\n")
read(LINES.encode("utf-16"))
read(LINES.replace("u", "\xe9").encode("latin-1"))
read(LINES.encode("utf-16-le"))
read(LINES, "z")
read(LINES, None)
read(LINES, drop=["c"])
read(LINES, drop=["y"])
read(LINES, drop=["a", "b"])
read(LINES, sep="ab")
read(LINES, sep="|")
read(LINES, classes=["u", "w"])
read(LINES, positive="w")
read(LINES + LINES)
read("# made today\n" + LINES)
read("#" + LINES)
read("a,b,y\n1,,u\n3,4,v\n,5,u\n")
read(",a,b,y\np,1,2,u\n,3,4,v\nr,5,6,u\n")
read("a;y\n1,5;u\nhigh;v\n2,5;u\n3,5;v\n", measured=["a"], encode="onehot")
read("sample,a\np,1.5\nq,2.5\nr,3.5\n", labels=OTHER, on="sample")
read("sample,a\np,1.5\nq,2.5\np,3.5\n", labels=OTHER, on="sample")
read("sample,a\np,1.5\nq,2.5\nr,3.5\n", labels=pd.concat([OTHER, OTHER]), on="sample")
read("sample,a\np,1.5\nq,2.5\nr,3.5\n", labels=OTHER)
read("sample,a\ns,1.5\nt,2.5\n", labels=OTHER, on="sample")
read("a,b,y\nTRUE,2,u\nFALSE,3,v\nTRUE,5,u\n")
read("a,y\n1,u\n2,\n")
read("a,y\n1,u\n2,\n", drop_missing=True)
read("a,y\n" + "".join(f"{k},{k}\n" for k in range(40)))
read("a;y\n" + "".join(f"{k}.994;{'uv'[k % 2]}\n" for k in range(1, 9)))
read("a,y\n" + "".join(f"{k}.994,{'uv'[k % 2]}\n" for k in range(1, 9)))
read("2-Sep,y\n1.5,u\n2.5,v\n3.5,u\n")
read("0.75,1.25,ill\n0.5,1.5,ill\n2.5,3.5,well\n1.0,1.25,ill\n")
read(LONG.assign(smoking=["None", "former", "current"] * 4).to_csv(index=False))
read(LONG.assign(code=["02139", "10001", "00501"] * 4).to_csv(index=False))
read(WRONG)
read(FRAME)
read(FRAME.assign(y="u"))
read(FRAME.assign(y=None))
read(FRAME.rename(columns={"y": "Outcome"}), "diagnosis")
read(FRAME.rename(columns={"y": "Outcome"}), "outcom")
read(FRAME.rename(columns={"y": "Outcome"}), None)
read(pd.DataFrame({"a": [1.5, 2.5]}), "z")
read(NOTES)
read(VISITS)
read(LONG.assign(subject_id=range(12)))
read(LONG.assign(deal=[2**60 + k // 2 for k in range(12)]))
read(LONG.assign(a=[f"<{k}" for k in range(12)]))
read(LONG.assign(a=[f"{k} mg" for k in range(12)]))
read(LONG.assign(sex=["male", "Male", "female", "male "] * 3))
read(LONG.assign(y=["ill", "Ill", "well"] * 4))
read(LONG.assign(y=["ill", "Ill"] * 6))
read(LONG.assign(y=["I", "II", "III"] * 4))
read(LONG.set_axis([None, "y"], axis=1))
read(FRAME.assign(bp=range(6), Outcome=list("010101")).drop(columns=["y", "site", "sex"]), "z")
read(VISITS.assign(patient=np.repeat(range(501, 507), 2)))
read(LONG.assign(subject_id=range(12)), measured="subject_id")
read("2-Sep,y\n1.5,u\n2.5,v\n3.5,u\n", measured=["2-Sep"])
read(LONG.assign(sex=["male", "Male", "female", "male "] * 3), encode="onehot", measured=["sex"])
read("! made today\n" + LINES)
read("! made today\n" + LINES + "! the end\n", comment="!")
read("% made today\n" + LINES, comment="%")
read(FULL, encode="onehot")
read(FULL, encode="onehot", reference=["site=C"])
read(FULL, encode="ordinal")
read(FULL, encode="onehot", drop="sex", positive="u")
read(FRAME, encode="onehot", drop_missing=True)
read(FRAME, encode="onehot", impute="median")
read(FRAME.assign(site=["A", None, "A", "C", "A", "B"]), encode="onehot", impute="most-frequent")
read(FRAME, encode="onehot", impute="mean")
read(FRAME.assign(a=[1, "n.a.", 3, 4, 5, 6]), encode="ordinal", impute="mean", na=["N.A.", "31"])
read(FULL.astype({"site": pd.CategoricalDtype(["C", "A", "B"], ordered=True)}), encode="ordinal")
read(FULL.assign(patient=list("pqrst")), encode="onehot", row_names="patient")
read(FULL.assign(patient=list("pqrst")), encode="onehot", drop="patient")
read(FULL.assign(patient=list("pqrst")).set_index("patient"), encode="onehot")
read(FULL.assign(patient=list("pqrst")).set_index("site"), encode="onehot", drop="patient")
read(VISITS, groups="patient", encode="onehot")
read(LONG.assign(b=[*X[:-1], -999.0], c=2.0, d=X))
read(COPIES)
read(COPIES, impute="median")
read(LONG.assign(old=range(3, 15), alive=["no", "yes"] * 6), encode="onehot")
read(LONG.assign(y=[*["ill", "well"] * 2, "ill", *[None] * 7]))
read(LONG.assign(y=[*["ill", "well"] * 3, *[None] * 6]))
clean(FRAME, {"age": [1.0], "sex": ["m"]}, impute="median")
clean(FRAME, {"age": ["x"], "site": ["A"], "sex": ["m"]}, impute="median")
clean(FULL, {"age": [None], "site": ["A"], "sex": ["m"]})
clean(FULL, {"age": [1.0], "site": [None], "sex": ["m"]})
clean(FULL, {"age": [], "site": [], "sex": []})
clean(FULL, {"age": [1.0, 2.0], "site": ["Z", "C"], "sex": ["m", "f"], "more": [1, 2]})
clean(FRAME, {"age": [None, 2.0], "site": [None, "C"], "sex": ["m", "f"]}, impute="median")
clean(FRAME, {"age": [None, 2.0], "site": ["A", "C"], "sex": ["m", "f"]}, drop_missing=True)
"""
"""Python, a call a line."""


def told(call, names, caplog):
    """Return a call, and its error or its numbers, with what was logged on the way."""
    caplog.clear()
    try:
        found = eval(call, names)
    except av.InputError as error:
        lines = [f"{type(error).__name__}: {error}"]
    else:
        frame = found if isinstance(found, pd.DataFrame) else shown(found)
        lines = [frame.head(4).to_string(), *getattr(found, "remarks", ())]
    return "\n".join([f"> {call}", *(f"log: {text}" for text in caplog.messages), *lines])


def shown(data):
    """Return a data set as a frame, its labels last."""
    frame = pd.DataFrame(data.X, index=data.sample_names, columns=data.feature_names)
    return frame.assign(**{"label": np.array(data.class_names)[data.y]})


def test_every_word_of_a_table(snapshot, tmp_path, caplog):
    def read(source, target="y", **settings):
        if not isinstance(source, pd.DataFrame):
            (tmp_path / "own.csv").write_bytes(
                source if isinstance(source, bytes) else source.encode()
            )
            source = tmp_path / "own.csv"
        return av.table(source, target, **settings)

    def clean(frame, rows, **settings):
        return read(frame, encode="onehot", **settings).clean(pd.DataFrame(rows))

    caplog.set_level(logging.INFO, "ardvark")
    names = {**globals(), "read": read, "clean": clean}
    texts = [told(call, names, caplog) for call in CALLS.strip().splitlines()]
    snapshot("tables", "\n\n".join(texts).replace(str(tmp_path), "DIR"))
