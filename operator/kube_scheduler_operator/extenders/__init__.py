"""Extenders that the operator runs: agents beside the schedulers that call them; pure."""
