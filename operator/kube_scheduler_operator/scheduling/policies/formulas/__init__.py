"""The formulas of policies: pure functions over arrays, each with its source."""
