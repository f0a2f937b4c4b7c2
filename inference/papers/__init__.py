"""The papers' own algorithms, as printed: a file that implements a paper starts with its name."""
