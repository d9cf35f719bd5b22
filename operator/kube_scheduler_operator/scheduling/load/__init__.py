"""Node load: load policies, averages, maxima and forecasts."""
