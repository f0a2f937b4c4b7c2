"""What a fit is: its groups, its convergence, and which features and samples it selects."""
