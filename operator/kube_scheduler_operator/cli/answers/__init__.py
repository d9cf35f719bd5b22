"""The typed answers of commands, from which text, JSON and the console's pages are made."""
