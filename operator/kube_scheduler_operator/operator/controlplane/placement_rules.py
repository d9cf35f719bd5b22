"""The rules in a revision's content that decide placements, and how to exchange them.

Everything else of a revision (certificates, CA bundles, the image, resources, log levels, timings)
is rolled out while an edit of the rules waits.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ...base import names
from ...base.json_text import parse_json
from ...base.objects import mapping
from ...base.templates import canonical_json
from ...config.language.feature_gates import FLAG_PREFIX
from ...simulate.configuration import PLACEMENT_FIELDS
from ..model.placements import PlacementRules
from ..model.pod_status import named
from .revision.content import RevisionContent

_TLS: Final = "tlsConfig"
"""Of an extender: certificates, which do not decide placements."""


def rules_of(content: RevisionContent) -> PlacementRules | None:
    config, operand = _config(content), _operand(_pod(content))
    if config is None or operand is None:
        return None
    kept = {key: config[key] for key in PLACEMENT_FIELDS if key in config}
    if extenders := kept.get("extenders"):
        kept["extenders"] = [_without_tls(extender) for extender in extenders]
    return PlacementRules(kept, _gates(operand))


def rules_hash(rules: PlacementRules) -> str:
    """The identity of rules: SHA-256, 64 hex digits."""
    text = canonical_json({"config": rules.config, "flags": list(rules.flags)})
    return hashlib.sha256(text.encode()).hexdigest()


def image_of(content: RevisionContent) -> str:
    return str(mapping(_operand(_pod(content))).get("image") or "")


def command_of(content: RevisionContent) -> tuple[str, ...]:
    """The command that runs kube-scheduler; empty if the image has its own."""
    return tuple(mapping(_operand(_pod(content))).get("command") or ())


def with_rules_of(content: RevisionContent, running: RevisionContent) -> RevisionContent:
    """`content` with the rules, and the recorded settings, of the revision that is in use.

    With another image, its feature gates stay: gates belong to a version, which never waits.
    """
    config, old = _config(content) or {}, _config(running) or {}
    merged = {key: value for key, value in config.items() if key not in PLACEMENT_FIELDS}
    merged |= {key: old[key] for key in PLACEMENT_FIELDS if key in old}
    if extenders := merged.get("extenders"):
        merged["extenders"] = _with_tls(extenders, config.get("extenders") or ())
    own = {**content.parts[names.CONFIG], names.CONFIG_KEY: canonical_json(merged)}
    parts = {**content.parts, names.CONFIG: own}
    if image_of(content) == image_of(running):
        pod = _with_gates(_pod(content), _pod(running))
        parts[names.POD] = {**content.parts[names.POD], names.POD_KEY: canonical_json(pod)}
    return replace(content, parts=parts, inputs=running.inputs)


def _config(content: RevisionContent) -> Mapping[str, Any] | None:
    return _document(content, names.CONFIG, names.CONFIG_KEY)


def _pod(content: RevisionContent) -> Mapping[str, Any] | None:
    return _document(content, names.POD, names.POD_KEY)


def _document(content: RevisionContent, part: str, key: str) -> Mapping[str, Any] | None:
    try:
        document = parse_json(content.parts[part][key])
    except (KeyError, ValueError):
        return None
    return document if isinstance(document, Mapping) else None


def _operand(pod: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    containers = mapping(mapping(pod).get("spec")).get("containers") or ()
    return named(containers, names.OPERAND) or None


def _gates(operand: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        argument for argument in operand.get("args") or () if argument.startswith(FLAG_PREFIX)
    )


def _with_gates(
    pod: Mapping[str, Any] | None, running: Mapping[str, Any] | None
) -> Mapping[str, Any]:
    """The Pod with the feature gates of `running`, at their position there."""
    operand, other = mapping(_operand(pod)), mapping(_operand(running))
    gates = _gates(other)
    if pod is None or _gates(operand) == gates:
        return pod or {}
    arguments = [
        argument for argument in operand.get("args") or () if not argument.startswith(FLAG_PREFIX)
    ]
    if gates:
        at = list(other["args"]).index(gates[0])
        arguments[at:at] = gates
    containers = [
        {**container, "args": arguments} if container is operand else container
        for container in pod["spec"]["containers"]
    ]
    return {**pod, "spec": {**pod["spec"], "containers": containers}}


def _without_tls(extender: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in extender.items() if key != _TLS}


def _with_tls(extenders: Any, current: Any) -> list[Mapping[str, Any]]:
    """Extenders with the current certificates of those with the same URL."""
    known = {extender.get("urlPrefix") for extender in current}
    tls = {
        extender.get("urlPrefix"): {_TLS: extender[_TLS]}
        for extender in current
        if _TLS in extender
    }
    merged = []
    for extender in extenders:
        url = extender.get("urlPrefix")
        merged.append({**_without_tls(extender), **tls.get(url, {})} if url in known else extender)
    return merged
