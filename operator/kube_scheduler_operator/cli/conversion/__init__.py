"""Input and output of `convert`."""
