"""Exact Gibbs samplers: for binary masks, and for models that NUTS samples too, as a check."""
