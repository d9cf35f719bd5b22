"""The merge of configurations: lists by name, the rest by field."""
