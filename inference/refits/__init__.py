"""Questions that need refits: with other rows, other priors, or half of the data."""
