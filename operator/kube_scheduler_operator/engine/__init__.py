"""The operator as a program: watches, snapshot, reconcile, executor, process."""
