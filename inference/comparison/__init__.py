"""Fits side by side: one table, and a study in a folder."""
