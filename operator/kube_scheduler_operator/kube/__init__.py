"""Kubernetes: API client, watches, store, work queue, leader election and events.

Nothing here knows schedulers. Callers import modules, not this package: a program that needs only
the client does not load kopf.
"""
