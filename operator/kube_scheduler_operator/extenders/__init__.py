"""SchedulerExtender: validation, its agents, attribution of errors, and status; pure.

May import: status and below. May be imported by: effective and above.
"""
