"""OperatorSettings: validation, and the Pod settings that it requests; pure."""
