"""The genes that the papers print as selected: exact P(active), and how often folds select them.

`printed.csv` has the printed tables, each gene with its column in our data. `declared.py` says
which posteriors and folds are computed for which table, `pieces.py` computes them, one at a time,
into `fits.csv`, `posterior.csv` and `folds.csv`. `summary.py` reads these files, `often.py` finds
the genes selected most often, `figure.py` draws, and `figures.py` computes the numbers and tables
that the text of GENES.md names.
"""
