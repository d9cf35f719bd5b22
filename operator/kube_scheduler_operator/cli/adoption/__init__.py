"""What `adopt` and `check` know of a cluster before the operator is installed."""
