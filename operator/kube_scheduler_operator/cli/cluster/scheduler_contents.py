"""A SecondaryScheduler: what it runs, what it ran and what it refused, and its Pods.

Where the provider runs the control plane's scheduler, they are what revisions are elsewhere. A
content has no number: it is identified by the hash in the name of its ConfigMap.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ...base import names
from ...base.objects import annotation, is_controlled_by, mapping, uid_of
from ...base.platform import Platform
from ...config.effective.attachment import is_ours
from ...config.effective.control_plane.recorded_inputs import RecordedInputs, read_inputs
from ...kube.api import Api, Object
from ...kube.resource import CONFIG_MAPS, DEPLOYMENTS, PODS, SECONDARY_SCHEDULERS
from ...operator.controlplane.revision.content import RevisionContent
from ...operator.secondary.content import SecondaryContent, content_of, is_content
from ...operator.secondary.history import HistoryEntry
from ...operator.secondary.history import read as read_history
from ...operator.status.running import hashes_that_run
from ...simulate.kinds import REPLICA_SETS
from ..console.errors import CommandError
from .compare import ParsedRevision, parse_revision
from .operator_objects import find_object, list_by_name

_SHORTEST: Final = 4
"""Characters of a hash that identify a content, unless two begin with them."""


@dataclass(frozen=True, slots=True)
class Content:
    entry: HistoryEntry  # its hash and outcome
    runs: bool  # whether Ready Pods run it
    decides: bool  # whether it is the one of `running_hash`
    desired: bool  # whether its Deployment has it: its Pods run it, or are about to
    parsed: ParsedRevision | None = None  # the content; None if its ConfigMap no longer exists
    inputs: RecordedInputs | None = None  # the settings that led to it; None if not recorded

    @property
    def hash(self) -> str:
        return self.entry.hash


async def find_scheduler(api: Api, platform: Platform, name: str | None = None) -> Object | None:
    """Return the SecondaryScheduler that a command is about; None: the scheduler in static Pods.

    Without a name it is the one that the operator makes in the place of the provider's scheduler.

    Raises:
        CommandError: it does not exist.
    """
    if name:
        scheduler = await find_object(api, SECONDARY_SCHEDULERS.named(name))
        if scheduler is None:
            raise CommandError(
                f'SecondaryScheduler "{name}" does not exist; see kubectl get secondaryschedulers'
            )
        return scheduler
    if platform.owns_static_pods:
        return None
    schedulers = await list_by_name(api, SECONDARY_SCHEDULERS) or {}
    own = [scheduler for scheduler in schedulers.values() if is_ours(scheduler)]
    if len(own) == 1:
        return own[0]
    if own:
        several = ", ".join(sorted(str(obj["metadata"]["name"]) for obj in own))
        raise CommandError(
            f"the operator has made several SecondarySchedulers ({several}), because "
            "MANAGED_SCHEDULER of its Deployment was changed; name one with --scheduler"
        )
    raise CommandError(
        "the operator has not made a SecondaryScheduler yet; see `kubectl scheduler status`, or "
        "name another one with --scheduler"
    )


async def read_contents(api: Api, scheduler: Object) -> tuple[Content, ...]:
    """Return the contents in its history, newest first."""
    entries = read_history(scheduler)
    config_maps = await read_config_maps(api, scheduler, [entry.hash for entry in entries])
    return tuple(_content(scheduler, entry, config_maps.get(entry.hash)) for entry in entries)


def desired_hash(scheduler: Mapping[str, Any]) -> str:
    """Return the hash of the content that is rolled out, or has been; empty: none yet."""
    return str(mapping(scheduler.get("status")).get("configHash") or "")


def running_hash(scheduler: Mapping[str, Any]) -> str:
    """Return the hash of the content that decides: the leader's; the desired one if none runs."""
    return next(iter(hashes_that_run(scheduler)), "") or desired_hash(scheduler)


async def read_config_maps(
    api: Api, scheduler: Mapping[str, Any], hashes: Collection[str]
) -> dict[str, Object]:
    """Return the ConfigMaps of these contents, by hash; `hashes` are from its status."""
    name, namespace = str(scheduler["metadata"]["name"]), str(scheduler["spec"]["namespace"])
    selector = f"{names.SECONDARY_LABEL}={name}"
    listed = await api.list(CONFIG_MAPS, namespace, label_selector=selector)
    return {
        content_hash: obj
        for obj in listed.items
        for content_hash in hashes
        if is_content(obj, scheduler, content_hash)
    }


