"""The sampling and variational algorithm of the FS-SKLR paper."""
