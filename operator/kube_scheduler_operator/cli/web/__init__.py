"""The pages of `console`: a server on loopback, made from the typed answers of commands."""
