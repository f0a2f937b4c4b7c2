"""The exact posterior: which sampler, for how long, and a second opinion by another one."""
