"""Compares the record of kube-scheduler's versions with a release of Kubernetes."""
