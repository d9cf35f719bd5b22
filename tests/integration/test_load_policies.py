"""Load policies on a real API server, with the real controllers.

The operator is the ServiceAccount that deploy/kubeadm makes: what it is not granted it cannot do.
Deployments, DaemonSets, Jobs and the garbage collector are the real ones; a kubelet is played, and
so are the annotator's reports.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from cluster import hollow

from ..imitation import kubelet
from .harness import NAMESPACE, now
from .played_cluster import APPS, CORE, GROUP, PlayedCluster, brought_up

KIND = f"{GROUP}/loadpolicies"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
STATE, JOB = f"{CORE}/configmaps/load-state", f"{JOBS}/load-cleanup"
LABEL = "kube-scheduler-operator.dev/load-policy"
NODES = 3

# These tests share one cluster and must run in one process, in order.
pytestmark = pytest.mark.timeout(600, func_only=True)


class World(PlayedCluster):
    """The cluster of these tests; its kubelet lets every pod be Ready.

    Jobs end according to `jobs_end`.
    """

    kind, objects, label = "LoadPolicy", KIND, LABEL
    makes = (
        f"{CORE}/configmaps", f"{CORE}/pods", f"{APPS}/deployments", f"{APPS}/daemonsets",
        f"{APPS}/replicasets", JOBS,
    )  # fmt: skip
    jobs_end = "Succeeded"  # what becomes of a Job's pod: Succeeded, Failed, or "" for nothing

    def pending(self, pod: dict[str, Any]) -> None:
        (container,) = pod["spec"]["containers"]
        if pod["spec"]["restartPolicy"] != "OnFailure":
            self.becomes_ready(pod)
        elif self.jobs_end:
            code = 0 if self.jobs_end == "Succeeded" else 1
            self.report(pod, **kubelet.ended_status(container["name"], code, "", now()))

    # --- the annotator ------------------------------------------------------------------------

    def cycle(self, name: str, **fields: Any) -> None:
        """Write the annotator's report of a cycle."""
        text = self.get(f"{CORE}/configmaps/load-policy-{name}")["data"]["policy.json"]
        state = {
            "at": now(),
            "nodes": NODES, "known": NODES, "staleCount": 0, "missingCount": 0,
            "policy": hashlib.sha256(text.encode()).hexdigest()[:10],
            **fields,
        }  # fmt: skip
        self.api.request("PATCH", STATE, {"data": {"state.json": json.dumps(state)}})

    def may(self, verb: str, resource: str, *, group: str = "", name: str = "") -> bool:
        """Whether its ServiceAccount may."""
        plural, _, subresource = resource.partition("/")
        namespaced = plural in ("configmaps", "leases", "secrets")
        attributes = {"verb": verb, "group": group, "resource": plural, "name": name}
        attributes |= {"subresource": subresource} if subresource else {}
        attributes |= {"namespace": NAMESPACE} if namespaced else {}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": f"system:serviceaccount:{NAMESPACE}:load-annotator",
                "groups": ["system:authenticated", "system:serviceaccounts"],
                "resourceAttributes": attributes,
            },
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(self.api.request("POST", path, review)["status"]["allowed"])

    # --- what is there ------------------------------------------------------------------------

    def wait_condition(self, name: str, type_: str, status: str, reason: str = "") -> str:
        def there() -> bool:
            found = self.condition(name, type_)
            return found[0] == status and reason in ("", found[1])

        self.wait(there, 60, lambda: self.get(f"{KIND}/{name}"))
        return self.condition(name, type_)[2]

    def installed(self, name: str, **spec: Any) -> None:
        """A LoadPolicy that is in force, whose programs run on every node and in every replica."""
        self.put(name, **spec)
        self.wait(lambda: self.exists(f"{APPS}/deployments/load-annotator-{name}"))
        self.wait(lambda: "first cycle" in self.condition(name, "Available")[2])
        self.cycle(name)
        self.wait_condition(name, "Available", "True")
        self.wait(lambda: self.ready(name) == (NODES, 2), 60, lambda: self.ready(name))
        self.wait_condition(name, "Degraded", "False")

    def ready(self, name: str) -> tuple[int, int]:
        """The number of exporters and of annotators that are Ready."""
        exporters = self.get(f"{APPS}/daemonsets/node-metrics-{name}")["status"]
        annotators = self.get(f"{APPS}/deployments/load-annotator-{name}")["status"]
        return exporters.get("numberReady", 0), annotators.get("readyReplicas", 0)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with brought_up(World, "lp", tmp_path_factory.mktemp("operator")) as found:
        hollow.create(found.api, NODES)
        found.start()
        yield found


