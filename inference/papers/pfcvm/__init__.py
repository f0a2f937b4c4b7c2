"""The algorithms of the PFCVM papers."""
