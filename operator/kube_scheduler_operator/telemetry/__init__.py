"""Metrics and health checks of the operator process, and the HTTPS server for both.

May import: policies and below. May be imported by: programs and above.
"""
