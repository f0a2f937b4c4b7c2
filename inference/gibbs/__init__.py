"""Exact Gibbs samplers: binary masks, and JCFO's latent form as a second opinion beside NUTS."""
