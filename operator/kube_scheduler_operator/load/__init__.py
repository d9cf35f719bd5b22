"""The load of nodes as values: load policies, averages, maxima and forecasts."""
