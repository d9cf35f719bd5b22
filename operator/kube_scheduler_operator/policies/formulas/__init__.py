"""The policies' formulas: pure functions over arrays, each with its source."""
