"""The values that a reconcile reads and returns: Snapshot and Plan, and helpers for both."""
