"""Compares two revisions: by meaning, in words, and by text, as a unified diff."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from ...base import names
from ...base.findings import format_path
from ...base.hosts import shown_url
from ...config.language.command_line import parse
from ...config.language.decode import decode_problems
from ...config.language.feature_gates import Gates, parse_gates
from ...config.language.plugins.effective_plugins import EffectivePlugins, effective_plugins
from ...config.language.schema import CONFIGURATION, DEFAULT_SCHEDULER
from ...config.language.versions import Version
from ...operator.controlplane.revision.content import RevisionContent
from ...operator.model.plan import PlacementRules

IMAGE: Final = "image: "
"""The begin of a sentence about the image."""

_FALLBACK_VERSION: Final = Version(1, 35, 0)  # for images whose tag is not a version


@dataclass(frozen=True, slots=True)
class ParsedRevision:
    config: Mapping[str, Any]  # the KubeSchedulerConfiguration; empty if it cannot be parsed
    arguments: tuple[str, ...]  # of kube-scheduler
    image: str
    pod: Mapping[str, Any]  # the rest of the static pod
    other: Mapping[str, str]  # all other keys of the ConfigMaps, and those that cannot be parsed


def parse_revision(content: RevisionContent) -> ParsedRevision:
    """Parse a revision's ConfigMaps; what cannot be parsed stays text."""
    other = {
        f"{part}/{key}": text for part, data in content.parts.items() for key, text in data.items()
    }
    config = _document(other, f"{names.CONFIG}/{names.CONFIG_KEY}")
    pod = _document(other, f"{names.POD}/{names.POD_KEY}")
    containers = (pod.get("spec") or {}).get("containers") or []
    operand: Mapping[str, Any] = next((c for c in containers if c.get("name") == names.OPERAND), {})
    arguments = tuple(str(argument) for argument in operand.get("args") or ())
    rest = without(operand, "args", "image")
    if containers:
        kept = [rest if container is operand else container for container in containers]
        pod = {**pod, "spec": {**pod["spec"], "containers": kept}}
    return ParsedRevision(config, arguments, str(operand.get("image") or ""), pod, other)


def _document(texts: dict[str, str], key: str) -> dict[str, Any]:
    """Remove the JSON object at `key` from `texts` and return it; empty if it is not one."""
    try:
        document = json.loads(texts.get(key, ""))
    except ValueError:
        return {}
    if not isinstance(document, dict):
        return {}
    del texts[key]
    return document


# --- in words ---------------------------------------------------------------------------------


def changes(before: ParsedRevision, after: ParsedRevision) -> tuple[str, ...]:
    """Describe the changes, one sentence each; empty if they do not affect the scheduler."""
    sentences: list[str] = []
    if before.image != after.image:
        sentences.append(f"{IMAGE}{before.image or '(none)'} → {after.image or '(none)'}")
    sentences += _flags(before.arguments, after.arguments)
    sentences += _config(before, after)
    forced = f"{names.POD}/{names.FORCE_REDEPLOYMENT_KEY}"
    if before.other.get(forced, "") != after.other.get(forced, ""):
        sentences.append(f"{names.FORCE_REDEPLOYMENT_KEY}: {_shown(after.other.get(forced, ''))}")
    sentences += _values("the pod's ", before.pod, after.pod)
    sentences += [
        f"{key}: changed"
        for key in sorted(before.other.keys() | after.other.keys())
        if key != forced and before.other.get(key) != after.other.get(key)
    ]
    return tuple(sentences)


def agent_changes(before: PlacementRules, after: PlacementRules) -> tuple[str, ...]:
    """Describe the changes of what agents decide by, which no revision contains."""
    agents, policies = "SchedulerExtender", "LoadPolicy"
    return (
        *_values("", {agents: before.agents}, {agents: after.agents}),
        *_values("", {policies: before.load_policies}, {policies: after.load_policies}),
    )


