"""Snapshot and Plan: the input and the result of a reconcile, and helpers for both; pure.

May import: simulate and below. May be imported by: manifests and above.
"""
