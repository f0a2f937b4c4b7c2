"""The matrix: every approximation beside the exact posterior, under the same prior."""
