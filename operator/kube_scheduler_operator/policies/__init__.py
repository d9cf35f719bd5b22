"""Programs that serve kube-scheduler: extenders, their policies, and what measures load."""
