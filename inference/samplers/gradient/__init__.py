"""A sampler for any differentiable density: NUTS."""
