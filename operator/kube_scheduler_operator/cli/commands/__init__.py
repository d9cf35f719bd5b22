"""The commands for people, one module each."""
