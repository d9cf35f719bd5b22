"""What `adopt` and `check` read of a cluster."""
