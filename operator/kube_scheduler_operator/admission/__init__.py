"""The webhook that assigns new Pods: a process of its own, and the operator's side of it.

May import: diagnostics and below. May be imported by: engine and above.
"""
