"""Programs that install, guard and restore the static Pod of a scheduler; standard library only."""
