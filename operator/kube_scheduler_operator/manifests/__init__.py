"""Templates in, Kubernetes objects out."""
