"""SecondaryScheduler: composition, rollout as a Deployment, and status; pure.

May import: effective and below. May be imported by: diagnostics and above.
"""
