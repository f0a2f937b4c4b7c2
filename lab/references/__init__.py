"""Reference posteriors: made, checked, judged by a bar, written for posteriordb and in Stan."""
