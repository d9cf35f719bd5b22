"""What a newer Kubernetes changes for the schedulers of a cluster: `check --upgrade`."""