def _flags(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    old, new = parse(before), parse(after)
    for name in sorted(old.keys() | new.keys()):
        dashes = "-" if len(name) == 1 else "--"
        was, now = (",".join(flags.get(name, ())) for flags in (old, new))
        if name not in new:
            yield f"{dashes}{name}={was} removed"
        elif name not in old:
            yield f"{dashes}{name}={now} added"
        elif old[name] != new[name]:
            yield f"{dashes}{name}: {was} → {now}"


def _config(before: ParsedRevision, after: ParsedRevision) -> Iterator[str]:
    old, new = profiles_of(before.config), profiles_of(after.config)
    if old is None or new is None:
        yield from _values("", before.config, after.config)
        return
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            yield f"profile {name} removed"
        elif name not in old:
            yield f"profile {name} added"
        else:
            yield from _profile(f"profile {name}: ", old[name], new[name], before, after)
    yield from _extenders(before.config, after.config)
    reported = ("profiles", "extenders")
    yield from _values("", without(before.config, *reported), without(after.config, *reported))


def _extenders(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    lists = [config.get("extenders") or [] for config in (before, after)]
    old, new = ({str(one.get("urlPrefix")): one for one in each} for each in lists)
    if [len(old), len(new)] != [*map(len, lists)]:  # two have the same address
        yield from _values("", {"extenders": lists[0]}, {"extenders": lists[1]})
        return
    for url in [*old, *(url for url in new if url not in old)]:
        name = f"extender {shown_url(url)}"
        if url not in new:
            yield f"{name} removed"
        elif url not in old:
            yield f"{name} added"
        else:
            yield from _values(f"{name}: ", old[url], new[url])
    if [url for url in new if url in old] != [url for url in old if url in new]:
        yield f"order of extenders: {', '.join(map(shown_url, new))}"


def profiles_of(config: Mapping[str, Any]) -> dict[str, dict[str, Any]] | None:
    """Return profiles by name, with plugin arguments by name; None if invalid."""
    if any(decode_problems(config, CONFIGURATION, (), _FALLBACK_VERSION.minor, strict=False)):
        return None
    profiles = {}
    for profile in config.get("profiles") or [{}]:
        arguments = {c.get("name", ""): c.get("args") for c in profile.get("pluginConfig") or ()}
        profiles[profile.get("schedulerName") or DEFAULT_SCHEDULER] = {
            **profile,
            "pluginConfig": arguments,
        }
    return profiles


def _profile(
    intro: str,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    before: ParsedRevision,
    after: ParsedRevision,
) -> Iterator[str]:
    was = effective_plugins(old, gates_of(before))
    now = effective_plugins(new, gates_of(after))
    sentences = [*_switched(was, now), *_ordered(was, now)]
    if not sentences and (old.get("plugins") or {}) != (new.get("plugins") or {}):
        sentences = ["plugin lists changed without an effect"]
    for text in sentences:
        yield intro + text
    reported = ("schedulerName", "plugins")
    yield from _values(intro, without(old, *reported), without(new, *reported))


def without(document: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return a document without some of its fields."""
    return {key: value for key, value in document.items() if key not in keys}


def gates_of(revision: ParsedRevision) -> Gates:
    """Return the feature gates of a revision, on which default plugins depend."""
    try:
        version = Version.of_image(revision.image)
    except ValueError:
        version = _FALLBACK_VERSION
    try:
        return Gates(version, parse_gates(parse(revision.arguments).get("feature-gates", ())))
    except ValueError:
        return Gates(version)


def _switched(was: EffectivePlugins, now: EffectivePlugins) -> Iterator[str]:
    """Yield plugins that were enabled or disabled, by extension point, and changed weights."""
    old = {(point, e.name): e.weight or 1 for point, es in was.points.items() for e in es}
    new = {(point, e.name): e.weight or 1 for point, es in now.points.items() for e in es}
    for word, gained, lost in (("off", old, new), ("on", new, old)):
        points: dict[str, list[str]] = {}
        for point, name in gained:
            if (point, name) not in lost:
                points.setdefault(name, []).append(point)
        grouped: dict[str, list[str]] = {}
        for name, at in points.items():
            grouped.setdefault(", ".join(at), []).append(name)
        for at_points, plugins in grouped.items():
            yield f"{', '.join(plugins)} {word} at {at_points}"
    # The extension points of a plugin outside the catalogue are not known.
    for name in sorted(set(was.unknown) ^ set(now.unknown)):
        if not any(known == name for _, known in (*old, *new)):
            yield f"{name} {'on' if name in now.unknown else 'off'}"
    for (point, name), weight in new.items():
        if point == "score" and old.get((point, name), weight) != weight:
            yield f"weight of {name} at score: {old[point, name]} → {weight}"


def _ordered(was: EffectivePlugins, now: EffectivePlugins) -> Iterator[str]:
    """Yield extension points where the order of plugins changed; it does not affect scores."""
    for point in was.points:
        if point in ("preScore", "score"):
            continue
        old = [entry.name for entry in was.points[point]]
        new = [entry.name for entry in now.points.get(point, ())]
        stay = [name for name in new if name in old]
        if stay != [name for name in old if name in new]:
            yield f"order at {point}: {', '.join(new)}"


def _values(intro: str, before: Any, after: Any, path: tuple[str | int, ...] = ()) -> Iterator[str]:
    """Yield every value that differs, with its path; lists are compared as a whole.

    Lists whose items all have names, such as a pod's containers, are compared by name.
    """
    named = _by_name(before), _by_name(after)
    if named[0] and named[1]:
        before, after = named
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            yield from _values(intro, before.get(key), after.get(key), (*path, key))
    elif before != after:
        where = intro + format_path(path)
        if before is None:
            yield f"{where}: {_shown(after)} added"
        elif after is None:
            yield f"{where}: {_shown(before)} removed"
        else:
            yield f"{where}: {_shown(before)} → {_shown(after)}"


def _by_name(value: Any) -> dict[str, Any]:
    """Index a list by name; empty unless it is a list with unique names."""
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        return {}
    items = {str(item.get("name") or ""): item for item in value}
    return items if len(items) == len(value) and "" not in items else {}


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


# --- as a diff --------------------------------------------------------------------------------


def unified(before: ParsedRevision, after: ParsedRevision, labels: tuple[str, str]) -> list[str]:
    """Return a unified diff: configuration and pod as YAML, flags one per line; empty if equal."""
    old, new = _files(before), _files(after)
    lines: list[str] = []
    for name in [*old, *(name for name in new if name not in old)]:
        lines += difflib.unified_diff(
            old.get(name, []),
            new.get(name, []),
            f"{labels[0]}/{name}",
            f"{labels[1]}/{name}",
            lineterm="",
        )
    return lines


def _files(revision: ParsedRevision) -> dict[str, list[str]]:
    files = {
        "config.yaml": _yaml(revision.config),
        "flags": list(revision.arguments),
        "image": [revision.image],
        "pod.yaml": _yaml(revision.pod),
    }
    return {**files, **{key: text.splitlines() for key, text in sorted(revision.other.items())}}


def _yaml(document: Mapping[str, Any]) -> list[str]:
    return yaml.safe_dump(dict(document), allow_unicode=True).splitlines() if document else []
