"""SchedulerExtender: validation, its agents, and attribution of errors to its fields; pure."""
