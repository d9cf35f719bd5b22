"""Node load: load policies, averages, maxima and forecasts.

May import: kube, nodeprotocol, schedulerconfig and below. May be imported by: policies and above.
"""
