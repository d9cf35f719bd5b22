"""The effective configuration of a SecondaryScheduler; pure."""
