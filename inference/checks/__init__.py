"""Is a sampler right, and how far does an answer depend on rows and priors? This is asked here."""
