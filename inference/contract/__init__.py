"""What a method is given and what it hands back: target, density, job, result."""
