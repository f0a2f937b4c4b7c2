"""The papers' tables beside ours, fold by fold: run, kept, and told from what is kept.

    ARDVARK_DATA=... python -m benchmarks.paper_check run                  the rows of the page
    ARDVARK_DATA=... python -m benchmarks.paper_check run --only 'rfvm-3-4/*' '*/l1_logistic'
    python -m benchmarks.paper_check page                                  PAPER_CHECK.md, figures
    python -m benchmarks.paper_check list

`ardvark.inference.reproduction.papers` declares the rows: paper, table, data, folds, method and
options, printed figures; those that it names as costly are computed only where
`--only` names them (`--only '*'`: all). `run`
writes a line a fold as it ends, and a line a step of a path, into `folds/`; a killed run goes on
with the same command, and a changed setting is computed again (changed code is not
noticed: the column `version` says which it was; delete the lines to compute them anew). `page`
makes the document and its figures from these files alone and needs no data.
"""
