"""AKS: a SchedulerConfiguration (preview) with a KubeSchedulerConfiguration inside.

Source: Microsoft's articles, which operator/profiles/aks.py names, with the fields, plugins and
names; they also name Kubernetes 1.33 as the oldest version.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ....base.source.yaml_text import BlockText, yaml_text
from ...effective.profiles.aks_support import FIELDS, NAME, RESERVED_PROFILE, unsupported_plugins
from ...language.versions import Version
from .desired import Desired, scheduler_name
from .provider_format import ProviderFile, ProviderFinding, ProviderOutput
from .unsupported import SECONDARY, unsupported

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
        for path, _, wrong in unsupported_plugins(profile):
            yield ProviderFinding(
                "PluginNotSupported",
                desired.profile(index, *path),
                wrong,
                f"remove it, or {SECONDARY}",
            )
    yield from unsupported(desired, "AKS", fields=FIELDS)
