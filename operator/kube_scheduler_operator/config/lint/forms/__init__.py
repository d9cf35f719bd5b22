"""Forms in which people keep kube-scheduler's configuration and flags; `table.py` lists them."""
