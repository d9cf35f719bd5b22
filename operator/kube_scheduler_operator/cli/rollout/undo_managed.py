"""Plans `kubectl scheduler rollout undo` where the provider runs the control plane's scheduler.

The ConfigMap of each content has the settings of Scheduler and KubeScheduler that led to it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...kube.api import Api, Object
from ...kube.resource import KUBE_SCHEDULERS, SCHEDULERS
from ...operator.model.snapshot import Snapshot
from ..cluster.compare import changes
from ..cluster.proposal import InputObjects, proposed_managed
from ..cluster.scheduler_contents import (
    Content,
    find_content,
    read_contents,
    readable,
    running_content,
)
from ..console.errors import CommandError
from .undo import Undo, patch_of, restored


async def plan_managed_undo(
    api: Api, snapshot: Snapshot, scheduler: Object, chosen: str | None
) -> Undo:
    """Plan the restoration of the settings of an older content of `scheduler`.

    `chosen` is the hash of a content; None means the latest installed one with other settings than
    the current ones.

    Raises:
        CommandError: it does not exist, failed, has no recorded settings, or is no longer valid.
    """
    contents = await read_contents(api, scheduler)
    target = _target(snapshot, contents, chosen)
    inputs = target.inputs
    if inputs is None:
        raise CommandError(
            f"configuration {target.hash} has no recorded settings; see `kubectl scheduler diff "
            f"{target.hash}` and edit Scheduler and KubeScheduler manually"
        )
    new_scheduler, new_kubescheduler = restored(snapshot, inputs)
    objects = InputObjects(
        {SCHEDULERS.kind: new_scheduler, KUBE_SCHEDULERS.kind: new_kubescheduler}, {}
    )
    image = readable(running_content(contents)).image
    after = await proposed_managed(api, snapshot.platform, objects, scheduler, image)
    left = () if target.parsed is None else changes(target.parsed, after)
    _refuse_unproved(snapshot, scheduler, target, left)
    return Undo(
        f"configuration {target.hash}",
        None if new_scheduler == snapshot.scheduler else new_scheduler,
        None if new_kubescheduler == snapshot.kubescheduler else new_kubescheduler,
        patch_of(snapshot, new_scheduler, new_kubescheduler),
        left,
        others="The image follows the API server's version; SchedulerProfiles, SchedulerExtenders "
        "and the operator's version cause other differences.",
    )


def _refuse_unproved(
    snapshot: Snapshot, scheduler: Object, target: Content, left: Sequence[str]
) -> None:
    """Check that the recorded settings lead to the content: its hash does not cover them.

    Where only the operator and administrators write ConfigMaps, they are the operator's own record.

    Raises:
        CommandError: they do not.
    """
    namespace = str(scheduler["spec"]["namespace"])
    others = [change for change in left if not change.startswith("image: ")]
    if others and namespace != snapshot.platform.target_namespace:
        raise CommandError(
            f"the settings that are recorded for configuration {target.hash} lead to another one "
            f"({others[0]}), and other clients may write the record in namespace {namespace}; see "
            f"`kubectl scheduler diff {target.hash}` and edit Scheduler and KubeScheduler manually"
        )


def _target(snapshot: Snapshot, contents: Sequence[Content], chosen: str | None) -> Content:
    if chosen is not None:
        target = find_content(contents, chosen)
    else:
        installed = (
            content
            for content in contents
            if not content.entry.bad
            and content.inputs is not None
            and restored(snapshot, content.inputs) != (snapshot.scheduler, snapshot.kubescheduler)
        )
        latest = next(installed, None)
        if latest is None:
            raise CommandError("no older healthy configuration with other settings exists")
        target = latest
    if target.entry.bad:
        raise CommandError(
            f"configuration {target.hash} was {target.entry.outcome}: "
            f"{target.entry.message or 'no reason recorded'}; choose another one: kubectl "
            "scheduler history"
        )
    return target
