"""Adoption: what static Pods from before the operator had, and what becomes of it."""
