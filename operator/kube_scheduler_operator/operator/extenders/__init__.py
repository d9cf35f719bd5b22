"""SchedulerExtender: its agents and their objects, and its status; pure."""
