"""The papers' tables beside ours, fold by fold: computed, stored, and written from what is stored.

`tables` declares the rows: paper, table, data, folds, method and options, printed figures.
`protocols` how rows are split; `fold` one fit; `store` the files; `statistics` means and errors;
`results` the stored figures of a row. `sheets` says which rows a paper's page is about; `page`
writes the pages from the prose in `pages/`, whose figures are those of `prose`, and from tables:
`overview` (the matrix, priors apart from inference), `stops` (RFVM's), `selection`, `detail` (every
row), `absent`; `wording` says how figures are written. `curves` draws, and `goals` says whether the
printed figures come out. `run` computes what is missing, and `cost` estimates how long it takes.
"""
