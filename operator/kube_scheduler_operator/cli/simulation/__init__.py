"""Simulations that commands start, where they run, and the answers of extenders beside them."""
