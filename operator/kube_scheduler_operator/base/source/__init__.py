"""YAML and JSON as Kubernetes programs read them, with the line and column of every value.

`reader.py` is the entry point; every command that opens a file uses its `read`.
"""
