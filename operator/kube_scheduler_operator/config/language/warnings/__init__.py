"""Warnings about a valid configuration or flag."""
