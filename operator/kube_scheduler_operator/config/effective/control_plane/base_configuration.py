"""The control plane's configuration before SchedulerExtenders and SchedulerProfiles.

All profiles and extenders share it, so each of them is validated against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final

from ....base import names
from ....base.findings import Finding, Path, Problem, did_you_mean, format_path, listing
from ....base.klog import LEVELS
from ....base.limits import REASON_LENGTH
from ....base.management import ANNOTATION_PATH, MANAGED, annotated_state
from ....base.management import STATES as MANAGEMENT_STATES
from ....base.objects import mapping
from ....base.spec_limits import TOO_LARGE
from ...language.command_line import BIND_ADDRESS, LOG_LEVEL, LOG_LEVELS, Flags, compose_arguments
from ...language.feature_gates import FLAG as FEATURE_GATES
from ...language.feature_gates import Gates, parse_gates
from ...language.flags import UNKNOWN_ARGUMENT, flag_names, validate_flags, void_flags
from ...language.merging.presets import PRESETS, PROFILES, default_config, profile_fragment
from ...language.schema import DEFAULT_SCHEDULER
from ...language.validation.configuration import Target
from ...language.warnings.unsafe_flags import unsafe_flags
from .feature_gates import SchedulerFeatureGates, choose, ineffective, own_path
from .inputs import Inputs
from .observe import observe, tls_source
from .overrides import (
    ARGUMENTS,
    ROOT,
    SERVING_FLAGS,
    SERVING_INFO,
    Overrides,
    read_flags,
    read_overrides,
    read_serving,
)

NO_SCHEDULER: Final = "SchedulerNotFound"

# (field, known values, the meaning of others); the same meanings as for OpenShift's operator
_ENUMERATIONS: Final = (
    ("managementState", MANAGEMENT_STATES, MANAGED),
    ("operatorLogLevel", tuple(LEVELS), "Normal"),
)

_ROLE: Final = "node-role.kubernetes.io/control-plane"
_TAINT: Final = f"{_ROLE}:NoSchedule"
_SERVING_FIELDS: Final = {flag: key for key, flag in SERVING_FLAGS.items()}
_CUSTOM_FIELDS: Final = {"tls-cipher-suites": "ciphers", "tls-min-version": "minTLSVersion"}


@dataclass(frozen=True, slots=True)
class Base:
    # the fragment of the named profile, then the default configuration; None if the Scheduler names
    # no known profile, or does not exist
    fragments: tuple[dict[str, Any], dict[str, Any]] | None
    observed: Mapping[str, Any]  # the observed configuration, without extenders and profiles
    overrides: Overrides
    flags: Flags
    target: Target
    findings: tuple[Finding, ...]  # so far


def base_configuration(inputs: Inputs) -> Base:
    """Combine what all profiles share: defaults, cluster settings, overrides and flags."""
    observed, findings = observe(inputs)
    overrides = read_overrides(inputs.spec.get("unsupportedConfigOverrides"), inputs.platform)
    fragments, profile_findings = _fragments(inputs)
    log_level, level_findings = _log_level(inputs.spec.get("logLevel"))
    reported = [*findings, *profile_findings, *level_findings, *overrides.findings]

    observed_flags = read_flags(observed.get(ARGUMENTS))[0]
    if SERVING_INFO in observed:
        # A TLS profile is complete; flags found at adoption do not supplement it.
        observed_flags = {
            name: values
            for name, values in observed_flags.items()
            if name not in SERVING_FLAGS.values()
        }
    if inputs.spec.get("logLevel") not in (None, "", "Normal"):
        observed_flags.pop(LOG_LEVEL, None)  # the API server sets Normal where users set nothing
    features = choose(inputs, observed_flags.pop(FEATURE_GATES, ()))
    reported += [*features.findings, *_ineffective_settings(inputs), *_infrastructure(inputs)]
    reported += [*_other_settings(inputs.spec), *_annotated_state(inputs)]
    if features.values:
        observed_flags[FEATURE_GATES] = list(features.values)
    flags = compose_arguments(
        inputs.platform,
        log_level=log_level,
        observed=observed_flags,
        bind_address=_bind_address(inputs),
        serving={
            **_serving_certificate(inputs),
            **read_serving(observed.get(SERVING_INFO))[0],
            **overrides.serving,
        },
        overrides=overrides.arguments,
    )
    reported += _check_flags(flags, overrides, features, inputs)
    target = _target(flags, inputs)
    return Base(fragments, observed, overrides, flags, target, tuple(reported))


def _bind_address(inputs: Inputs) -> str:
    """Return spec.bindAddress; empty for the platform's default or the adopted address."""
    return str(inputs.spec.get("bindAddress") or "")


