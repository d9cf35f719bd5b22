"""The upgrade from the release in which the operator's objects on OpenShift had other names.

API server, controllers and both operators are real; the earlier one is today's program with the
former names. The test ends its process when its Pod goes, as a kubelet does.
"""

from __future__ import annotations

import hashlib
import os
import time
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from cluster.api import Api
from cluster.observe import KUBESCHEDULER, SCHEDULER, until
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.operator.engine.former_operator import WITHOUT_END

from .conftest import REPOSITORY
from .harness import Operator, Proxy
from .openshift_world import FLAGS, TARGET, World, control_plane

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = f"ou-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
NAMESPACE = OPENSHIFT.operator_namespace
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases"
FORMER, TODAY = names.PROGRAM, OPENSHIFT.operator.deployment
IDENTITY = (
    ("Impersonate-User", f"system:serviceaccount:{NAMESPACE}:{OPENSHIFT.operator.account}"),
    ("Impersonate-Group", "system:authenticated"),
)
EARLIER_RELEASE = """\
import sys
from dataclasses import replace
from kube_scheduler_operator.base import platform
earlier = replace(platform.OPENSHIFT, operator=platform.OperatorNames(), former_operator=None)
platform.PLATFORMS["openshift"] = earlier
from kube_scheduler_operator.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
"""The program `python -c` of the earlier release."""

FIRST = "First reconcile complete"

pytestmark = pytest.mark.timeout(180, func_only=True)


class Upgrade(World):
    """The cluster with an operator of the earlier release, and one of today that has not begun."""

    today: Operator

    @property
    def deployments(self) -> set[str]:
        found = self.api.request("GET", DEPLOYMENTS)["items"]
        return {one["metadata"]["name"] for one in found}

    def pods_of(self, deployment: str) -> list[str]:
        """The Pods of a Deployment, by its ReplicaSets' names."""
        found = self.api.request("GET", PODS)["items"]
        pods = [one["metadata"]["name"] for one in found]
        return [name for name in pods if name.rsplit("-", 2)[0] == deployment]

    def objects(self) -> dict[str, Any]:
        """What operators make in the target namespace, and the users' objects."""
        kinds = ("configmaps", "secrets", "serviceaccounts")
        found = {
            f"{kind} {one['metadata']['name']}": (one["metadata"]["uid"], one.get("data"))
            for kind in kinds
            for one in self.api.request("GET", f"{TARGET}/{kind}")["items"]
        }
        users = {path: self.api.request("GET", path)["spec"] for path in (KUBESCHEDULER, SCHEDULER)}
        return found | users


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgrade]:
    with control_plane(NAME) as sandbox:
        operators, proxies = [], []
        for which in (FORMER, TODAY):
            proxies.append(Proxy(sandbox))
            folder = tmp_path_factory.mktemp(which)
            operators.append(Operator(proxies[-1], folder, f"pod-of-{which}"))
        former, today = operators
        former.program = ("-c", EARLIER_RELEASE)
        proxies[1].identity = IDENTITY
        found = Upgrade(sandbox, Api(sandbox), former)
        found.today = today
        try:
            install_earlier_release(found, tmp_path_factory.mktemp("earlier"))
            former.start(*FLAGS)
            until(lambda: found.latest == 1, 30, lambda: f"no revision: {former.text()[-3000:]}")
            yield found
        finally:
            for operator in operators:
                operator.kill()
            for proxy in proxies:
                proxy.close()


def install_earlier_release(world: World, folder: Path) -> None:
    """Apply its Deployment, account and rights: those of deploy/base in OpenShift's namespace."""
    labels = {"pairs": {names.PART_OF_LABEL: names.PROGRAM}, "includeTemplates": True}
    overlay = {
        "namespace": NAMESPACE,
        "resources": [os.path.relpath(REPOSITORY / "deploy/base", folder.resolve())],
        "labels": [labels],
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    world.oc("apply", "--server-side", "-k", str(folder))


def install_todays_release(world: World) -> None:
    folder = REPOSITORY / "deploy/openshift"
    world.oc("apply", "--server-side", "--force-conflicts", "-k", str(folder))


def edited(world: World, reason: str) -> int:
    """Force a revision; its number."""
    world.next_revision("PATCH", KUBESCHEDULER, {"spec": {"forceRedeploymentReason": reason}})
    return world.latest


def test_one_operator_is_left_and_nothing_is_lost(world: Upgrade) -> None:
    assert edited(world, "before the upgrade") == 2
    until(lambda: world.pods_of(FORMER), 60, "no Pods of the earlier release")

    install_todays_release(world)
    world.today.start(*FLAGS, wait=False)
    until(lambda: FORMER not in world.deployments, 60, lambda: world.today.text()[-3000:])
    until(lambda: not world.pods_of(FORMER), 60, "the Pods of the earlier release stay")

    # Its process has not ended: it leads, and today's operator waits.
    assert edited(world, "during the upgrade") == 3
    assert FIRST not in world.today.text()
    before = world.objects()

    assert world.operator.stop() == 0
    until(lambda: FIRST in world.today.text(), 60, lambda: world.today.text()[-3000:])
    assert edited(world, "after the upgrade") == 4
    after = world.objects()
    copies = [name for name in before if name.startswith("configmaps") and name[-1].isdigit()]
    assert len(copies) == 15, "three revisions"
    kept = {name: after.get(name) for name in (*copies, SCHEDULER)}
    assert kept == {name: before[name] for name in kept}
    assert set(before) <= set(after)
    assert world.deployments == {TODAY}
    reported = world.oc("-n", NAMESPACE, "get", "events")
    assert "FormerOperatorDeleted" in reported
    assert "forbidden" not in world.today.text(), "the rights of deploy/openshift are enough"


def test_an_earlier_release_that_is_applied_again_makes_no_second_leader(
    world: Upgrade, tmp_path: Path
) -> None:
    """It takes the rights of today's operator, which its own release gives back."""
    lease = world.api.request("GET", f"{LEASES}/{names.LEASE}")["spec"]
    assert (lease["holderIdentity"], lease["leaseDurationSeconds"]) == (TODAY, WITHOUT_END)
    world.operator.start(*FLAGS, wait=False)

    def serves() -> bool:
        return "Serving metrics and health" in world.operator.latest_text()

    until(serves, 60, "it does not start")
    # Between the two, today's operator has no rights, and waits.
    install_earlier_release(world, tmp_path)
    install_todays_release(world)
    time.sleep(3)  # longer than between two renewals
    latest = world.latest
    assert edited(world, "with a standby of the earlier release") == latest + 1
    assert FIRST not in world.operator.latest_text()
    assert world.api.request("GET", f"{LEASES}/{names.LEASE}")["spec"] == lease
