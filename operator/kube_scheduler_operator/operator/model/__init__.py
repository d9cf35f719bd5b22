"""Snapshot and Plan: the input and the result of a reconcile, and helpers for both; pure."""
