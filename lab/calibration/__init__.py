"""Whether the samplers are right, and whether `exact` stops at the right time."""
