"""What the operator tells others: conditions, the ClusterOperator, metrics and its HTTPS server.

Conditions, their union and the ClusterOperator are pure functions; only `server` listens.
"""
