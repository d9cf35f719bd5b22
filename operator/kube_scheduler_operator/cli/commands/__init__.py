"""The commands for users and administrators, one module each."""
