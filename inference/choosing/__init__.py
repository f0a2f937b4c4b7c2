"""Which candidate is for a table: the same folds for all."""
