"""Names, platforms, settings and small utilities; every other package may import them."""