def _serving_certificate(inputs: Inputs) -> dict[str, list[str]]:
    """Return flags for the cluster's certificate; without one, the scheduler creates its own."""
    kept = inputs.platform.credentials
    if kept is None or not inputs.facts.control_plane.serving_certificate:
        return {}
    directory = f"{kept.mounted}/secrets/{kept.serving_certificate}"
    return {
        "tls-cert-file": [f"{directory}/tls.crt"],
        "tls-private-key-file": [f"{directory}/tls.key"],
    }


def _fragments(
    inputs: Inputs,
) -> tuple[tuple[dict[str, Any], dict[str, Any]] | None, list[Finding]]:
    """Return ((profile fragment, default configuration), findings); None: unknown profile."""
    if inputs.objects.scheduler is None:
        message = (
            f'Scheduler "{names.CLUSTER}" does not exist, so running schedulers keep their '
            "configuration; create it: kubectl apply -f - <<< '"
            '{"apiVersion":"config.openshift.io/v1","kind":"Scheduler",'
            f'"metadata":{{"name":"{names.CLUSTER}"}},"spec":{{}}}}\''
        )
        return None, [target_finding(NO_SCHEDULER, "", message, blocking=True)]
    spec = inputs.scheduler
    findings: list[Finding] = []
    policy = mapping(spec.get("policy")).get("name")
    if policy:
        message = (
            f'the Policy "{policy}" is not used, because Kubernetes 1.23 removed Policy; clear '
            "spec.policy of the Scheduler and use spec.profile or "
            "spec.unsupportedConfigOverrides of the KubeScheduler"
        )
        findings.append(
            target_finding("PolicyRemoved", "spec.policy.name", message, blocking=False)
        )
    profile = spec.get("profile") or ""
    if profile and profile not in PROFILES:
        hint = did_you_mean(str(profile), PROFILES)
        message = f'profile "{profile}" is not known; use {listing(PROFILES)}{hint}'
        if profile in PRESETS:
            message = (
                f'profile "{profile}" is a base of SchedulerProfiles only; create the '
                f'SchedulerProfile "{DEFAULT_SCHEDULER}" with spec.base: {profile}'
            )
        findings.append(target_finding("UnknownProfile", "spec.profile", message, blocking=True))
        return None, findings
    return (profile_fragment(profile), default_config(inputs.platform)), findings


def _log_level(value: Any) -> tuple[int, list[Finding]]:
    if not value:
        return LOG_LEVELS["Normal"], []
    if isinstance(value, str) and value in LOG_LEVELS:
        return LOG_LEVELS[value], []
    hint = did_you_mean(str(value), LOG_LEVELS)
    message = f'log level "{value}" is not known; use {listing(LOG_LEVELS)}{hint}'
    finding = target_finding("UnknownLogLevel", "spec.logLevel", message, blocking=True)
    return LOG_LEVELS["Normal"], [finding]


