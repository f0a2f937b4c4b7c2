"""What every package uses: input checks, declared options, progress, processes, HTML."""
