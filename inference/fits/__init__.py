"""What a fit is: its groups, its convergence, what it says of features and samples."""
