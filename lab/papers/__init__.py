"""The papers' tables beside ours, fold by fold: computed, stored, and written from what is stored.

`tables` declares the rows: paper, table, data, folds, method and options, printed figures.
`protocols` how rows are split; `fold` one fit; `store` the files; `statistics` means and errors;
`results` the stored figures of a row; `rows` all of them as one table. `run` computes what is
missing, and `cost` estimates how long it takes. The pages are written by hand (`rfvm.md.j2`):
`sheets` says which rows each of them is about, `figures` computes the numbers and tables that it
names, `wording` how they are written. `curves` draws, and `goals` says whether the printed figures
come out.
"""
