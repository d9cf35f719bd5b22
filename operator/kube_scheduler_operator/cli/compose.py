"""`compose`: what the operator would make of a Scheduler and a KubeScheduler, without a cluster.

Also of SchedulerProfiles, and on OpenShift of the APIServer, FeatureGate and Infrastructure of the
cluster.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from .. import names

if TYPE_CHECKING:
    from ..config.compose import Composition
    from ..config.findings import Finding
    from ..platform import Platform

DEFAULT_OPERAND_VERSION: Final = "v1.35.4"
_DEFAULT_OBJECTS: Final[dict[str, dict[str, Any]]] = {
    "Scheduler": {
        "apiVersion": "config.openshift.io/v1",
        "kind": "Scheduler",
        "metadata": {"name": names.CLUSTER},
        "spec": {},
    },
    "KubeScheduler": {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeScheduler",
        "metadata": {"name": names.CLUSTER},
        "spec": {"managementState": "Managed"},
    },
}
_API_VERSIONS: Final = {
    **{kind: obj["apiVersion"] for kind, obj in _DEFAULT_OBJECTS.items()},
    "SchedulerProfile": "kube-scheduler-operator.dev/v1alpha1",
    "APIServer": "config.openshift.io/v1",
    "FeatureGate": "config.openshift.io/v1",
    "Infrastructure": "config.openshift.io/v1",
}
_PROFILE: Final = "SchedulerProfile"  # of which there can be many
_INSTEAD: Final = {
    "APIServer": "set spec.tlsSecurityProfile of the KubeScheduler instead",
    "FeatureGate": "set spec.featureGates of the KubeScheduler instead",
    "Infrastructure": "leave it out",
}


class InputError(Exception):
    """The files are not what the command can work with."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and its options."""
    parser = subparsers.add_parser(
        "compose",
        help="show the configuration that a Scheduler and a KubeScheduler lead to",
        description="Show the scheduler's configuration, flags and conditions that a Scheduler, a "
        "KubeScheduler and SchedulerProfiles lead to. Nothing is sent anywhere. Exit code 0: it "
        "would be rolled out; 1: it would not, or a SchedulerProfile is not accepted; 2: the files "
        "cannot be read.",
    )
    parser.add_argument(
        "-f",
        "--file",
        dest="files",
        action="append",
        required=True,
        metavar="FILE",
        help="YAML or JSON with the objects, - for standard input; can be repeated",
    )
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")
    parser.add_argument(
        "--operand-version",
        default=DEFAULT_OPERAND_VERSION,
        metavar="VERSION",
        help="the kube-scheduler to compose for (default: %(default)s)",
    )
    parser.add_argument(
        "--platform",
        default="kubeadm",
        help="kind of cluster: kubeadm or openshift (default: %(default)s)",
    )
    parser.add_argument(
        "--payload-version",
        default="",
        metavar="VERSION",
        help="OpenShift's release, if FeatureGate has the gates of several",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compose and print; 0 if it would be rolled out, 1 if not, 2 for unreadable input."""
    from ..config.compose import Inputs, compose
    from ..config.versions import Version
    from ..platform import PLATFORMS

    try:
        platform = PLATFORMS.get(args.platform)
        if platform is None:
            known = ", ".join(PLATFORMS)
            raise InputError(f"platform {args.platform!r} is not known; use {known}")
        found, profiles = _read(args.files, platform)
        objects = {**_DEFAULT_OBJECTS, **found}
        inputs = Inputs(
            platform=platform,
            operand_version=Version.parse(args.operand_version),
            scheduler=objects["Scheduler"],
            kubescheduler=objects["KubeScheduler"],
            payload_version=args.payload_version,
            apiserver=objects.get("APIServer"),
            feature_gate=objects.get("FeatureGate"),
            infrastructure=objects.get("Infrastructure"),
            scheduler_profiles=tuple(profiles.values()),
        )
    except (InputError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    composition = compose(inputs)
    document = {
        "config": composition.config,
        "args": list(composition.arguments),
        "observedConfig": composition.observed_config,
        "conditions": _conditions(composition.findings),
    }
    if profiles:
        document["schedulerProfiles"] = _profiles(composition)
    _print(document, args.output)
    accepted = all(verdict.accepted for verdict in composition.verdicts)
    return 1 if composition.blocking or not accepted else 0


def _profiles(composition: Composition) -> list[dict[str, Any]]:
    """What became of each SchedulerProfile, and what runs then."""
    from ..status.profiles import plugin_table, state_of

    return [
        {
            "name": verdict.name,
            "state": state_of(verdict),
            "plugins": plugin_table(verdict),
            **({"warnings": [each.text for each in verdict.warnings]} if verdict.warnings else {}),
        }
        for verdict in composition.verdicts
    ]


def _read(
    files: list[str], platform: Platform
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
    """(the objects of all files by kind, SchedulerProfiles by name).

    Raises:
        InputError: a file cannot be read or holds something else.
    """
    import yaml

    objects: dict[str, dict[str, Any]] = {}
    profiles: dict[str, dict[str, Any]] = {}
    for name in files:
        shown = "standard input" if name == "-" else name
        try:
            documents = list(yaml.safe_load_all(_text(name)))
        except OSError as error:
            raise InputError(f"{shown}: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise InputError(f"{shown} is neither YAML nor JSON: {error}") from error
        for document in documents:
            if document is None:
                continue
            try:
                kind = _kind(document, platform)
            except InputError as error:
                raise InputError(f"{shown}: {error}") from None
            if kind == _PROFILE:
                named = document["metadata"]["name"]
                if named in profiles:
                    raise InputError(f'{shown}: a second {kind} "{named}"; rename one')
                profiles[named] = document
                continue
            if kind in objects:
                raise InputError(f"{shown}: a second {kind}; there is one per cluster")
            objects[kind] = document
    return objects, profiles


def _kind(document: Any, platform: Platform) -> str:
    """The kind of a document that the command can work with.

    Raises:
        InputError: it is another one, and what to do.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in _API_VERSIONS:
        what = f"kind {kind}" if kind else "no Kubernetes object"
        more = f" (also {', '.join(_INSTEAD)})" if platform.cluster_config else ""
        raise InputError(f"{what}; give a Scheduler, a KubeScheduler and SchedulerProfiles{more}")
    if kind in _INSTEAD and not platform.cluster_config:
        raise InputError(f"platform {platform.name} has no {kind}; {_INSTEAD[kind]}")
    got, wanted = document.get("apiVersion"), _API_VERSIONS[kind]
    if got != wanted:
        raise InputError(f"{kind} has apiVersion {got}; write {wanted}")
    metadata = document.get("metadata")
    if kind == _PROFILE:
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise InputError(f"{kind} without metadata.name; give it one")
        if not isinstance(document.get("spec"), dict):
            raise InputError(f"{kind} without spec; write spec: {{}} for kube-scheduler's defaults")
        return kind
    name = metadata.get("name", names.CLUSTER) if isinstance(metadata, dict) else names.CLUSTER
    if name != names.CLUSTER:
        raise InputError(f'{kind} "{name}" is not read; the one that counts is "{names.CLUSTER}"')
    return kind


def _text(name: str) -> str:
    from pathlib import Path

    return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")


def _conditions(findings: tuple[Finding, ...]) -> list[dict[str, str]]:
    """What the operator would say; conditions that have nothing to say are left out."""
    from ..status.report import from_findings

    return [
        {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
        for condition in from_findings(findings)
        if condition.message
    ]


def _print(document: dict[str, Any], output: str) -> None:
    import json

    import yaml

    if output == "json":
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        yaml.safe_dump(document, sys.stdout, sort_keys=False, allow_unicode=True)
