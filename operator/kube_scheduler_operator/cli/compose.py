"""`compose`: what the operator would make of a Scheduler and a KubeScheduler, without a cluster."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from .. import names

if TYPE_CHECKING:
    from ..config.findings import Finding

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
        "--platform", default="kubeadm", help="kind of cluster (default: %(default)s)"
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
            raise InputError(f"platform {args.platform!r} is not known; use {', '.join(PLATFORMS)}")
        objects = {**_DEFAULT_OBJECTS, **_read(args.files)}
        inputs = Inputs(
            platform=platform,
            operand_version=Version.parse(args.operand_version),
            scheduler=objects["Scheduler"],
            kubescheduler=objects["KubeScheduler"],
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


def _read(files: list[str]) -> dict[str, dict[str, Any]]:
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
            kind = document.get("kind") if isinstance(document, dict) else None
            if not isinstance(kind, str) or kind not in _DEFAULT_OBJECTS:
                what = f"kind {kind}" if kind else "no Kubernetes object"
                raise InputError(f"{shown}: {what}; give a Scheduler and a KubeScheduler")
            wanted = _DEFAULT_OBJECTS[kind]["apiVersion"]
            if document.get("apiVersion") != wanted:
                got = document.get("apiVersion")
                raise InputError(f"{shown}: {kind} has apiVersion {got}; write {wanted}")
            if kind in objects:
                raise InputError(f"{shown}: a second {kind}; there is one per cluster")
            objects[kind] = document
    return objects


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
