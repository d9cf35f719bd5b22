"""Conditions, and what the statuses of all kinds share; pure."""
