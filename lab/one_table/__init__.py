"""What a person with one table asks: `choose` and `panel`, measured."""
