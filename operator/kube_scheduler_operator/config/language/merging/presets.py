"""The named profiles and the default configuration of bindata/."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import yaml

from ....base import assets
from ....base.objects import entries, mapping
from ....base.platform import Platform
from ..schema import DEFAULT_SCHEDULER
from .merge import normalized_json

DEFAULT_PROFILE: Final = "LowNodeUtilization"
PROFILES: Final = (DEFAULT_PROFILE, "HighNodeUtilization", "NoScoring")
"""OpenShift's, which `spec.profile` of the Scheduler selects."""
BIN_PACKING: Final = "BinPacking"
PRESETS: Final = (*PROFILES, BIN_PACKING)
"""All named profiles: what a SchedulerProfile may have as its base."""


def profile_fragment(name: str) -> dict[str, Any]:
    """Return the configuration of a named profile; the empty name means the default one.

    Raises:
        KeyError: the profile does not exist.
    """
    name = name or DEFAULT_PROFILE
    if name not in PRESETS:
        raise KeyError(name)
    return _copy(_load(f"profiles/{name}.yaml"))


def changes_of_default_profile(kubescheduler: Mapping[str, Any]) -> str:
    """Name the fields of a KubeScheduler's spec with a profile of default-scheduler.

    The observed one was adopted, or belongs to a SchedulerProfile.
    """
    fields = " and ".join(
        f"spec.{field}.profiles"
        for field in ("observedConfig", "unsupportedConfigOverrides")
        if any(
            (mapping(profile).get("schedulerName") or DEFAULT_SCHEDULER) == DEFAULT_SCHEDULER
            for profile in entries(mapping(kubescheduler.get(field)).get("profiles"))
        )
    )
    return f"{fields} of KubeScheduler" if fields else ""


def default_config(platform: Platform) -> dict[str, Any]:
    """Return the configuration that is merged over every profile, with the platform's values."""
    lease = platform.operand_lease
    values = {
        "KUBECONFIG": platform.scheduler_kubeconfig,
        "LEASE_DURATION": lease.lease_duration,
        "RENEW_DEADLINE": lease.renew_deadline,
        "RETRY_PERIOD": lease.retry_period,
        "LEASE_NAME": platform.operand_lease_name,
        "LEASE_NAMESPACE": platform.operand_lease_namespace,
    }

    def filled(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: filled(item) for key, item in value.items()}
        return values.get(value, value) if isinstance(value, str) else value

    return _copy(filled(_load("config/default-config.yaml")))


@cache
def _load(path: str) -> Any:
    return yaml.safe_load(assets.text("bindata", path))


def _copy(value: Any) -> dict[str, Any]:
    copied: dict[str, Any] = normalized_json(value)
    return copied
