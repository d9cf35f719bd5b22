"""The schedulers of a cluster in newer versions, composed as the operator composes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...base import names
from ...base.platform import Platform
from ...config.effective.managed import moved_objects
from ...config.effective.pipeline import served_by, with_managed
from ...config.effective.upgrades import ControlPlaneUpgrade, Upgrade, secondary_upgrades
from ...config.language.schema import DEFAULT_SCHEDULER
from ...kube.client import ApiClient
from ..cluster.operator_objects import get_kubescheduler
from ..cluster.proposal import InputObjects, composed_control_plane, composed_managed
from ..cluster.revisions import find_running_revision, list_revisions, nodes_by_revision
from ..cluster.scheduler_contents import (
    find_scheduler,
    read_contents,
    readable,
    rolled_out_content,
)
from ..console.errors import CommandError

_NOTHING = InputObjects({}, {})


async def cluster_upgrades(api: ApiClient, platform: Platform) -> list[Upgrade]:
    """Return the control plane's scheduler and the SecondarySchedulers.

    Raises:
        KubeError: they cannot be read.
        CommandError: no scheduler of the operator runs.
    """
    if not platform.owns_static_pods:
        return await _managed(api, platform)
    nodes = nodes_by_revision(await get_kubescheduler(api))
    revision = find_running_revision(await list_revisions(api, platform), nodes)
    control_plane = await composed_control_plane(api, platform, _NOTHING, revision)
    inputs = control_plane.composition.inputs
    secondary = secondary_upgrades(inputs.objects, inputs.facts, served_by(control_plane))
    return [ControlPlaneUpgrade(control_plane.composition), *secondary]


async def _managed(api: ApiClient, platform: Platform) -> list[Upgrade]:
    scheduler = await find_scheduler(api, platform)
    if scheduler is None:
        raise CommandError("no scheduler of the operator runs yet; see kubectl scheduler status")
    content = readable(rolled_out_content(await read_contents(api, scheduler)))
    known, facts, composed = await composed_managed(api, platform, _NOTHING, scheduler, content)
    known = with_managed(known, facts, composed.control_plane)
    objects = moved_objects(known, facts.managed_scheduler)
    return [*secondary_upgrades(objects, facts, (DEFAULT_SCHEDULER,))]


def restrictions(upgrades: Iterable[Upgrade]) -> Iterator[str]:
    """Yield why an upgrade is restricted whatever it changes, as Upgradeable of the operator."""
    for upgrade in upgrades:
        if isinstance(upgrade, ControlPlaneUpgrade):
            for finding in upgrade.current.findings:
                if finding.condition == names.OVERRIDES_UPGRADEABLE:
                    yield (
                        f"{names.OVERRIDES_UPGRADEABLE} is False whatever is found here, where the "
                        f"overrides take part: {finding.text}"
                    )
