"""Names, platforms, settings and small utilities; every other package may import them.

May import: nothing of the others. May be imported by: kube, nodeprotocol, schedulerconfig and
above.
"""
