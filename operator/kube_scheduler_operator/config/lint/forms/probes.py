"""Probes of a container that its kube-scheduler does not answer.

Since 1.23 kube-scheduler has no insecure port: it serves /healthz with HTTPS only, at --secure-port
of --bind-address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ....base.findings import WARNING, Path, Problem
from ....base.objects import mapping
from ...language.command_line import BIND_ADDRESS, DEFAULT_PORT
from ...language.versions import Version
from .document_fields import objects, text
from .form import CommandLineFlag

PROBE_FAILS: Final = "ProbeFails"

_WITHOUT_HTTP: Final = Version(1, 23)
_CONSEQUENCES: Final[Mapping[str, str]] = {
    "startupProbe": "the kubelet restarts the container again and again",
    "livenessProbe": "the kubelet restarts the container again and again",
    "readinessProbe": "the Pod never becomes ready",
}
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def probe_problems(
    container: Mapping[str, Any],
    path: Path,
    flags: Sequence[CommandLineFlag],
    version: Version | None,
) -> Iterator[Problem]:
    """Warn about probes of a container of Kubernetes' own kube-scheduler."""
    if version is not None and version < _WITHOUT_HTTP:
        return
    last = {flag.name: flag.value for flag in flags}
    port = last.get("secure-port", str(DEFAULT_PORT))
    address = last.get(BIND_ADDRESS, "")
    named = {
        text(port.get("name")): port.get("containerPort")
        for _, port in objects(container.get("ports"))
    }
    for key, consequence in _CONSEQUENCES.items():
        request = mapping(mapping(container.get(key)).get("httpGet"))
        if not request:
            continue
        where = (*path, key, "httpGet")
        probed = request.get("port")
        probed = named.get(probed) if probed in named else probed
        scheme = text(request.get("scheme")) or "HTTP"
        if not isinstance(probed, int) or "$(" in port:
            continue
        if str(probed) != port or scheme != "HTTPS":
            message = f"kube-scheduler serves only HTTPS, on port {port}, not {scheme} on {probed}"
            fix = f"set port: {port} and scheme: HTTPS"
            field = "scheme" if str(probed) == port and "scheme" in request else "port"
            yield Problem(PROBE_FAILS, (*where, field), f"{message}: {consequence}", fix, WARNING)
        elif address in _LOOPBACK and text(request.get("host")) not in _LOOPBACK:
            message = (
                f"kube-scheduler listens only on {address} (--bind-address), and the probe has no "
                f"host, so it goes to the address of the Pod: {consequence}"
            )
            fix = "in a Pod with hostNetwork, set host: 127.0.0.1; else remove --bind-address"
            yield Problem(PROBE_FAILS, where, message, fix, WARNING)
