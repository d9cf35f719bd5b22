"""KubeScheduler and Scheduler: the schedulers in the static Pods of control-plane nodes; pure.

May import: effective and below. May be imported by: diagnostics and above.
"""
