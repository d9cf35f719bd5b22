"""The webhook that assigns new Pods: a process of its own, and the operator's side of it."""
