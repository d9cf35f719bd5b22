"""What the scheduler's configuration should be: from API objects to a checked file and flags."""
