"""Approximations of any differentiable density: ADVI and Laplace."""
