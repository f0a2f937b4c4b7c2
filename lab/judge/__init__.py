"""How often a verdict is wrong."""
