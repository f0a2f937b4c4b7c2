"""A panel: a few features whose logistic regression predicts nearly as well as the posterior."""