@pytest.fixture
def mine(world: World) -> Iterator[str]:
    """The name of a LoadPolicy; all of it is gone after the test."""
    name = f"mine-{time.monotonic_ns() % 100000}"
    world.start()
    yield name
    world.jobs_end = "Succeeded"
    for policy in world.get(KIND)["items"]:
        world.delete(policy["metadata"]["name"])
    world.wait(lambda: world.made() == set(), 90, lambda: f"left: {world.made()}")


@pytest.mark.presubmit
def test_everything_is_made_with_the_operators_own_rights(world: World, mine: str) -> None:
    world.installed(mine)

    made = {one for one in world.made() if not one.startswith(("pods ", "replicasets "))}
    assert made == {
        f"configmaps load-policy-{mine}", "configmaps load-state",
        f"deployments load-annotator-{mine}", f"daemonsets node-metrics-{mine}",
    }  # fmt: skip
    status = world.get(f"{KIND}/{mine}")["status"]
    assert status["nodes"] == {"total": NODES, "known": NODES, "stale": 0, "missing": 0}
    # KubeScheduler gets its conditions after the object.
    world.wait(lambda: world.message_of("LoadPoliciesDegraded") == "")


@pytest.mark.presubmit
def test_the_annotators_account_may_do_its_work_and_no_more(world: World) -> None:
    leases, metrics = "coordination.k8s.io", "metrics.k8s.io"
    allowed = [
        *(world.may(verb, "nodes") for verb in ("get", "list", "watch", "patch")),
        *(world.may(verb, "pods") for verb in ("list", "watch")),
        world.may("list", "nodes", group=metrics),
        world.may("create", "leases", group=leases),
        *(world.may(v, "leases", group=leases, name="load-annotator") for v in ("get", "update")),
        world.may("patch", "configmaps", name="load-state"),
    ]
    assert all(allowed), allowed
    forbidden = [
        world.may("update", "leases", group=leases, name="kube-scheduler-operator-lock"),
        world.may("patch", "configmaps", name="config"),
        world.may("patch", "configmaps", name="load-policy-default"),
        world.may("get", "secrets"),
        world.may("delete", "nodes"),
        world.may("patch", "nodes/status"),
        world.may("delete", "pods"),
        world.may("get", "nodes/proxy"),
        world.may("get", "nodes/stats"),  # a token of load-kubelet-stats has it
    ]
    assert not any(forbidden), forbidden


def test_a_settled_operator_writes_nothing(world: World, mine: str) -> None:
    odd = {"cpu": "0.10", "memory": 67108864}
    world.installed(
        mine,
        source={"nodeMetrics": {"resources": {"requests": odd}, "args": ["--interval=1"]}},
        annotator={"resources": {"limits": odd}, "tolerations": []},
    )
    time.sleep(2)
    assert world.writes_within(5) == [], world.proxy.bodies


@pytest.mark.presubmit
def test_an_edit_reaches_the_file_and_restarts_nothing(world: World, mine: str) -> None:
    world.installed(mine)
    pods = {pod["metadata"]["uid"] for pod in world.pods()}

    world.put(mine, predicates=[{"name": "cpu_usage_avg_5m", "maxLimit": "50%"}])

    file = f"{CORE}/configmaps/load-policy-{mine}"
    world.wait(
        lambda: (
            json.loads(world.get(file)["data"]["policy.json"])["predicate"]
            == [{"name": "cpu_usage_avg_5m", "maxLimit": 0.5}]
        ),
        30,
    )
    assert {pod["metadata"]["uid"] for pod in world.pods()} == pods


def test_the_last_accepted_version_stays_in_use_after_a_restart(world: World, mine: str) -> None:
    good = [{"name": "cpu_usage_avg_5m", "maxLimit": 0.5}]
    world.installed(mine, predicates=good)
    file = f"{CORE}/configmaps/load-policy-{mine}"
    before = world.get(file)["data"]

    world.put(mine, craneTimeZone="Mars/Olympus")
    message = world.wait_condition(mine, "Accepted", "False", "LastAcceptedInUse")
    assert 'spec.craneTimeZone: unknown time zone "Mars/Olympus"; write UTC' in message
    world.operator.kill()
    world.api.request("DELETE", file)
    world.start()

    world.wait(lambda: world.exists(file))
    assert world.get(file)["data"] == before
    world.wait(lambda: "stays in use" in world.message_of("LoadPoliciesDegraded"))


