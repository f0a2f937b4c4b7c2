"""The command line: the same API."""
