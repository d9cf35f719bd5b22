"""SchedulerProfile: validated, given to its scheduler, reported."""
