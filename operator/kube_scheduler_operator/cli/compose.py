"""`compose`: what the operator would make of a Scheduler and a KubeScheduler, without a cluster.

On OpenShift also of the APIServer, FeatureGate and Infrastructure of the cluster.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from .. import names

if TYPE_CHECKING:
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
    "APIServer": "config.openshift.io/v1",
    "FeatureGate": "config.openshift.io/v1",
    "Infrastructure": "config.openshift.io/v1",
}
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
        description="Show the scheduler's configuration, flags and conditions that a Scheduler and "
        "a KubeScheduler lead to. Nothing is sent anywhere. Exit code 0: it would be rolled out; "
        "1: it would not; 2: the files cannot be read.",
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
        objects = {**_DEFAULT_OBJECTS, **_read(args.files, platform)}
        inputs = Inputs(
            platform=platform,
            operand_version=Version.parse(args.operand_version),
            scheduler=objects["Scheduler"],
            kubescheduler=objects["KubeScheduler"],
            payload_version=args.payload_version,
            apiserver=objects.get("APIServer"),
            feature_gate=objects.get("FeatureGate"),
            infrastructure=objects.get("Infrastructure"),
        )
    except (InputError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    composition = compose(inputs)
    _print(
        {
            "config": composition.config,
            "args": list(composition.arguments),
            "observedConfig": composition.observed_config,
            "conditions": _conditions(composition.findings),
        },
        args.output,
    )
    return 1 if composition.blocking else 0


def _read(files: list[str], platform: Platform) -> dict[str, dict[str, Any]]:
    """The objects of all files by kind.

    Raises:
        InputError: a file cannot be read or holds something else.
    """
    import yaml

    objects: dict[str, dict[str, Any]] = {}
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
            if kind in objects:
                raise InputError(f"{shown}: a second {kind}; there is one per cluster")
            objects[kind] = document
    return objects


def _kind(document: Any, platform: Platform) -> str:
    """The kind of a document that the command can work with.

    Raises:
        InputError: it is another one, and what to do.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in _API_VERSIONS:
        what = f"kind {kind}" if kind else "no Kubernetes object"
        more = f" (also {', '.join(_INSTEAD)})" if platform.cluster_config else ""
        raise InputError(f"{what}; give a Scheduler and a KubeScheduler{more}")
    if kind in _INSTEAD and not platform.cluster_config:
        raise InputError(f"platform {platform.name} has no {kind}; {_INSTEAD[kind]}")
    got, wanted = document.get("apiVersion"), _API_VERSIONS[kind]
    if got != wanted:
        raise InputError(f"{kind} has apiVersion {got}; write {wanted}")
    metadata = document.get("metadata")
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
