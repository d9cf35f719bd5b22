"""Moving nodes to the wanted revision, one at a time, and judging how it went."""
