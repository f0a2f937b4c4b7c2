"""Exact sampling: by the gradient, by conditionals, and the rule that picks one and runs it."""
