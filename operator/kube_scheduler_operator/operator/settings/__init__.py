"""OperatorSettings: its status; pure."""
