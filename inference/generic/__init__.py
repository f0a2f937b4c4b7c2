"""Methods for any differentiable density: exact sampling (NUTS), ADVI, Laplace."""
