"""The operator: what it observes, decides and writes. One package for each kind."""
