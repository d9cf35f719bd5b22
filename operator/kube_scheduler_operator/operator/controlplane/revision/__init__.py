"""Numbered, complete and immutable revisions of the desired content."""
