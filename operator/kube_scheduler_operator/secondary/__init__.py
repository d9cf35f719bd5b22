"""SecondaryScheduler: composition, rollout as a Deployment, and status; pure.

May import: profiles, extenders, operatorsettings and below. May be imported by: diagnostics and
above.
"""
