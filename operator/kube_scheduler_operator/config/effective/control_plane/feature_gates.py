"""The control plane's feature gates and their sources.

Each source wins over those before it, gate by gate: flags found at adoption, the cluster's
FeatureGate, the Scheduler's dynamicResourceAllocation, the KubeScheduler's own featureGates.
Overrides come later and replace the whole flag.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from ....base import names
from ....base.findings import Finding, did_you_mean, format_path, listing
from ....base.objects import entries, mapping
from ...language.command_line import parse
from ...language.feature_gates import FLAG, has_gate, known_gates, parse_gates
from .inputs import Inputs

FIELD: Final = "featureGates"

_DRA: Final = "DynamicResourceAllocation"
# kubernetes/pkg/features/kube_features.go: on by default from here on, and locked from there on.
_DRA_ON: Final = 34
_DRA_LOCKED: Final = 35
_DRA_PATH: Final = "spec.profileCustomizations.dynamicResourceAllocation"
NOT_FOUND: Final = "FeatureGatesNotFound"
"""The cluster has no FeatureGate for its version yet."""

_WISHES: Final = ("Enabled", "Disabled")

Chosen = tuple[dict[str, bool], list[Finding]]


@dataclass(frozen=True, slots=True)
class SchedulerFeatureGates:
    values: tuple[str, ...] = ()  # of the flag --feature-gates; empty if it is not needed
    own: frozenset[str] = frozenset()  # the gates among them from KubeScheduler's own field
    findings: tuple[Finding, ...] = ()


def choose(inputs: Inputs, observed: Sequence[str]) -> SchedulerFeatureGates:
    """Choose the scheduler's feature gates; `observed` has the flag's values found at adoption."""
    of_cluster, findings = _of_cluster(inputs)
    wished, dra_findings = _dynamic_resources(inputs)
    own, own_findings = _own(inputs)
    findings += [*dra_findings, *own_findings]
    adopted = tuple(_understood(inputs, observed))
    named = {**of_cluster, **wished, **own}
    values = adopted
    with suppress(ValueError):  # validation of the flags reports the error
        gates = {**parse_gates(adopted), **named}
        text = ",".join(f"{name}={str(value).lower()}" for name, value in sorted(gates.items()))
        values = (text,) if named else adopted
    return SchedulerFeatureGates(values, frozenset(own), tuple(findings))


def _understood(inputs: Inputs, values: Sequence[str]) -> list[str]:
    """Return the adopted gates that this version still has.

    The others were valid when they were observed; an upgrade of the operand is not an error.
    """
    version = inputs.facts.version
    if not inputs.facts.is_stock or known_gates(version.minor) is None:
        return list(values)
    gates = [entry for value in values for entry in value.split(",")]
    kept = [entry for entry in gates if has_gate(version, _name(entry)) is not False]
    return [",".join(kept)] if kept else []


def _name(entry: str) -> str:
    return entry.partition("=")[0].rpartition(":")[2].strip()


# --- the cluster's FeatureGate ----------------------------------------------------------------


def _of_cluster(inputs: Inputs) -> Chosen:
    """Return the gates of the payload's version, as far as the operand knows them."""
    if not inputs.platform.cluster_config:
        return {}, []
    gates, findings = _of_payload(inputs)
    known = known_gates(inputs.facts.version.minor)
    if known is None:
        if gates:
            findings.append(_not_recorded(inputs, gates))
        return {}, findings
    # FeatureGate has gates of all components, and kube-scheduler exits at an unknown gate.
    usable = {
        name: value
        for name, value in gates.items()
        if name in known and known[name] in (None, value)
    }
    return usable, findings


