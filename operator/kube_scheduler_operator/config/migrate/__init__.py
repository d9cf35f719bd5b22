"""Conversion of old scheduler configurations to KubeSchedulerConfiguration v1, with all changes.

The entry point is `convert.py`. The old version's defaults (`old_defaults.py`) and the document's
plugin lists determine which plugins ran (`old_profile.py`); `plugin_lists.py` writes lists with
which the target version runs the same plugins.
"""
