"""KubeScheduler and Scheduler: static Pods, or the SecondaryScheduler in their place; pure."""
