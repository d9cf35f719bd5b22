"""What measures and scores nodes: load, policies, and the programs that use them."""
