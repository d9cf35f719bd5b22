"""Where kubeadm's ClusterConfiguration and the operator disagree about the scheduler.

The operator never changes it: kubeadm reads it at the next `kubeadm upgrade`, `join` or
`init phase`, and the owner decides what it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import yaml

from ...base.images import repository
from ...base.objects import mapping
from ...base.platform import KUBEADM
from ...config.effective.control_plane.observe import is_users_flag
from ...config.effective.control_plane.overrides import ARGUMENTS, read_overrides
from ...config.language.command_line import LOG_LEVEL, normalized_name
from ...config.language.versions import Version
from ...kube.resource import CONFIG_MAPS

REF: Final = CONFIG_MAPS.named("kubeadm-config", "kube-system")
OWNER: Final = "ConfigMap kube-system/kubeadm-config"
_KEY: Final = "ClusterConfiguration"
_FIELD: Final = "spec.unsupportedConfigOverrides.arguments of KubeScheduler"


def disagreements(
    config_map: Mapping[str, Any] | None,
    kubescheduler: Mapping[str, Any] | None,
    images: Collection[str],
) -> Iterator[str]:
    """Yield one sentence for each difference.

    `config_map` is kubeadm's, None without one; `images` are those of the control plane.
    """
    text = mapping(mapping(config_map).get("data")).get(_KEY)
    try:
        configuration = mapping(yaml.safe_load(text)) if isinstance(text, str) else {}
    except yaml.YAMLError:
        yield f"{_KEY} is not YAML; kubeadm cannot read it"
        return
    if not configuration:
        return
    yield from _versions(configuration, images)
    yield from _flags(mapping(configuration.get("scheduler")), mapping(kubescheduler))


def _versions(configuration: Mapping[str, Any], images: Collection[str]) -> Iterator[str]:
    own = str(configuration.get("kubernetesVersion") or "")
    with suppress(ValueError):
        version = Version.parse(own)
        others = sorted({image for image in images if _version(image) not in (None, version)})
        if others:
            yield (
                f"kubernetesVersion is {own}, and schedulers run {', '.join(others)}: finish "
                "`kubeadm upgrade` on all control-plane nodes"
            )
    registry = str(configuration.get("imageRepository") or "")
    elsewhere = sorted(
        {image for image in images if registry and repository(image).rpartition("/")[0] != registry}
    )
    if elsewhere:
        yield (
            f"imageRepository is {registry}, and schedulers run {', '.join(elsewhere)}: an upgrade "
            "to another repository is not followed; set OPERAND_IMAGE of the operator's Deployment"
        )


def _version(image: str) -> Version | None:
    with suppress(ValueError):
        return Version.of_image(image)
    return None


def _flags(section: Mapping[str, Any], kubescheduler: Mapping[str, Any]) -> Iterator[str]:
    spec = mapping(kubescheduler.get("spec"))
    observed = mapping(mapping(spec.get("observedConfig")).get(ARGUMENTS))
    overrides = read_overrides(spec.get("unsupportedConfigOverrides"), KUBEADM)
    overridden = {**overrides.serving, **overrides.arguments}
    adopted = {str(name): list(values) for name, values in observed.items()}
    effective = {
        **{name: [value] for name, value in KUBEADM.default_arguments},
        **adopted,
        **{name: list(values) for name, values in overridden.items()},
    }
    listed = dict(_extra_arguments(section.get("extraArgs")))
    for name, values in sorted(listed.items()):
        used = effective.get(name)
        if values == used or (name == LOG_LEVEL and not used):
            continue  # spec.logLevel of KubeScheduler decides
        other = (
            f"and the operator uses {_shown(name, used)}: set it in {_FIELD}, or correct extraArgs"
            if used
            else f"which the operator does not use: set it in {_FIELD}, or remove it from extraArgs"
        )
        yield f"scheduler.extraArgs sets {_shown(name, values)}, {other}"
    for name in sorted(adopted.keys() - listed.keys() - overridden.keys()):
        yield (
            f"scheduler.extraArgs does not set {_shown(name, adopted[name])}, which the operator "
            "adopted from a node's manifest: add it, or a node that joins begins without it"
        )


def _extra_arguments(value: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield the flags of a user: from a list in v1beta4, from a mapping before it."""
    entries = (
        [(flag.get("name"), flag.get("value")) for flag in value if isinstance(flag, Mapping)]
        if isinstance(value, list)
        else list(mapping(value).items())
    )
    values_of: dict[str, list[str]] = {}
    for name, text in entries:
        flag = normalized_name(str(name))
        if is_users_flag(flag) or flag == LOG_LEVEL:
            values_of.setdefault(flag, []).append(str(text))
    yield from values_of.items()


def _shown(name: str, values: Any) -> str:
    return " ".join(f"--{name}={value}" for value in values or ())
