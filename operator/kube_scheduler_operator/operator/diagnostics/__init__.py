"""Cluster-wide findings: unknown schedulerNames, unmanaged schedulers, futile writes; pure."""
