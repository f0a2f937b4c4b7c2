"""The exact posterior: which sampler, and for how long."""
