"""Who schedules what: schedulerNames that nobody serves, schedulers that nobody manages."""
