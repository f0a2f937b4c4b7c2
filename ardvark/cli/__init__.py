"""The command line: the same API, one file a command."""
