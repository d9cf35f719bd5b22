"""OperatorSettings: validation, and status; pure.

May import: status and below. May be imported by: effective and above.
"""
