"""Posteriors side by side: table, leave-one-out, baselines, figures, report, whole studies."""
