"""The operator: kopf handlers, snapshots, reconcile, executor, process.

May import: admission and below. May be imported by: offline and above.
"""
