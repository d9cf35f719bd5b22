"""An operator that owns kube-scheduler's configuration and its revisions.

`operator/engine/reconcile.py` is the place to start reading: one reconcile, top to bottom, in the
order in which a configuration travels from a user's edit to a running scheduler.
"""

__version__ = "0.1.0"
