"""Placements by the real kube-scheduler, over a copy of a cluster in memory.

A world has the part of a cluster that kube-scheduler reads. The simulated API server serves
it on loopback to a kube-scheduler process, the very program that decides in the cluster, with the
cluster's own configuration. Nothing is written anywhere else.
"""
