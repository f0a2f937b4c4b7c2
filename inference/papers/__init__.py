"""The papers' own algorithms, a folder for each paper."""
