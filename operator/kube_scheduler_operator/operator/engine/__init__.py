"""The operator: kopf handlers, snapshots, reconcile, executor, process."""
