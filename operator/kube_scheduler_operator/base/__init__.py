"""Names, platform, settings and small values that everything else is made of."""
