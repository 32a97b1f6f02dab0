"""The challengers. Each is a pure function of (seed, game number, row key)."""
