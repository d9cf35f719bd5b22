"""SecondaryScheduler: the assignment of Pods, rollout as a Deployment, and status; pure."""
