"""The papers' own algorithms. A file that implements a paper starts with the paper's name."""
