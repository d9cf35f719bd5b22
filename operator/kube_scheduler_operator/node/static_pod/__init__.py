"""Programs that own the static Pod of a scheduler and its files; standard library only."""
