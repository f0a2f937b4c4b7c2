"""Questions answered by fitting again: other rows, other priors, half of the data."""
