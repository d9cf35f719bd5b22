"""Checks of files without a cluster: validation and composition.

May import: engine and below. May be imported by: cli and above.
"""
