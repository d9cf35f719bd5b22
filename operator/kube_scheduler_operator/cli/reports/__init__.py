"""Findings of `validate` in each output format."""
