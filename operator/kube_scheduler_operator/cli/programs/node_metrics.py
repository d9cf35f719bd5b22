"""`node-metrics`: the exporter of a node's load. It runs in pods of a DaemonSet."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "node-metrics",
        help="export the load of this node (runs in pods)",
        description=(
            "Samples CPU and memory of this node and serves averages, their maxima, mean and "
            "deviation: /statistics (JSON, percent), /metrics (Prometheus), /healthz."
        ),
    )
    add = parser.add_argument
    add(
        "--listen-address",
        "--web.listen-address",
        dest="listen",
        type=_address,
        default=("0.0.0.0", 19101),
        metavar="HOST:PORT",
        help="where to serve (0.0.0.0:19101)",
    )
    add("--root", type=Path, default=Path("/"), help="where the node's /proc and /sys are (/)")
    add("--cgroup", default="", metavar="PATH", help="measure this cgroup instead of the machine")
    add("--cpu-capacity", type=_quantity, metavar="CPUS", help="with --cgroup: 4 or 3500m (all)")
    add("--memory-capacity", type=_quantity, metavar="BYTES", help="with --cgroup: 8Gi (all)")
    add("--interval", type=_seconds, default=15.0, help="seconds between samples (15)")
    add(
        "--moments-window",
        type=_seconds,
        default=86400.0,
        metavar="SECONDS",
        help="mean and deviation of what is free are over so long (86400)",
    )
    add(
        "--max-of-samples",
        action="store_true",
        help="maxima of single samples instead of averages, as crane-scheduler-plus has them",
    )
    add("--state-file", type=Path, help="keeps the history over restarts (it is lost)")
    add("--tls-cert-file", type=Path, help="serve HTTPS with this certificate (HTTP)")
    add("--tls-private-key-file", type=Path, help="its key (in the same file)")
    add("--client-ca-file", type=Path, help="ask clients for a certificate of this CA")
    add("-v", dest="verbosity", type=int, default=2, help="klog verbosity (2)")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    """Export; the exit code."""
    from ...programs.exporter import exporter
    from ...programs.node import program

    if (args.tls_private_key_file or args.client_ca_file) and not args.tls_cert_file:
        args.parser.error("--tls-private-key-file and --client-ca-file need --tls-cert-file")
    if (args.cpu_capacity or args.memory_capacity) and not args.cgroup:
        args.parser.error("--cpu-capacity and --memory-capacity need --cgroup")
    program.configure_logging(args.verbosity)
    args.address, args.port = args.listen
    names = (field.name for field in fields(exporter.Options))
    return exporter.main(exporter.Options(**{name: getattr(args, name) for name in names}))


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 0.0.0.0:19101")
    return host.strip("[]") or "0.0.0.0", int(port)


def _quantity(text: str) -> float:
    from ...programs.exporter.usage_source import quantity

    try:
        return quantity(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 7 * 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds, 0.1 to 604800")
    return seconds
