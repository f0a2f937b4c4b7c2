"""Samplers for any differentiable density: NUTS and microcanonical dynamics."""
