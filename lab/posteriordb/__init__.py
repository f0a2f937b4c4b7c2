"""The judge on posteriors that others know: posteriordb's reference draws are the truth."""
