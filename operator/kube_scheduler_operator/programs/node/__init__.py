"""Programs that run on a control-plane node; standard library only."""