def _content(scheduler: Object, entry: HistoryEntry, config_map: Object | None) -> Content:
    content = Content(
        entry,
        runs=entry.hash in hashes_that_run(scheduler),
        decides=entry.hash == running_hash(scheduler),
        desired=entry.hash == desired_hash(scheduler),
    )
    if config_map is None:
        return content
    inputs = read_inputs(annotation(config_map, names.ACCEPTED_SETTINGS_ANNOTATION))
    return replace(content, parsed=parse_content(content_of(config_map)), inputs=inputs)


def find_content(contents: Sequence[Content], prefix: str) -> Content:
    """Return the content whose hash begins with `prefix`.

    Raises:
        CommandError: no content has it, or several have.
    """
    matching = [content for content in contents if content.hash.startswith(prefix)]
    if len(matching) == 1 and len(prefix) >= _SHORTEST:
        return matching[0]
    known = ", ".join(content.hash for content in contents) or "none"
    what = "is ambiguous" if matching and len(prefix) >= _SHORTEST else "does not exist"
    raise CommandError(f'configuration "{prefix}" {what}; existing configurations: {known}')


def readable(content: Content) -> ParsedRevision:
    """Return the parsed content.

    Raises:
        CommandError: its ConfigMap no longer exists.
    """
    if content.parsed is None:
        raise CommandError(
            f"the ConfigMap of configuration {content.hash} no longer exists; those of refused "
            "and failed ones are deleted"
        )
    return content.parsed


def running_content(contents: Sequence[Content]) -> Content:
    """Return the content that decides.

    Raises:
        CommandError: its Pods run none yet.
    """
    return _first(content for content in contents if content.decides)


def rolled_out_content(contents: Sequence[Content]) -> Content:
    """Return the content that its Pods run, or are about to.

    Raises:
        CommandError: none exists yet.
    """
    return _first(content for content in contents if content.desired)


def _first(contents: Iterator[Content]) -> Content:
    for content in contents:
        return content
    raise CommandError("it runs no configuration yet; see `kubectl scheduler status`")


def parse_content(content: SecondaryContent) -> ParsedRevision:
    """Parse the content of a SecondaryScheduler like that of a revision."""
    data = dict(content.data)
    config = {names.CONFIG_KEY: data.pop(names.CONFIG_KEY, "")}
    try:
        spec = json.loads(data.pop(names.POD_KEY, ""))
    except ValueError:
        spec = {}
    # The pod spec also has the image, and the preflight container repeats the scheduler's.
    data.pop("image", None)
    spec.pop("initContainers", None)
    pod = {names.POD_KEY: json.dumps({"spec": spec}), **data}
    return parse_revision(RevisionContent({names.CONFIG: config, names.POD: pod}))


# --- its Pods -----------------------------------------------------------------------------------


async def list_scheduler_pods(api: Api, scheduler: Mapping[str, Any]) -> list[Object]:
    """Return the Pods that the SecondaryScheduler's Deployment made.

    A label proves nothing. Owners exclude the Pods of other namespaces, and those that other
    programs made in this one. Who may create Pods in the namespace of a SecondaryScheduler is
    trusted as that scheduler, because such a Pod may have its account.
    """
    name, namespace = str(scheduler["metadata"]["name"]), str(scheduler["spec"]["namespace"])
    deployment = await find_object(api, DEPLOYMENTS.named(name, namespace))
    if deployment is None or not is_controlled_by(deployment, uid_of(scheduler)):
        return []
    selector = f"{names.SECONDARY_LABEL}={name}"
    replica_sets = await api.list(REPLICA_SETS, namespace, label_selector=selector)
    pods = await api.list(PODS, namespace, label_selector=selector)
    own = {uid_of(obj) for obj in _controlled(replica_sets.items, {uid_of(deployment)})}
    return _controlled(pods.items, own)


def _controlled(objects: Iterable[Object], uids: set[str]) -> list[Object]:
    return [obj for obj in objects if any(is_controlled_by(obj, uid) for uid in uids)]