def test_changed_objects_are_restored(world: World, mine: str) -> None:
    world.installed(mine)
    deployment = f"{APPS}/deployments/load-annotator-{mine}"
    daemon_set = f"{APPS}/daemonsets/node-metrics-{mine}"
    world.api.request("PATCH", deployment, {"spec": {"replicas": 7}})
    elsewhere = {"spec": {"template": {"spec": {"hostNetwork": False}}}}
    world.api.request("PATCH", daemon_set, elsewhere)
    world.api.request("PATCH", STATE, {"data": {"written": None}})
    world.wait(
        lambda: (
            world.get(deployment)["spec"]["replicas"] == 2
            and world.get(daemon_set)["spec"]["template"]["spec"].get("hostNetwork") is True
            and world.get(STATE)["data"].get("written") == "own"
        ),
        30,
        lambda: world.get(STATE),
    )
    assert world.get(STATE)["data"]["state.json"]


def test_another_source_removes_the_exporter(world: World, mine: str) -> None:
    world.installed(mine)
    world.put(mine, source={"type": "MetricsServer"})
    world.wait(lambda: not world.exists(f"{APPS}/daemonsets/node-metrics-{mine}"))
    assert world.exists(f"{APPS}/deployments/load-annotator-{mine}")


def test_annotations_that_are_no_longer_written_are_removed(world: World, mine: str) -> None:
    world.installed(mine, write=["crane"])
    assert world.get(STATE)["data"]["written"] == "own,crane"
    world.put(mine)
    file = f"{CORE}/configmaps/load-policy-{mine}"

    def removes() -> list[str]:
        found: list[str] = json.loads(world.get(file)["data"]["policy.json"])["remove"]
        return found

    world.wait(lambda: removes() == ["crane"], 30)
    world.cycle(mine, removed=["crane"])
    world.wait(lambda: removes() == [], 30)
    assert world.get(STATE)["data"]["written"] == "own"


def test_a_policy_that_is_deleted_while_no_operator_runs_is_cleaned_up(
    world: World, mine: str
) -> None:
    world.installed(mine, write=["safe"])
    world.jobs_end = ""
    world.operator.kill()

    world.delete(mine)

    world.wait(
        lambda: world.made() == {"configmaps load-state"},
        60,
        lambda: f"the garbage collector leaves {world.made()}",
    )
    world.start()
    world.wait(lambda: world.exists(JOB))
    (container,) = world.get(JOB)["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["--cleanup", "--annotations=own,safe"]
    world.operator.kill()
    world.jobs_end = "Succeeded"
    world.wait(lambda: world.get(JOB)["status"].get("succeeded") == 1, 60, lambda: world.get(JOB))
    world.start()
    world.wait(lambda: world.made() == set(), 60, lambda: f"left: {world.made()}")


def test_a_policy_that_comes_back_stops_the_job(world: World, mine: str) -> None:
    world.installed(mine, write=["crane"])
    world.jobs_end = ""
    world.delete(mine)
    world.wait(lambda: world.exists(JOB))

    world.put(mine)

    world.wait(lambda: not world.exists(JOB))
    world.wait(lambda: world.exists(f"{APPS}/deployments/load-annotator-{mine}"))
    assert world.get(STATE)["data"]["written"] == "own,crane"


def test_the_older_of_two_has_the_nodes_and_the_younger_follows(world: World, mine: str) -> None:
    world.installed(mine)
    time.sleep(1.1)  # creationTimestamp has seconds
    younger = f"{mine}-b"
    world.put(younger)
    message = world.wait_condition(younger, "Accepted", "False", "AnotherPolicy")
    assert f'LoadPolicy "{mine}" is older' in message
    assert not world.exists(f"{APPS}/deployments/load-annotator-{younger}")

    world.delete(mine)

    world.wait_condition(younger, "Accepted", "True")
    world.wait(lambda: world.exists(f"{APPS}/daemonsets/node-metrics-{younger}"))
    assert not world.exists(JOB)


def test_killed_at_every_write_it_ends_the_same(world: World, mine: str) -> None:
    rounds = 0
    for number in range(1, 100):
        name = f"{mine}-{number}"
        world.proxy.arm(number, world.operator.kill, after=number % 2 == 0)
        world.put(name)
        deployment = f"{APPS}/deployments/load-annotator-{name}"
        world.wait(
            partial(
                lambda name, deployment: (
                    world.proxy.killed
                    or (world.exists(deployment) and world.condition(name, "Accepted")[0] == "True")
                ),
                name=name,
                deployment=deployment,
            ),
        )
        struck = world.proxy.disarm()
        if struck:
            world.operator.kill()
            world.start()
        world.wait_condition(name, "Accepted", "True")
        world.wait(partial(world.exists, deployment))
        world.delete(name)
        world.wait(lambda: world.made() == set(), 90, lambda: f"left: {world.made()}")
        rounds += 1
        if not struck:
            break
    assert rounds > 4
