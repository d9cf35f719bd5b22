"""Cluster-wide findings: unknown schedulerNames, unmanaged schedulers, checks; pure.

May import: controlplane, secondary, loadpolicy and below. May be imported by: admission and above.
"""
