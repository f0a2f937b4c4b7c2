"""What every package stands on: checked input, declared options, progress, processes, HTML."""
