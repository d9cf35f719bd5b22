"""The commands that run in pods: the operator and its programs."""
