"""Validation of a configuration, as kube-scheduler does it."""
