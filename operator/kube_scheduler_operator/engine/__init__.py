"""The operator: kopf handlers, snapshots, reconcile, executor, process.

May import: diagnostics and below. May be imported by: offline and above.
"""
