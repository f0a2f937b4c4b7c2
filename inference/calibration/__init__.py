"""Is a sampler right? Simulation-based calibration, and joint tests of one transition."""
