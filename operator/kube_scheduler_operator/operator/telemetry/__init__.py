"""Metrics of the operator process, and the HTTPS server for them."""
