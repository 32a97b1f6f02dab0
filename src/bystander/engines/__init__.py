"""Where games are played: the counts are the same everywhere."""
