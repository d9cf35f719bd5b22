"""KubeScheduler and Scheduler: the schedulers in the control plane's static pods."""
