"""The scheduler that a provider should run, and the fields of objects that define it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ....base.findings import Path, format_path
from ....base.objects import mapping
from ...effective.control_plane.compose import Composition, compose
from ...effective.control_plane.inputs import Inputs
from ...effective.control_plane.overrides import ARGUMENTS, SERVING_FLAGS, SERVING_INFO
from ...effective.extenders.validate import ExtenderResult
from ...effective.facts import Facts
from ...effective.objects import Objects
from ...language.command_line import BIND_ADDRESS, Flags, normalized_name, parse
from ...language.feature_gates import FLAG as FEATURE_GATES
from ...language.feature_gates import Gates, parse_gates
from ...language.flags import VOID_WITH_CONFIG
from ...language.merging.merge import override_path
from ...language.schema import API_VERSION, DEFAULT_SCHEDULER, KIND

_KUBE_SCHEDULER: Final = "KubeScheduler/cluster"
_OVERRIDES: Final[Path] = ("spec", "unsupportedConfigOverrides")
_NOT_SETTINGS: Final = ("apiVersion", "kind", "profiles", "extenders")
_TLS_FILES: Final = ("caFile", "certFile", "keyFile")
_FLAG_FIELDS: Final = {
    FEATURE_GATES: "featureGates",
    BIND_ADDRESS: "bindAddress",
    "tls-cipher-suites": "tlsSecurityProfile",
    "tls-min-version": "tlsSecurityProfile",
    "v": "logLevel",
}
"""Flag -> the field of a KubeScheduler's spec that sets it."""
_SERVING_FIELDS: Final = {flag: key for key, flag in SERVING_FLAGS.items()}


@dataclass(frozen=True, slots=True)
class Desired:
    """A composed configuration that is valid for `gates.version`."""

    config: Mapping[str, Any]  # the effective KubeSchedulerConfiguration on a kubeadm cluster
    settings: Mapping[str, Any]  # its fields that users set, without profiles and extenders
    flags: Flags  # that users set, without those that a kube-scheduler with --config ignores
    gates: Gates
    extenders: tuple[ExtenderResult, ...] = ()  # in the order of `config.extenders`
    profile_objects: frozenset[str] = frozenset()  # the names of its SchedulerProfiles
    spec: Mapping[str, Any] = field(default_factory=dict)  # of the KubeScheduler

    @property
    def overrides(self) -> Mapping[str, Any]:
        return mapping(self.spec.get("unsupportedConfigOverrides"))

    @property
    def profiles(self) -> Sequence[Mapping[str, Any]]:
        """Its profiles; a kube-scheduler without profiles has that of default-scheduler."""
        profiles: Sequence[Mapping[str, Any]] = self.config.get("profiles") or [
            {"schedulerName": DEFAULT_SCHEDULER}
        ]
        return profiles

    def document(self, keys: Mapping[str, Any]) -> dict[str, Any]:
        return {"apiVersion": API_VERSION, "kind": KIND, **keys}

    def with_kubeconfig(self, path: str) -> dict[str, Any]:
        """Return the whole configuration for a kube-scheduler whose kubeconfig is at `path`.

        A kube-scheduler with `--config` ignores `--kubeconfig` (cmd/kube-scheduler/app/options,
        Kubernetes 1.36), so the file must have it.
        """
        connection = {**mapping(self.config.get("clientConnection")), "kubeconfig": path}
        return {**self.config, "clientConnection": connection}

    def setting(self, *path: str | int) -> str:
        """Return the field that sets a field of `config`."""
        overridden = override_path(path, self.config, self.overrides)
        return f"{_KUBE_SCHEDULER} {format_path((*_OVERRIDES, *(overridden or path)))}"

    def flag(self, name: str) -> str:
        """Return the field that sets a flag; the last one that sets it wins."""
        serving = _SERVING_FIELDS.get(name, "")
        if name in map(normalized_name, mapping(self.overrides.get(ARGUMENTS))):
            path: Path = (*_OVERRIDES, ARGUMENTS, name)
        elif serving in mapping(self.overrides.get(SERVING_INFO)):
            path = (*_OVERRIDES, SERVING_INFO, serving)
        elif self.spec.get(_FLAG_FIELDS.get(name, "")):
            path = ("spec", _FLAG_FIELDS[name])
        else:  # found at adoption
            path = ("spec", "observedConfig", ARGUMENTS, name)
        return f"{_KUBE_SCHEDULER} {format_path(path)}"

    def profile(self, index: int, *path: str | int) -> str:
        """Return the field that sets a field of a profile."""
        name = scheduler_name(self.profiles[index])
        if name in self.profile_objects:
            return f"SchedulerProfile/{name} {format_path(('spec', *path))}"
        whole: Path = ("profiles", index, *path)
        if override_path(whole, self.config, self.overrides) is not None:
            return self.setting(*whole)
        return "Scheduler/cluster spec.profile"

    def extender(self, index: int) -> str:
        """Return the object that sets an entry of `extenders`."""
        if index < len(self.extenders):
            return f"SchedulerExtender/{self.extenders[index].name} spec"
        return self.setting("extenders", index)


def read_desired(composition: Composition) -> Desired:
    """Return what users set beyond the platform's defaults; `composition` must be valid."""
    config, facts = mapping(composition.config), composition.inputs.facts
    plain = Facts(facts.platform, facts.version, planned=True)
    defaults = compose(Inputs(Objects(scheduler={"spec": {}}), plain))
    flags = parse(composition.arguments)
    usual = parse(defaults.arguments)
    own = {
        name: values
        for name, values in flags.items()
        if usual.get(name) != values and name not in VOID_WITH_CONFIG
    }
    results = (*composition.extenders, *composition.leaving)
    called = [extender for extender in results if extender.entry is not None]
    explicit = parse_gates(flags.get(FEATURE_GATES, ()))
    return Desired(
        config,
        _beyond(config, mapping(defaults.config)),
        own,
        Gates(facts.version, explicit),
        tuple(sorted(called, key=lambda extender: extender.name)),
        frozenset(profile.name for profile in composition.results),
        composition.inputs.spec,
    )


def named_files(desired: Desired) -> tuple[str, ...]:
    """Return the node's files that configuration and flags name, without the kubeconfig."""
    files = [
        str(path)
        for extender in desired.config.get("extenders") or ()
        for key, path in mapping(extender.get("tlsConfig")).items()
        if key in _TLS_FILES and path
    ]
    for name, values in desired.flags.items():
        if name.endswith("-file"):
            files += values
    return tuple(dict.fromkeys(path for path in files if path.startswith("/")))


def without_agents(desired: Desired) -> Desired:
    """Remove the entries of agents, which only the operator starts."""
    kept = [index for index, extender in enumerate(desired.extenders) if extender.agent is None]
    entries = desired.config.get("extenders") or []
    extenders = [entries[index] for index in kept] + list(entries[len(desired.extenders) :])
    config = {key: value for key, value in desired.config.items() if key != "extenders"}
    if extenders:
        config["extenders"] = extenders
    return replace(
        desired, config=config, extenders=tuple(desired.extenders[index] for index in kept)
    )


def scheduler_name(profile: Mapping[str, Any]) -> str:
    return str(profile.get("schedulerName") or DEFAULT_SCHEDULER)


def _beyond(config: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that differ from the defaults; compare objects field by field."""
    settings: dict[str, Any] = {}
    for key, value in config.items():
        usual = defaults.get(key)
        if key in _NOT_SETTINGS or value == usual:
            continue
        both = isinstance(value, Mapping) and isinstance(usual, Mapping)
        settings[key] = _beyond(value, mapping(usual)) if both else value
    return settings
