"""What is on record of kube-scheduler's versions, compared with the releases themselves."""

from __future__ import annotations

import itertools

import pytest

from cluster import releases
from versions.differences import changes, differences
from versions.sources import source

VERSIONS = {**releases.PINNED, **releases.PRE_RELEASES}
MINORS = sorted(VERSIONS)

pytestmark = pytest.mark.timeout(1800)


@pytest.mark.parametrize(("older", "minor"), list(itertools.pairwise(MINORS)))
def test_the_record_is_what_the_release_has(older: int, minor: int) -> None:
    version, before = VERSIONS[minor], VERSIONS[older]
    kubernetes = source("k8s.io/kubernetes", version)
    is_built = version == releases.DEFAULT
    assert list(differences(version, kubernetes, before, with_program=is_built)) == []


CHANGED_IN_37 = (
    "Plugins.podGroupPostFilter was added: ",
    "plugin DefaultPreemption implements podGroupPostFilter: ",
    "plugin DeferredPodScheduling was added, at filter, permit, preFilter: ",
    "plugin DynamicResources implements podGroupPostFilter: ",
    "plugin NodeName implements preFilter: ",
    "plugin NodeUnschedulable implements preFilter: ",
    "plugin TaintToleration implements preFilter: ",
    "default of profiles[0].plugins.multiPoint.enabled[2].name: 'NodeName', on record 'NodeUnsch",
    "default of profiles[0].plugins.multiPoint.enabled[3].name: 'NodeUnschedulable', on record ",
    "gate GenericWorkload decides on default plugins: ",
    "gate InPlacePodVerticalScalingSchedulerPreemption decides on default plugins: ",
    "gate GangScheduling was off and is absent: ",
    "gate StorageCapacityScoring was off and is on: ",
    'configuration "written by hand: shape without its gate": valid, on record: ',
)

FOLLOWS = (
    "configuration", "default of profiles[0].plugins.podGroupPostFilter: ",
    "default of profiles[0].pluginConfig[7].args.shape: ", "gate DRAResourceClaimDeviceStatus was ",
    "gate NodeDeclaredFeatures was ",
    "gate InPlacePodVerticalScalingSchedulerPreemption was absent ",
)  # fmt: skip
"""What follows from these changes, and gates that were locked to their default."""


def test_the_changes_of_1_37_are_found_by_what_was_known_of_1_36() -> None:
    found = list(changes(releases.PINNED[37], releases.PINNED[36], with_program=False))
    for begins in CHANGED_IN_37:
        assert sum(line.startswith(begins) for line in found) == 1, begins
    others = [line for line in found if not line.startswith((*CHANGED_IN_37, *FOLLOWS))]
    assert others == []
