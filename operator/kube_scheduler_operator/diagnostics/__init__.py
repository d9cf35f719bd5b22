"""Cluster-wide findings: unknown schedulerNames, and unmanaged schedulers; pure.

May import: controlplane, secondary, loadpolicy and below. May be imported by: engine and above.
"""
