"""FINDINGS.md, the page for a reader who has ten minutes: its rows left out and its picture."""
