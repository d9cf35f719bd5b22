"""Warnings about credentials in the arguments of plugins, which have no other place for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....base.findings import Path, Problem, warning_problem
from ....base.objects import entries, mapping
from .extenders import KEY_IN_LOG

_NAMES: Final = frozenset({"token", "bearertoken", "accesstoken", "apikey", "password", "secret"})
"""Names of fields in lower case, such as `metricProvider.token` of Trimaran's plugins."""


def credential_warnings(profile: Mapping[str, Any]) -> Iterator[Problem]:
    """Warn about each credential in the arguments of a profile's plugins."""
    for index, entry in enumerate(entries(profile.get("pluginConfig"))):
        for path in _credentials(mapping(entry).get("args"), ("pluginConfig", index, "args")):
            yield warning_problem(
                KEY_IN_LOG,
                path,
                "kube-scheduler writes its configuration into its log at -v=2 and higher, with "
                "this credential, which is also read by those who may read this object",
                "use a source that needs none, or one with few rights that expires soon, and keep "
                "it out of Git",
            )


def _credentials(value: Any, path: Path) -> Iterator[Path]:
    """Yield the paths of credentials; a variable that something replaces before is none."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _credentials(item, (*path, index))
    for key, item in mapping(value).items():
        is_text = isinstance(item, str) and item and not item.startswith("$")
        if is_text and str(key).lower() in _NAMES:
            yield (*path, key)
        else:
            yield from _credentials(item, (*path, key))
