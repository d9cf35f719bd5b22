"""`compose`: composes configurations from objects as the operator does, without a cluster.

The objects are Scheduler, KubeScheduler, SchedulerProfiles, SchedulerExtenders, SecondarySchedulers
and LoadPolicies, and on OpenShift also the cluster's APIServer, FeatureGate and Infrastructure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from ...base import names
from ...base.crd_schema import validate_object
from ...base.decoding import sentence
from ...base.findings import ERROR, Finding, listing
from ...base.objects import mapping
from ...base.platform import KUBEADM, PLATFORMS, Platform
from ...base.source.yaml_text import yaml_text
from ...config.effective.attachment import ValidationResult
from ...config.effective.extenders.validate import ExtenderResult
from ...config.effective.facts import UNKNOWN_PERMISSIONS, Facts
from ...config.effective.objects import Objects
from ...config.effective.permitted_load_policies import refused_settings
from ...config.effective.pipeline import effective
from ...config.effective.profiles.validate import ProfileResult
from ...config.effective.secondary.scheduler import EffectiveSecondary
from ...config.language.validation.newer_versions import newer_version_note
from ...config.language.versions import Version
from ...config.lint.operator_objects import DEFINITION, EXTENDER, PROFILE, SECONDARY
from ...config.lint.places import OWN_RELEASES
from ...config.lint.providers.provider import (
    ProviderFile,
    ProviderFinding,
    ProviderFormat,
    ProviderOutput,
    provider_output,
)
from ...config.lint.providers.table import PROVIDERS, find_provider
from ...kube import resource as kinds
from ...operator.controlplane.conditions import from_findings
from ...operator.profiles.status import plugin_table
from ...operator.status.accepted import state_of
from ...scheduling.load.policy import LoadPolicyError
from ...scheduling.load.policy_files import read_spec
from ..console.errors import UsageError, named, prints_errors
from ..console.flags import add_file_arguments, file_names
from ..console.input_files import display_name, objects_of, read_paths
from ..console.output import json_text, print_document, print_lines, print_remark, text_of
from ..reports.findings import finding_lines

DEFAULT_OPERAND_VERSION: Final = "v1.35.4"
_FILE_MODE: Final = 0o644
_FINDING_FIELDS: Final = ("severity", "reason", "path", "message", "fix")
_KINDS: Final = {
    kind: resource
    for kind, resource in {**kinds.CONFIGURED, **kinds.OBSERVED}.items()
    if resource is not kinds.OPERATOR_SETTINGS  # it is about Pods, not about their configuration
}
_LOAD: Final = kinds.LOAD_POLICIES.kind
_MANY: Final = (PROFILE, EXTENDER, SECONDARY, _LOAD)
_EMPTY: Final = {
    PROFILE: "spec: {} for kube-scheduler's defaults",
    EXTENDER: "spec: {agent: {policies: [{name: safe-overload}]}}, for example",
    SECONDARY: "spec: {namespace: NAME}",
    _LOAD: "spec: {} for crane's default policy",
}
_SUPPORTED: Final = (
    "use a Scheduler, a KubeScheduler, SchedulerProfiles, SchedulerExtenders, SecondarySchedulers "
    "and LoadPolicies"
)
_INSTEAD: Final = {
    "APIServer": "set spec.tlsSecurityProfile of the KubeScheduler instead",
    "FeatureGate": "set spec.featureGates of the KubeScheduler instead",
    "Infrastructure": "leave it out",
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "compose",
        description="Shows the configuration, flags and conditions that result from a Scheduler, a "
        "KubeScheduler, SchedulerProfiles, SchedulerExtenders and SecondarySchedulers, and the "
        "policy file of LoadPolicies. Does not need a cluster. The exit code is 0 if the result "
        "would be rolled out, 1 if not or if a profile or an extender is not accepted, 2 if the "
        "files cannot be read. With --for, it writes the files that a provider of clusters or an "
        "autoscaler accepts instead; the exit code is 1 if the provider rejects a setting.",
    )
    add_file_arguments(parser, "the objects")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")
    parser.add_argument(
        "--for",
        dest="provider",
        metavar="NAME[:VERSION]",
        help="write the files that this provider or autoscaler accepts, one of "
        f"{', '.join(PROVIDERS)}; optionally for one of its versions",
    )
    parser.add_argument(
        "--directory",
        metavar="DIR",
        help="with --for: write the files below this directory instead of printing them",
    )
    parser.add_argument(
        "--operand-version",
        metavar="VERSION",
        help="version of kube-scheduler (default: the release of --for, if the provider numbers "
        f"its releases as Kubernetes does, else {DEFAULT_OPERAND_VERSION})",
    )
    parser.add_argument(
        "--platform",
        help="kind of cluster: kubeadm or openshift (default: kubeadm)",
    )
    parser.add_argument(
        "--payload-version",
        default="",
        metavar="VERSION",
        help="the OpenShift release, if the FeatureGate has the gates of several",
    )
    parser.set_defaults(run=run)


@prints_errors()
def run(args: argparse.Namespace) -> int:
    provider, release = _provider(args)
    name = args.platform or KUBEADM.name
    platform = PLATFORMS.get(name)
    if platform is None:
        raise UsageError(f"--platform {name!r} is unknown; use {', '.join(PLATFORMS)}")
    single, many = _read(file_names(args), platform)
    profiles, secondary, extenders = many[PROFILE], many[SECONDARY], many[EXTENDER]
    _refuse_unstored(secondary.values())
    objects = Objects(
        scheduler=single.get("Scheduler", {"spec": {}}),
        kubescheduler=single.get("KubeScheduler", {"spec": {"managementState": "Managed"}}),
        profiles=tuple(profiles.values()),
        extenders=tuple(extenders.values()),
        secondaries=tuple(secondary.values()),
        apiserver=single.get("APIServer"),
        feature_gate=single.get("FeatureGate"),
        infrastructure=single.get("Infrastructure"),
    )
    facts = Facts(
        platform=platform,
        default_version=_operand_version(args.operand_version, provider, release),
        payload_version=args.payload_version,
        planned=True,
        permissions=UNKNOWN_PERMISSIONS,
    )
    loads = [_load_policy(policy, platform) for policy in many[_LOAD].values()]
    if note := newer_version_note(facts.version):
        print_remark(f"note: {note}")
    composed = effective(objects, facts)
    composition = composed.control_plane.composition
    secondaries = [composed.secondaries.of(name) for name in secondary]
    if provider is not None:
        beside = [f"{kind}/{name}" for kind in (SECONDARY, _LOAD) for name in many[kind]]
        output = provider_output(provider, release, composition, beside)
        return _show_provider(provider, output, args)
    document: dict[str, Any] = {
        "config": composition.config,
        "args": list(composition.arguments),
        "observedConfig": composition.observed_config,
        "conditions": _conditions(composition.findings),
    }
    profile_results = [
        *composition.results,
        *(result for scheduler in secondaries for result in scheduler.profiles),
    ]
    extender_results = [
        *composition.extenders,
        *(result for scheduler in secondaries for result in scheduler.extenders),
    ]
    attached = (*profiles.values(), *extenders.values())
    names_others = all(obj["spec"].get("scheduler") for obj in attached)
    if (secondary or loads) and not single and names_others:
        document = {}  # nothing configures the control plane
    if profiles:
        document["schedulerProfiles"] = list(map(_profile, profile_results))
    if extenders:
        document["schedulerExtenders"] = list(map(_extender, extender_results))
    if secondary:
        document["secondarySchedulers"] = list(map(_secondary_document, secondaries))
    if loads:
        document["loadPolicies"] = loads
    print_document(document, args.output)
    accepted = all(result.accepted for result in (*profile_results, *extender_results))
    blocking = composition.blocking or any(scheduler.blocking for scheduler in secondaries)
    return 1 if blocking or not accepted else 0


def _provider(args: argparse.Namespace) -> tuple[ProviderFormat | None, Version | None]:
    """Return the provider of `--for` and its release."""
    if args.provider is None:
        if args.directory is not None:
            raise UsageError("--directory needs --for")
        return None, None
    if args.platform is not None:
        raise UsageError("--for and --platform exclude each other; remove one")
    with named("--for"):
        return find_provider(args.provider)


def _operand_version(
    text: str | None, provider: ProviderFormat | None, release: Version | None
) -> Version:
    """Return the version of kube-scheduler, by default the release of the provider."""
    try:
        version = Version.parse(text) if text is not None else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    if provider is None or release is None or provider.name in OWN_RELEASES:
        return version or Version.parse(DEFAULT_OPERAND_VERSION)
    if version is not None and version.short != release.short:
        raise UsageError(
            f"--operand-version {text} is not the Kubernetes {release.short} of --for "
            f"{provider.name}; remove one"
        )
    return version or release


def _refuse_unstored(schedulers: Iterable[dict[str, Any]]) -> None:
    """Refuse SecondarySchedulers that the API server would reject."""
    for obj in schedulers:
        name = obj["metadata"]["name"]
        for problem in validate_object(obj, DEFINITION, kinds.SECONDARY_SCHEDULERS.version):
            raise UsageError(f'{SECONDARY} "{name}": {sentence(problem)}')


def _secondary_document(scheduler: EffectiveSecondary) -> dict[str, Any]:
    composition = scheduler.composition
    return {
        "name": scheduler.request.name,
        "config": composition.config,
        "args": list(composition.arguments),
        "conditions": [
            _shown(finding.condition, "True", finding.reason, finding.text)
            for finding in scheduler.all_findings
        ],
    }


def _load_policy(obj: dict[str, Any], platform: Platform) -> dict[str, Any]:
    """Return the policy file of a LoadPolicy that the operator would accept."""
    name = obj["metadata"]["name"]
    try:
        document = read_spec(obj["spec"]).policy.document()
        refused = refused_settings(obj["spec"], None, platform.target_namespace)
        if errors := [problem for problem in refused if problem.severity == ERROR]:
            raise LoadPolicyError(errors)
    except LoadPolicyError as error:
        raise UsageError(f'{_LOAD} "{name}": {error}') from error
    return {"name": name, "policy": document}


def _profile(result: ProfileResult) -> dict[str, Any]:
    return _with_warnings(result, {"plugins": plugin_table(result)})


def _extender(result: ExtenderResult) -> dict[str, Any]:
    endpoint = {} if result.entry is None else {"endpoint": result.entry["urlPrefix"]}
    return _with_warnings(result, endpoint)


def _with_warnings(result: ValidationResult, details: dict[str, Any]) -> dict[str, Any]:
    document = {"name": result.name, "state": state_of(result), **details}
    if result.warnings:
        document["warnings"] = [warning.text for warning in result.warnings]
    return document


def _read(
    files: Sequence[str], platform: Platform
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, dict[str, Any]]]]:
    """Return (single objects by kind, objects of the other kinds by kind and name)."""
    single: dict[str, dict[str, Any]] = {}
    many: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in _MANY}
    for name, was_found, documents in objects_of(read_paths(files)):
        shown = "standard input" if name == display_name("-") else name
        if not documents and not was_found:
            raise UsageError(f"{shown}: no object in it; {_SUPPORTED}")
        for document in documents:
            if was_found and mapping(document).get("kind") not in _KINDS:
                continue
            try:
                kind = _kind(document, platform)
            except UsageError as error:
                raise UsageError(f"{shown}: {error}") from None
            if kind in many:
                object_name = document["metadata"]["name"]
                if object_name in many[kind]:
                    raise UsageError(
                        f'{shown}: a {kind} "{object_name}" is already defined; rename one of them'
                    )
                many[kind][object_name] = document
                continue
            if kind in single:
                raise UsageError(f"{shown}: a {kind} is already defined, and a cluster has one")
            single[kind] = document
    if files and not single and not any(many.values()):
        raise UsageError(f"no object in {listing(list(files))}; {_SUPPORTED}")
    return single, many


def _kind(document: Any, platform: Platform) -> str:
    """Return the kind of a document; UsageError if the document is not supported."""
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in _KINDS:
        what = f"unsupported kind {kind}" if kind else "not a Kubernetes object"
        more = f" (also {', '.join(_INSTEAD)})" if platform.cluster_config else ""
        raise UsageError(f"{what}; {_SUPPORTED}{more}")
    if kind in _INSTEAD and not platform.cluster_config:
        raise UsageError(
            f"platform {platform.name} does not have the kind {kind}; {_INSTEAD[kind]}"
        )
    api_version = _KINDS[kind].api_version
    if document.get("apiVersion") != api_version:
        raise UsageError(f"{kind} has apiVersion {document.get('apiVersion')}; use {api_version}")
    metadata = document.get("metadata")
    if kind in _MANY:
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise UsageError(f"{kind} without metadata.name; add it")
        if not isinstance(document.get("spec"), dict):
            raise UsageError(f"{kind} without spec; use {_EMPTY[kind]}")
        return kind
    name = metadata.get("name", names.CLUSTER) if isinstance(metadata, dict) else names.CLUSTER
    if name != names.CLUSTER:
        raise UsageError(f'{kind} "{name}" is ignored; rename it to "{names.CLUSTER}"')
    return kind


def _conditions(findings: tuple[Finding, ...]) -> list[dict[str, str]]:
    """Return the conditions that the operator would set, without those that have no message."""
    return [
        _shown(condition.type, condition.status, condition.reason, condition.message)
        for condition in from_findings(findings)
        if condition.message
    ]


def _shown(type_: str, status: str, reason: str, message: str) -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


# --- the files of a provider --------------------------------------------------------------------


def _show_provider(
    provider: ProviderFormat, output: ProviderOutput, args: argparse.Namespace
) -> int:
    """Print JSON with everything, or YAML files, with the findings on standard error.

    With a directory, the files are written into it. Returns the exit code: 0 if the provider takes
    all of it, 1 if not.
    """
    if args.directory is not None:
        _write_files(args.directory, output.files)
        _print_findings(output.findings)
    elif args.output == "json":
        document = {
            "for": provider.name,
            "source": provider.source,
            "files": [asdict(file) for file in output.files],
            "findings": [
                {name: getattr(finding, name) for name in _FINDING_FIELDS}
                for finding in output.findings
            ],
        }
        sys.stdout.write(json_text(document))
    else:
        sys.stdout.write("---\n".join(map(_file_text, output.files)))
        _print_findings(output.findings)
    return 1 if any(finding.severity == ERROR for finding in output.findings) else 0


def _write_files(directory: str, files: Iterable[ProviderFile]) -> None:
    """Write the files below a directory, and print their paths."""
    for file in files:
        path = Path(directory, file.path.lstrip("/"))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(_file_text(file), encoding="utf-8")
            path.chmod(_FILE_MODE)
        except OSError as error:
            raise UsageError(f"{path} cannot be written: {error.strerror}") from error
        print_lines(str(path))


def _file_text(file: ProviderFile) -> str:
    """Return the file, headed by comments with its path and its use."""
    return f"{text_of((f'# {file.path}', f'# {file.use}'))}\n{yaml_text([file.content])}"


def _print_findings(findings: Iterable[ProviderFinding]) -> None:
    """Print them on standard error, in the form of `validate`."""
    for finding in findings:
        for line in finding_lines(finding):
            print_remark(line)
