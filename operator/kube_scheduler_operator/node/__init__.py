"""What runs on control-plane nodes, and its protocol with the operator."""
