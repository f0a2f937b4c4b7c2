"""What a method receives and what it returns: target, density, job, result."""
