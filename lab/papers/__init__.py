"""The papers' tables beside ours, fold by fold: `python -m lab.papers.run TABLE`.

`tables` and `competitors` declare the rows: paper, table, data, folds, method and options, printed
figures. `protocols` says how rows are split, `fold` computes one fold, `store` keeps it. `results`
and `statistics` have means and errors of what is stored; `rows` and `compared` write them as
rows.csv and differences.csv, `pages` fills the tables of the pages with these, `curves` draws.
"""
