"""The page for a reader who has ten minutes: its picture, its numbers."""
