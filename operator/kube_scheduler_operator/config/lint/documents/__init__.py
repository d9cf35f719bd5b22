"""The documents of files: which of them configure a scheduler."""
