"""Talking to Kubernetes: client, store, queue, leases, events, watches.

Nothing in here knows what a scheduler is. Modules are imported one by one, so that a program that
needs only the client does not pay for kopf.
"""
