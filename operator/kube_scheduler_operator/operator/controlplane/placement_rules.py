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
from ...base.templates import canonical_json
from ...config.language.feature_gates import FLAG_PREFIX
from ...simulate.configuration import PLACEMENT_FIELDS
from ..model.plan import PlacementRules
from .revision.content import RevisionContent

_TLS: Final = "tlsConfig"
"""Of an extender: certificates, which do not decide placements."""


def rules_of(content: RevisionContent) -> PlacementRules | None:
    config, operand = content.config, content.operand
    if not config or not operand:
        return None
    kept = {key: config[key] for key in PLACEMENT_FIELDS if key in config}
    if extenders := kept.get("extenders"):
        kept["extenders"] = [_without_tls(extender) for extender in extenders]
    return PlacementRules(kept, _gates(operand))


def rules_hash(rules: PlacementRules) -> str:
    """The identity of rules: SHA-256, 64 hex digits."""
    text = canonical_json({"config": rules.config, "flags": list(rules.flags)})
    return hashlib.sha256(text.encode()).hexdigest()


def with_rules_of(content: RevisionContent, running: RevisionContent) -> RevisionContent:
    """`content` with the rules, and the recorded settings, of the revision that is in use.

    With another image, its feature gates stay: gates belong to a version, which never waits.
    """
    config, old = content.config, running.config
    merged = {key: value for key, value in config.items() if key not in PLACEMENT_FIELDS}
    merged |= {key: old[key] for key in PLACEMENT_FIELDS if key in old}
    if extenders := merged.get("extenders"):
        merged["extenders"] = _with_tls(extenders, config.get("extenders") or ())
    own = {**content.parts[names.CONFIG], names.CONFIG_KEY: canonical_json(merged)}
    parts = {**content.parts, names.CONFIG: own}
    if content.image == running.image:
        pod = _with_gates(content, running)
        parts[names.POD] = {**content.parts[names.POD], names.POD_KEY: canonical_json(pod)}
    return replace(content, parts=parts, inputs=running.inputs)


def _gates(operand: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        argument for argument in operand.get("args") or () if argument.startswith(FLAG_PREFIX)
    )


def _with_gates(content: RevisionContent, running: RevisionContent) -> Mapping[str, Any]:
    """The Pod with the feature gates of `running`, at their position there."""
    pod, operand, other = content.pod, content.operand, running.operand
    gates = _gates(other)
    if not pod or _gates(operand) == gates:
        return pod
    arguments = [
        argument for argument in operand.get("args") or () if not argument.startswith(FLAG_PREFIX)
    ]
    if gates:
        at = list(other["args"]).index(gates[0])
        arguments[at:at] = gates
    containers = [
        {**container, "args": arguments} if container == operand else container
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
