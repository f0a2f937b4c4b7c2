"""How far one posterior is from another, and how well it predicts: numbers with noise floors."""
