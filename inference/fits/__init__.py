"""What a fit is: its groups, its convergence, and what its features and samples do."""
