"""Plugins: those of each version, those that a profile enables, and their defaults."""
