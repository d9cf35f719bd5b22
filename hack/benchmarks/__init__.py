"""Speed and memory on real clusters."""
