"""The variational algorithm of the RFVM paper, and its deterministic counterpart."""
