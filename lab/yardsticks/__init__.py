"""The papers' competitors, and what a person would pick today, through libraries that are kept.

`registry` has them by name; `contract` says what one declares, and fits it; `penalised` has L1,
MCP and elastic net; `stability` and `knockoffs` choose features with a stated error rate; `xolon`
is the RFVM paper's own baseline.

All of them have one form. A method sees the training rows alone: they standardise the features, and
its options are chosen by five inner folds, by the mean log probability of the labels, over a grid
that was fixed beforehand. It returns P(y = 1) of the held-out rows, labels, and what it kept.
"""
