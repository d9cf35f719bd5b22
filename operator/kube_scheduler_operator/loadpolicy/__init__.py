"""Load policies: who measures load, who writes it down, and what is said of it; pure."""
