"""Experiments: the paper's tables and figures, and what else was measured; not in the wheel."""
