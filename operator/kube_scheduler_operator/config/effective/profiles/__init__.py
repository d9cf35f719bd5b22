"""SchedulerProfile: validation, and attribution of errors to its fields; pure."""
