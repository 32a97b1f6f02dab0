"""What runs in a process of its own, each in its own virtual environment."""
