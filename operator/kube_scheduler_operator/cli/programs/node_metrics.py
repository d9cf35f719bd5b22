"""`node-metrics`: the exporter of a node's load, which runs in a DaemonSet."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "node-metrics",
        description="Samples CPU and memory of this node and serves averages, their maxima, mean "
        "and standard deviation: /statistics (JSON, percent), /metrics (Prometheus), /healthz.",
    )
    add = parser.add_argument
    add(
        "--listen-address",
        "--web.listen-address",
        dest="listen",
        type=_address,
        default=("0.0.0.0", 19101),
        metavar="HOST:PORT",
        help="address to listen on (default: 0.0.0.0:19101)",
    )
    add("--root", type=Path, default=Path("/"), help="directory with the node's /proc and /sys (/)")
    add("--cgroup", default="", metavar="PATH", help="measure this cgroup, not the node")
    add("--cpu-capacity", type=_quantity, metavar="CPUS", help="with --cgroup: e.g. 3500m (all)")
    add("--memory-capacity", type=_quantity, metavar="BYTES", help="with --cgroup: e.g. 8Gi (all)")
    add("--interval", type=_seconds, default=15.0, help="seconds between samples (default: 15)")
    add(
        "--moments-window",
        type=_seconds,
        default=86400.0,
        metavar="SECONDS",
        help="window of mean and standard deviation of what is free (default: 86400)",
    )
    add(
        "--max-of-samples",
        action="store_true",
        help="serve maxima of single samples, as crane-scheduler-plus does, instead of averages",
    )
    add("--state-file", type=Path, help="file that preserves history across restarts")
    add("--tls-cert-file", type=Path, help="certificate for HTTPS (default: HTTP)")
    add(
        "--tls-private-key-file",
        type=Path,
        help="key of the certificate (default: in the same file)",
    )
    add("--client-ca-file", type=Path, help="require client certificates of this CA")
    add("-v", dest="verbosity", type=int, default=2, help="klog verbosity (default: 2)")
    parser.set_defaults(run=run, parser=parser)


def run(args: argparse.Namespace) -> int:
    from ...node.static_pod import program
    from ...scheduling.exporter import exporter

    if (args.tls_private_key_file or args.client_ca_file) and not args.tls_cert_file:
        args.parser.error("--tls-private-key-file and --client-ca-file require --tls-cert-file")
    if (args.cpu_capacity or args.memory_capacity) and not args.cgroup:
        args.parser.error("--cpu-capacity and --memory-capacity require --cgroup")
    program.configure_logging(args.verbosity)
    args.address, args.port = args.listen
    names = (field.name for field in fields(exporter.ExporterOptions))
    return exporter.main(exporter.ExporterOptions(**{name: getattr(args, name) for name in names}))


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, e.g. 0.0.0.0:19101")
    return host.strip("[]") or "0.0.0.0", int(port)


def _quantity(text: str) -> float:
    from ...base.quantities import quantity

    try:
        number = quantity(text, milli=True) / 1000
    except ValueError:
        number = 0.0
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a quantity such as 4, 3500m or 8Gi")
    return number


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 7 * 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 0.1 to 604800")
    return seconds
