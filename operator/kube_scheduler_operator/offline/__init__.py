"""Files in, findings out: what can be said of objects without a cluster."""
