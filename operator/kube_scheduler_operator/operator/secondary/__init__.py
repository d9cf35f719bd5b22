"""SecondaryScheduler: composition, rollout as a Deployment, and status; pure."""
