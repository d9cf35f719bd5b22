"""Old scheduler configurations to KubeSchedulerConfiguration v1, with every change told.

`convert.py` is the way in. What an old version enabled by itself is a table (`defaults.py`), what a
document wrote into its plugin lists is expanded with it to what really ran (`plugin_lists.py`), and
the lists of the result are written so that the same runs in the version that will read them.
"""