def _of_payload(inputs: Inputs) -> Chosen:
    """Return all gates of the payload's version; the current ones if FeatureGate lacks it."""
    version = inputs.facts.payload_version
    releases = [
        mapping(entry)
        for entry in entries(mapping(mapping(inputs.objects.feature_gate).get("status")).get(FIELD))
    ]
    matching = [entry for entry in releases if version and entry.get("version") == version]
    if not matching and len(releases) == 1:
        matching = releases
    if matching:
        gates = dict.fromkeys(_gate_names(matching[0].get("enabled")), True)
        return gates | dict.fromkeys(_gate_names(matching[0].get("disabled")), False), []
    if inputs.objects.feature_gate is None:
        path, message = "FeatureGate/cluster", "it does not exist"
    else:
        path = f"FeatureGate/cluster status.{FIELD}"
        existing = listing(str(entry.get("version")) for entry in releases)
        only = f", only for {existing}" if existing else ""
        message = f"it has no entry for version {version or '(unset)'}{only}"
    finding = Finding(
        names.CONFIG_OBSERVATION_DEGRADED,
        NOT_FOUND,
        path,
        f"{message}; the scheduler keeps its current feature gates",
        blocking=False,
    )
    previous = parse(inputs.facts.control_plane.previous_arguments)
    try:
        return parse_gates(previous.get(FLAG, ())), [finding]
    except ValueError:
        return {}, [finding]


def _gate_names(value: Any) -> list[str]:
    names_of_items = [mapping(item).get("name") for item in entries(value)]
    return [name for name in names_of_items if isinstance(name, str) and name]


def _not_recorded(inputs: Inputs, gates: Mapping[str, bool]) -> Finding:
    version = inputs.facts.version.short
    message = (
        f"none of its {len(gates)} gates is used, because the operator has no list of the gates of "
        f"kube-scheduler {version}; set the gates that it needs in "
        "spec.unsupportedConfigOverrides.arguments.feature-gates of the KubeScheduler"
    )
    return ineffective("FeatureGatesNotRecorded", f"FeatureGate/cluster status.{FIELD}", message)


# --- the Scheduler's wish ---------------------------------------------------------------------


def _dynamic_resources(inputs: Inputs) -> Chosen:
    """Return the gates for `dynamicResourceAllocation` on versions where they are not default."""
    customizations = mapping(inputs.scheduler.get("profileCustomizations"))
    wish = customizations.get("dynamicResourceAllocation")
    if not wish:
        return {}, []
    if wish not in _WISHES:
        hint = did_you_mean(str(wish), _WISHES)
        message = f'"{wish}" is not known; use {listing(_WISHES)}, or remove the field{hint}'
        return {}, [_mistake("UnknownCustomization", _DRA_PATH, message)]
    version = inputs.facts.version
    if wish == "Enabled" and version.minor >= _DRA_ON:
        message = f"this has no effect: since 1.{_DRA_ON} it is enabled by default; remove it"
        return {}, [ineffective("EnabledByDefault", _DRA_PATH, message)]
    if wish == "Disabled" and version.minor >= _DRA_LOCKED:
        message = f"kube-scheduler {version.short} cannot disable it any more; remove it"
        return {}, [ineffective("CannotBeDisabled", _DRA_PATH, message)]
    return {_DRA: wish == "Enabled"}, []


# --- the KubeScheduler's own field ------------------------------------------------------------


def _own(inputs: Inputs) -> Chosen:
    """Return the gates in `spec.featureGates`; validation of the flags checks their names."""
    value = inputs.spec.get(FIELD)
    if value is None or inputs.platform.cluster_config:
        return {}, []
    if not isinstance(value, Mapping):
        message = "this must be a map from feature gates to true or false"
        return {}, [_mistake("Malformed", f"spec.{FIELD}", message)]
    findings = [
        _mistake("Malformed", own_path(str(name)), f'"{item}" is neither true nor false')
        for name, item in value.items()
        if not isinstance(item, bool)
    ]
    return {str(name): item for name, item in value.items() if isinstance(item, bool)}, findings


def own_path(gate: str) -> str:
    return format_path(("spec", FIELD, gate))


def _mistake(reason: str, path: str, message: str) -> Finding:
    return Finding(names.TARGET_CONFIG_DEGRADED, reason, path, message, blocking=True)


def ineffective(reason: str, path: str, message: str) -> Finding:
    return Finding(names.INEFFECTIVE_SETTINGS, reason, path, message, blocking=False)
