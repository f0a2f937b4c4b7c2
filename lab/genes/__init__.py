"""The genes that the papers print as selected: exact P(active), and how often folds select them.

`printed.csv` has the printed tables, each gene with its column in our data. `declared.py` says
which posteriors and folds are computed for which table, `pieces.py` computes them, one at a time,
into `fits.csv`, `posterior.csv` and `folds.csv`. `summary.py` (tables), `findings.py` (sentences),
`often.py` (the genes selected most often) and `figure.py` make what GENES.md says and shows from
these files alone.
"""
