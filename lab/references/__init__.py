"""Reference posteriors, kept as files, and opened as fits of their problems."""
