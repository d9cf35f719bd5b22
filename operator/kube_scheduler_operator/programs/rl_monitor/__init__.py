"""Learning from how pods fare: rl-monitor, which watches and rates them."""
