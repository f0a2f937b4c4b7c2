"""The papers' tables beside ours, fold by fold: computed, stored, and written from what is stored.

`tables` declares the rows: paper, table, data, folds, method and options, printed figures.
`protocols` how rows are split; `fold` one fit; `store` the files; `statistics` means and errors;
`results` the stored figures of a row; `summary` the sentences; `page` the document; `curves` the
figures; `goals` whether the printed figures come out.
"""
