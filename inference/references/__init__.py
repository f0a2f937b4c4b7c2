"""Reference posteriors that are stored with the package."""
