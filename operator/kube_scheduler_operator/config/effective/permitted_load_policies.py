"""What users may set in a LoadPolicy beyond its rules: settings of node-metrics, and a token.

node-metrics runs as root on every node and the annotator may patch nodes, so their arguments are an
allow-list. A token is sent only to the host and port that the label of its Secret names, encrypted
and to the owner of a verified certificate. Otherwise a user who may write LoadPolicies could have
any Secret of the namespace sent anywhere, or read by others on the way. Only the current spec is
checked; a version that was accepted before stays in use.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from ...base import names
from ...base.findings import NOT_ALLOWED, WARNING, Path, Problem, listing
from ...base.objects import Object, label, mapping
from .extenders.entry import TAKEN_PORTS

WITH_VALUE: Final = (
    "--cgroup", "--cpu-capacity", "--interval", "--memory-capacity", "--moments-window", "-v",
)  # fmt: skip
WITHOUT_VALUE: Final = ("--max-of-samples",)
"""The arguments of node-metrics that users may set; all others belong to the operator."""

_FIRST_PORT: Final = 1024
"""The first port that needs no privileges."""
_VALUE: Final = re.compile(r"[A-Za-z0-9@:._/\\$()-]+")
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
"""Hosts that a label's value can have; `_` separates the port."""
_LONGEST_LABEL: Final = 63
_HTTPS_PORT: Final = 443


def refused_settings(
    spec: Mapping[str, Any], secrets: Mapping[str, Object] | None, namespace: str
) -> Iterator[Problem]:
    """Find the settings of a LoadPolicy's spec that are not permitted.

    `secrets` has the Secrets of `namespace` with the label TOKEN_FOR_LABEL, by name; it is None if
    they are not known, as for files: then a warning names the label.
    """
    source = mapping(spec.get("source"))
    arguments = mapping(source.get("nodeMetrics")).get("args")
    for index, argument in enumerate(arguments if isinstance(arguments, list) else ()):
        if not _is_allowed(str(argument)):
            path: Path = ("spec", "source", "nodeMetrics", "args", index)
            allowed = listing((*(f"{flag}=VALUE" for flag in WITH_VALUE), *WITHOUT_VALUE))
            shown = argument if isinstance(argument, str) else json.dumps(argument, default=str)
            message = f'"{shown}" is not an argument that can be set here; use {allowed}'
            yield Problem(NOT_ALLOWED, path, message)
    port = mapping(source.get("nodeMetrics")).get("port")
    if isinstance(port, int) and (0 < port < _FIRST_PORT or port in TAKEN_PORTS):
        path = ("spec", "source", "nodeMetrics", "port")
        message = (
            f"port {port} is used by Kubernetes on nodes or needs privileges; use another port, "
            f"{_FIRST_PORT} or higher"
        )
        yield Problem(NOT_ALLOWED, path, message)
    prometheus = mapping(source.get("prometheus"))
    token = mapping(prometheus.get("tokenSecret"))
    if token.get("name"):
        yield from _token(str(token["name"]), prometheus, secrets, namespace)


def _is_allowed(argument: str) -> bool:
    flag, equals, value = argument.partition("=")
    if not equals:
        return flag in WITHOUT_VALUE
    return flag in WITH_VALUE and bool(_VALUE.fullmatch(value)) and ".." not in value


def _token(
    name: str,
    prometheus: Mapping[str, Any],
    secrets: Mapping[str, Object] | None,
    namespace: str,
) -> Iterator[Problem]:
    path: Path = ("spec", "source", "prometheus")
    url = str(prometheus.get("url") or "")
    place = _place(url)
    if prometheus.get("insecureSkipVerify"):
        message = "a token is sent only to the owner of a verified certificate"
        fix = "remove this field, and name the certificate's CA in caConfigMap"
        yield Problem(NOT_ALLOWED, (*path, "insecureSkipVerify"), message, fix)
    if not url.lower().startswith("https:"):
        message = "a token is sent only by https; use an https URL, or remove tokenSecret"
        yield Problem(NOT_ALLOWED, (*path, "url"), message)
        return
    if not place:
        message = (
            "a token is sent only to a host of letters, digits, dots and dashes, with at most 63 "
            "characters including the port; correct url"
        )
        yield Problem(NOT_ALLOWED, (*path, "url"), message)
        return
    at = place.replace("_", ", port ")
    path = (*path, "tokenSecret", "name")
    fix = f"run kubectl -n {namespace} label secret {name} {names.TOKEN_FOR_LABEL}={place}"
    if secrets is None:
        message = f'the token is sent to {at} only if a label of Secret "{name}" permits it'
        yield Problem(NOT_ALLOWED, path, message, fix, WARNING)
    elif label(secrets.get(name) or {"metadata": {}}, names.TOKEN_FOR_LABEL).lower() != place:
        message = f'Secret "{name}" does not permit sending its token to {at}'
        yield Problem(NOT_ALLOWED, path, message, fix)


def _place(url: str) -> str:
    """Return HOST, or HOST_PORT for another port than 443; empty if ambiguous, or too long."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        port = parts.port
    except ValueError:
        return ""
    plain = f"{host}:{port}" if port is not None else host
    if parts.netloc.lower() != plain or parts.query or parts.fragment or not _HOST.fullmatch(host):
        return ""
    place = host if port in (None, _HTTPS_PORT) else f"{host}_{port}"
    return place if len(place) <= _LONGEST_LABEL else ""
