"""What providers of clusters and autoscalers support of a scheduler; `table.py` lists them.

A format is a pure function from the desired scheduler to files, and to what the provider cannot
express.
"""
