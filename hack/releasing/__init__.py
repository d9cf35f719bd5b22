"""`make release`: everything that a release consists of, in dist/, from one commit.

The same commit gives the same bytes: all times are the commit's, and tar files are sorted. What has
to be downloaded is kept in the cache and pinned by hash, so a second build needs no network.
"""
