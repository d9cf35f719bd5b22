"""The operator: watches, snapshots, reconcile, executor, process."""
