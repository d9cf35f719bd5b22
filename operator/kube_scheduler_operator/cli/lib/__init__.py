"""Code that commands share, by topic."""
