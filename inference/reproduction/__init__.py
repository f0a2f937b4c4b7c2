"""What the zoo was built to show: every approximation beside the exact posterior, in tables."""
