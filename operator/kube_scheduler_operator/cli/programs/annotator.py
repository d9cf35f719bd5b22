"""`annotator`: writes the load of nodes into their annotations."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any, Final

from ..console.output import print_remark

_CONFIG: Final = "/etc/kube-scheduler-operator/load/policy.json"


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "annotator",
        description="Reads the load of every node and writes it into an annotation of the node. "
        "Replicas elect a leader (Lease load-annotator). Serves /metrics, /healthz and /readyz.",
    )
    add = parser.add_argument
    add("--config", type=Path, default=Path(_CONFIG), help=f"the load policy (default: {_CONFIG})")
    add("--kubeconfig", help="default: $KUBECONFIG, then in-cluster, then ~/.kube/config")
    add(
        "--namespace",
        default=os.environ.get("POD_NAMESPACE", ""),
        help="namespace of the Lease and the ConfigMap load-state (default: $POD_NAMESPACE, then "
        "the namespace of the pod)",
    )
    add(
        "--identity",
        default="",
        help="holder identity in the Lease (default: the pod's name and a random suffix)",
    )
    add("--listen-address", dest="listen", default="0.0.0.0:8080", metavar="HOST:PORT")
    add(
        "--cleanup",
        action="store_true",
        help="remove the annotations from all nodes and exit; requires --annotations",
    )
    add(
        "--annotations",
        default="",
        metavar="FAMILY,...",
        help="the annotations to remove, of own, crane and safe",
    )
    add("--logging-format", choices=("text", "json"), default="text")
    add("-v", dest="verbosity", type=int, default=2, help="klog verbosity (default: 2)")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from ...base import klog
    from ...kube.credentials import pod_namespace
    from ...kube.errors import KubeError

    host, colon, port = args.listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        args.parser.error(f"--listen-address {args.listen!r} is not HOST:PORT, e.g. 0.0.0.0:8080")
    namespace = args.namespace or pod_namespace()
    if not namespace:
        args.parser.error("--namespace is required outside a pod")
    level = "Debug" if args.verbosity >= 4 else "Normal"
    klog.configure(level, json_format=args.logging_format == "json")
    try:
        if args.cleanup:
            return _clean(args, namespace)
        return _annotate(args, namespace, host.strip("[]") or "0.0.0.0", int(port))
    except (KubeError, OSError) as error:
        print_remark(f"kube-scheduler-operator annotator: {error}")
        return 1


def _annotate(args: argparse.Namespace, namespace: str, host: str, port: int) -> int:
    from ...scheduling.annotator import program
    from ...scheduling.load.policy import LoadPolicyError

    options = program.AnnotatorOptions(
        config=args.config,
        namespace=namespace,
        kubeconfig=args.kubeconfig,
        address=host,
        port=port,
        identity=args.identity,
    )
    try:
        return program.run(options)
    except LoadPolicyError as error:
        print_remark(f"kube-scheduler-operator annotator: {args.config}: {error}")
        return 2


def _clean(args: argparse.Namespace, namespace: str) -> int:
    from ...scheduling.annotator import cleanup
    from ...scheduling.annotator.annotation import KEYS

    families = tuple(dict.fromkeys(filter(None, args.annotations.split(","))))
    unknown = [family for family in families if family not in KEYS]
    if unknown or not families:
        known = ", ".join(KEYS)
        args.parser.error(f"--annotations requires one or more of {known}; unknown: {unknown}")
    return cleanup.run(args.kubeconfig, namespace, families)
