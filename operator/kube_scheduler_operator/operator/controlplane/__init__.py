"""KubeScheduler and Scheduler: the schedulers in the static Pods of control-plane nodes; pure."""
