"""What a user waits for, and how much memory it takes."""
