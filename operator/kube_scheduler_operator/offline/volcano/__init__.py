"""Volcano's scheduler, whose configuration has a format of its own."""