def _other_settings(spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Report errors in settings of the operator itself, which an older release's schema allows."""
    for name, known, used in _ENUMERATIONS:
        value = spec.get(name)
        if value and value not in known:
            hint = did_you_mean(str(value), known)
            message = f'"{value}" is not known; use {listing(known)}{hint} ({used} is in effect)'
            yield target_finding("UnknownValue", f"spec.{name}", message, blocking=False)
    for name in ("failedRevisionLimit", "succeededRevisionLimit"):
        value = spec.get(name)
        if value is not None and type(value) is not int:
            message = (
                "this is not a whole number; write one, or remove it (the default is in effect)"
            )
            yield target_finding("Malformed", f"spec.{name}", message, blocking=False)
    path, reason = "spec.forceRedeploymentReason", spec.get("forceRedeploymentReason") or ""
    if not isinstance(reason, str):
        yield target_finding("Malformed", path, "this must be text; quote it", blocking=True)
    elif len(reason) > REASON_LENGTH:
        message = f"this has {len(reason)} characters, and the limit is {REASON_LENGTH}; shorten it"
        yield target_finding(TOO_LARGE, path, message, blocking=True)


def _annotated_state(inputs: Inputs) -> Iterator[Finding]:
    value = annotated_state(inputs.objects.kubescheduler)
    if value and value not in MANAGEMENT_STATES:
        hint = did_you_mean(value, MANAGEMENT_STATES)
        message = (
            f'"{value}" is not known; use {listing(MANAGEMENT_STATES)}{hint} '
            "(spec.managementState is in effect)"
        )
        yield target_finding("UnknownValue", ANNOTATION_PATH, message, blocking=False)


def _infrastructure(inputs: Inputs) -> Iterator[Finding]:
    """Report that the API server's URL is unknown, as in a cluster that starts up."""
    if inputs.objects.infrastructure is None:
        return
    if not mapping(inputs.objects.infrastructure.get("status")).get("apiServerInternalURI"):
        path = "Infrastructure/cluster status.apiServerInternalURI"
        message = (
            "this is empty, so the scheduler's kubeconfig would have no server; it must be set"
        )
        yield target_finding("NoAPIServerURL", path, message, blocking=True)


def _ineffective_settings(inputs: Inputs) -> Iterator[Finding]:
    """Report settings without effect, and what to use instead; no finding blocks.

    OpenShift's Scheduler has fields that other operators implement. On other platforms, a finding
    names the setting that has the same effect.
    """
    spec = inputs.scheduler
    if inputs.platform.cluster_config:
        for key, instead in (
            ("tlsSecurityProfile", "spec.tlsSecurityProfile of APIServer"),
            ("featureGates", "FeatureGate"),
        ):
            if inputs.spec.get(key) is not None:
                message = f'on this platform, set {instead} "{names.CLUSTER}" instead'
                yield ineffective("SetElsewhere", f"spec.{key}", message)
        return
    schedulable = spec.get("mastersSchedulable")
    if not inputs.platform.owns_static_pods:
        if schedulable is not None:
            message = "the provider's control-plane nodes are not visible; remove it"
            yield ineffective("NoControlPlaneNodes", "spec.mastersSchedulable", message)
        if inputs.spec.get("bindAddress"):
            message = "the kubelet probes the Pod's own address on this platform; remove it"
            yield ineffective("NotSupported", "spec.bindAddress", message)
    elif schedulable is not None:
        change = f"{_TAINT}-" if schedulable else f"{_TAINT} --overwrite"
        message = (
            f"the taint {_TAINT} of the nodes decides; "
            f"{'remove' if schedulable else 'add'} it: kubectl taint nodes -l {_ROLE} {change}"
        )
        yield ineffective("DecidedByTaints", "spec.mastersSchedulable", message)
    if spec.get("defaultNodeSelector"):
        message = (
            "the admission plugin PodNodeSelector of kube-apiserver decides; enable it "
            "with --enable-admission-plugins=PodNodeSelector and put the selector into "
            "clusterDefaultNodeSelector of its configuration, or into the annotation "
            "scheduler.alpha.kubernetes.io/node-selector of namespaces"
        )
        yield ineffective("DecidedByAdmission", "spec.defaultNodeSelector", message)


def _check_flags(
    flags: Flags, overrides: Overrides, features: SchedulerFeatureGates, inputs: Inputs
) -> Iterator[Finding]:
    # OpenShift's kube-scheduler is a fork with flags and gates of its own, so its image decides.
    forked = inputs.platform.cluster_config
    stock = inputs.facts.is_stock and not forked
    problems = chain(
        validate_flags(flags, inputs.facts.version, stock=stock),
        unsafe_flags(flags, inputs.platform.scheduler_kubeconfig),
    )
    for problem in problems:
        name = str(problem.path[0])
        if name in overrides.arguments:
            yield override_finding(problem, (ARGUMENTS, name))
        elif name in overrides.serving:
            yield override_finding(problem, (SERVING_INFO, _SERVING_FIELDS[name]))
        else:
            condition, path = _origin(problem, features, inputs)
            yield Finding(condition, problem.reason, path, problem.sentence, blocking=True)
    if forked:
        yield from _unknown_flags(overrides.arguments, inputs)
    for problem in void_flags(overrides.arguments, format_path(ROOT)):
        path = format_path((*ROOT, ARGUMENTS, *problem.path))
        warnings = names.CONFIGURATION_WARNINGS
        yield Finding(warnings, problem.reason, path, problem.sentence, blocking=False)


def _unknown_flags(arguments: Flags, inputs: Inputs) -> Iterator[Finding]:
    """Warn about flags that only a fork may have: a misspelt one costs a refused revision."""
    known = flag_names(inputs.facts.version.minor)
    for name in arguments:
        if name in known:
            continue
        hint = did_you_mean(name, sorted(known))
        message = (
            f"Kubernetes' own kube-scheduler has no flag --{name}{hint}; the image of OpenShift "
            "decides, before any node changes: PreflightDegraded reports a refusal"
        )
        path = format_path((*ROOT, ARGUMENTS, name))
        yield Finding(names.CONFIGURATION_WARNINGS, UNKNOWN_ARGUMENT, path, message, blocking=False)


def _origin(problem: Problem, features: SchedulerFeatureGates, inputs: Inputs) -> tuple[str, str]:
    """Return (condition, path) of the setting that a flag comes from, unless it is an override."""
    name, *rest = map(str, problem.path)
    if name == FEATURE_GATES and rest and rest[0] in features.own:
        return names.TARGET_CONFIG_DEGRADED, own_path(rest[0])
    if name == BIND_ADDRESS and _bind_address(inputs):
        return names.TARGET_CONFIG_DEGRADED, "spec.bindAddress"
    source = tls_source(inputs) if name in _SERVING_FIELDS else None
    if source is not None:
        # Only what users wrote can be invalid: the profile of type Custom.
        return source.condition, source.path("custom", _CUSTOM_FIELDS[name])
    path = ("spec", "observedConfig", ARGUMENTS, name)
    return names.CONFIG_OBSERVATION_DEGRADED, format_path(path)


def _target(flags: Flags, inputs: Inputs) -> Target:
    try:
        explicit = parse_gates(flags.get("feature-gates", ()))
    except ValueError:
        explicit = {}  # validation of the flags reports the error
    return Target(Gates(inputs.facts.version, explicit), stock=inputs.facts.is_stock)


def override_finding(problem: Problem, path: Path) -> Finding:
    return Finding(
        names.OVERRIDES_DEGRADED,
        problem.reason,
        format_path((*ROOT, *path)),
        problem.sentence,
        blocking=True,
    )


def target_finding(reason: str, path: str, message: str, *, blocking: bool) -> Finding:
    return Finding(names.TARGET_CONFIG_DEGRADED, reason, path, message, blocking)
