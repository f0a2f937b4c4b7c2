"""Which method finds the features that are active."""
