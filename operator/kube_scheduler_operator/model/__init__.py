"""Snapshot and Plan: the input and the result of a reconcile, and helpers for both; pure.

May import: programs and below. May be imported by: manifests and above.
"""
