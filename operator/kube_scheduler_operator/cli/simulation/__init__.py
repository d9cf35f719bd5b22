"""Simulations that commands start, and the answers of extenders beside them."""
