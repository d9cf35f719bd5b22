"""Cluster-wide findings: unknown schedulerNames, unmanaged schedulers, checks; pure."""
