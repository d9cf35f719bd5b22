"""Moving nodes to the desired revision, one at a time, and deciding how each attempt ended."""
