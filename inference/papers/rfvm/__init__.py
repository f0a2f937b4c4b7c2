"""The variational algorithm of the RFVM paper."""
