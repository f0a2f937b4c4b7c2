"""A comparison as figures and as one page."""
