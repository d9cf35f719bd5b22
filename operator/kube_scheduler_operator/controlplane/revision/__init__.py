"""Content becomes numbered, complete, immutable revisions."""
