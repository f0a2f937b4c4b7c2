"""From a problem and a method to a fit: registry, request, run, prediction."""
