"""The printed genes: each printed row has its column, or says why its name is another one."""

import csv
from pathlib import Path

HERE = Path(__file__).parents[1] / "genes"
SIZES = {"pfcvm-4": 2000, "jcfo-3": 2000, "pfcvm-5": 7129, "jcfo-2": 7129, "rfvm-5": 7129}


def rows_of(name):
    with (HERE / f"{name}.csv").open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def test_each_printed_row_has_one_column():
    for table, size in SIZES.items():
        mine = [row for row in rows_of("printed") if row["table"] == table]
        numbers = [int(row["number"]) for row in mine]
        assert len(set(numbers)) == len(numbers)
        assert 1 <= min(numbers) <= max(numbers) <= size
        places = [int(row["place"]) for row in mine]
        assert sorted(set(places)) == list(range(1, max(places) + 1))
    names = {}
    for row in rows_of("printed"):  # golub and ALLAML have the same columns
        key = SIZES[row["table"]], row["number"]
        assert names.setdefault(key, row["gene"]) == row["gene"]


def test_columns_whose_printed_name_is_another_one_say_why():
    for row in rows_of("printed"):
        if row["table"] == "rfvm-5":  # prints descriptions, no names
            continue
        index, accession = row["as_printed"].split()
        shift = 1 if row["table"] == "jcfo-2" else 0  # it counts the heading
        assert int(index) - shift == int(row["number"]) or row["note"]
        assert row["gene"].startswith(accession) or row["note"]


def test_gene_377_is_another_one_than_its_printed_accession():
    printed = [r for r in rows_of("printed") if r["as_printed"] == "377 R39681"]
    assert [(r["number"], r["gene"]) for r in printed] == [("377", "Z50753"), ("337", "R39681")]
    rank = {r["gene"]: int(r["rank"]) for r in rows_of("posterior")
            if r["fit"] == "colon/pfcvm/as it is"}  # fmt: skip
    assert rank["Z50753"] == 1
    assert rank["R39681"] > 1000


def test_the_page_shows_rows_of_its_table():
    page = (HERE.parent / "GENES.md").read_text()
    stored = {row["gene"]: row for row in rows_of("colon")}
    shown = [line for line in page.splitlines() if line.startswith("| ")][2:]
    assert len(shown) == 9
    for line in shown:
        gene, _, pfcvm, jcfo, ours, ours_jcfo, p, rank, group, size = (
            cell.strip() for cell in line.strip("|").split("|")
        )
        row = stored[gene]
        assert (pfcvm, jcfo) == (row["pfcvm_prints"], row["jcfo_prints"])
        assert (ours, ours_jcfo) == (row["our_pfcvm_folds"], row["our_jcfo_folds"])
        assert p == f"{row['p']} ({row['prior']})"
        assert group == f"{row['p_group']} ({row['prior_group']})"
        assert (rank, size) == (row["rank"], row["group_size"])
