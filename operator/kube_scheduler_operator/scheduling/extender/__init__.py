"""The extender: the program that kube-scheduler calls to filter and score nodes."""
