"""Forms in which people keep kube-scheduler's configuration and flags: one module each.

A new form is one file, and its entry in `table.py`.
"""
