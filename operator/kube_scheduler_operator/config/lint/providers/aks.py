"""AKS: a SchedulerConfiguration (preview) with a KubeSchedulerConfiguration inside.

Source: Microsoft's articles, which operator/profiles/aks.py names, with the fields, plugins and
names; they also name Kubernetes 1.33 as the oldest version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ....base.findings import Path
from ....base.source.yaml_text import BlockText, yaml_text
from ...effective.profiles.aks_support import FIELDS, NAME, PLUGINS, RESERVED_PROFILE
from ...language.versions import Version
from .desired import Desired, scheduler_name
from .provider_format import ProviderFile, ProviderFinding, ProviderFormat, ProviderOutput
from .unsupported import (
    SECONDARY,
    unsupported_agents,
    unsupported_extenders,
    unsupported_flags,
    unsupported_settings,
)

_AKS: Final = "AKS"
OLDEST: Final = Version(1, 33)


def write(desired: Desired, _: Version | None) -> ProviderOutput:
    """Write the SchedulerConfiguration "upstream"."""
    raw = {key: desired.config[key] for key in FIELDS if key in desired.config}
    raw = desired.document({**raw, "profiles": list(desired.profiles)})
    document: dict[str, Any] = {
        "apiVersion": "aks.azure.com/v1alpha1",
        "kind": "SchedulerConfiguration",
        "metadata": {"name": NAME},
        "spec": {"rawConfig": BlockText(yaml_text([raw]))},
    }
    file = ProviderFile(
        "scheduler-configuration.yaml",
        "after `az aks update --enable-upstream-kubescheduler-user-configuration`: "
        "kubectl apply -f FILE",
        document,
    )
    return ProviderOutput((file,), tuple(_findings(desired)))


def _findings(desired: Desired) -> Iterator[ProviderFinding]:
    if desired.gates.version < OLDEST:
        yield ProviderFinding(
            "VersionNotSupported",
            "",
            f"AKS supports scheduler profiles from Kubernetes {OLDEST.short} on, not in "
            f"{desired.gates.version.short}",
            "upgrade the cluster",
        )
    for index, profile in enumerate(desired.profiles):
        if scheduler_name(profile) == RESERVED_PROFILE:
            yield ProviderFinding(
                "ReservedProfile",
                desired.profile(index, "schedulerName"),
                f'AKS reserves the profile "{RESERVED_PROFILE}"',
                "use another name",
            )
        yield from _plugins(desired, index)
    yield from unsupported_settings(desired, _AKS, FIELDS)
    yield from unsupported_agents(desired)
    yield from unsupported_extenders(desired, _AKS)
    yield from unsupported_flags(desired, _AKS)


def _plugins(desired: Desired, index: int) -> Iterator[ProviderFinding]:
    profile = desired.profiles[index]
    for point, lists in (profile.get("plugins") or {}).items():
        for key in ("enabled", "disabled"):
            for at, entry in enumerate(lists.get(key) or ()):
                path: Path = ("plugins", point, key, at, "name")
                yield from _plugin(desired, index, str(entry.get("name")), path)
    for at, entry in enumerate(profile.get("pluginConfig") or ()):
        path = ("pluginConfig", at, "name")
        yield from _plugin(desired, index, str(entry.get("name")), path)


def _plugin(desired: Desired, index: int, name: str, path: Path) -> Iterator[ProviderFinding]:
    if name not in PLUGINS and name != "*":
        yield ProviderFinding(
            "PluginNotSupported",
            desired.profile(index, *path),
            f"{name} is not one of the {len(PLUGINS)} plugins that AKS documents as configurable",
            f"remove it, or {SECONDARY}",
        )


AKS: Final = ProviderFormat(
    "aks",
    "MicrosoftDocs/azure-aks-docs at fb060ab, articles/aks/configure-aks-scheduler.md",
    write,
)
