"""Findings of one run: severities, suppressions, and those that a baseline accepts."""
