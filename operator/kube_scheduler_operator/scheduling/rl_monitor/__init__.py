"""rl-monitor: observes pods and learns rewards of nodes."""
