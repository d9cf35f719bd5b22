"""Checks of files without a cluster."""
