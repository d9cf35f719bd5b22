"""The operator against a simulated cluster: every interleaving can be had again from its seed."""
