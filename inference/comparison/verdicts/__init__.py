"""What a fit may be used for, in words."""
