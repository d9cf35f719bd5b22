from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.simulate.missing_pods import MissingPods, missing_pods
from kube_scheduler_operator.simulate.owners import pods_of, workload_of
from kube_scheduler_operator.simulate.selector_constraints import demanded_labels
from kube_scheduler_operator.simulate.world import World

QUOTA = (
    'pods "web-5d9-x7k2p" is forbidden: exceeded quota: compute, requested: requests.cpu=1, '
    "used: requests.cpu=2, limited: requests.cpu=2"
)


def owned(kind: str, name: str, owner: str = "", **parts: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": "shop"}
    if owner:
        of, _, by = owner.partition("/")
        reference = {"apiVersion": "apps/v1", "kind": of, "name": by, "uid": by, "controller": True}
        metadata["ownerReferences"] = [reference]
    group = "v1" if kind in ("Pod", "ReplicationController") else "apps/v1"
    metadata.update(parts.pop("metadata", {}))
    return {"apiVersion": group, "kind": kind, "metadata": metadata, **parts}


def refused(message: str, **status: Any) -> dict[str, Any]:
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate"}
    return {"conditions": [{**condition, "message": message}], **status}


def world(*objects: dict[str, Any]) -> World:
    found = World()
    for obj in objects:
        assert found.add(obj)
    return found


def test_pods_of_a_deployment_are_those_of_its_replica_sets_and_those_that_wait_come_first() -> (
    None
):
    def pod(name: str, owner: str, day: int, node: str = "") -> dict[str, Any]:
        created = {"creationTimestamp": f"2026-01-0{day}T00:00:00Z"}
        return owned("Pod", name, owner, spec={"nodeName": node} if node else {}, metadata=created)

    cluster = world(
        owned("ReplicaSet", "web-1", "Deployment/web"),
        owned("ReplicaSet", "web-2", "Deployment/web"),
        owned("ReplicaSet", "web-3", "Deployment/web-3"),
        pod("runs", "ReplicaSet/web-1", 1, "node"),
        pod("waits-since-3", "ReplicaSet/web-2", 3),
        pod("waits-since-2", "ReplicaSet/web-2", 2),
        pod("another", "ReplicaSet/web-3", 1),
        pod("of-a-stateful-set", "StatefulSet/web", 1),
    )
    found = [each["metadata"]["name"] for each in pods_of(cluster, "Deployment", "shop", "web")]
    assert found == ["waits-since-2", "waits-since-3", "runs"]
    assert pods_of(cluster, "Deployment", "other", "web") == []
    (pod_of_set,) = pods_of(cluster, "StatefulSet", "shop", "web")
    assert pod_of_set["metadata"]["name"] == "of-a-stateful-set"


def test_a_quota_is_named_with_the_deployment_whose_pods_it_keeps_away() -> None:
    replica_set = owned(
        "ReplicaSet", "web-5d9", "Deployment/web", spec={"replicas": 5},
        status=refused(QUOTA, replicas=2),
    )  # fmt: skip
    cluster = world(
        replica_set,
        owned("Pod", "one", "ReplicaSet/web-5d9"),
        owned("Pod", "two", "ReplicaSet/web-5d9"),
        owned("Pod", "another", "ReplicaSet/other"),
    )
    (found,) = missing_pods(cluster)
    assert found == MissingPods(
        "Deployment/web",
        "shop",
        3,
        "exceeded quota: compute, requested: requests.cpu=1, used: requests.cpu=2, "
        "limited: requests.cpu=2",
        "raise ResourceQuota shop/compute, or request less",
    )
    assert missing_pods(cluster, "other") == []


def test_missing_pods_are_counted_from_the_pods_because_a_status_is_written_later() -> None:
    def pods_missing(*pods: dict[str, Any], replicas: int) -> int:
        status = refused(QUOTA, replicas=replicas)
        replica_set = owned("ReplicaSet", "web", spec={"replicas": 3}, status=status)
        (found,) = missing_pods(world(replica_set, *pods))
        return found.count

    created = owned("Pod", "created", "ReplicaSet/web")
    deletion = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    deleted = owned("Pod", "deleted", "ReplicaSet/web", metadata=deletion)
    assert pods_missing(created, replicas=0) == 2
    assert pods_missing(created, replicas=2) == 2
    assert pods_missing(created, deleted, replicas=3) == 2


@pytest.mark.parametrize(
    ("message", "cause", "fix"),
    [
        pytest.param(
            'pods "a" is forbidden: failed quota: compute: must specify limits.cpu for: c',
            "failed quota: compute: must specify limits.cpu for: c",
            "set limits.cpu of c, as ResourceQuota shop/compute requires",
            id="a quota that demands a limit",
        ),
        pytest.param(
            'pods "a" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot != true',
            'violates PodSecurity "restricted:latest": runAsNonRoot != true',
            "change what it names in the template of the pods, or let namespace shop run them: the "
            "label pod-security.kubernetes.io/enforce, which is restricted",
            id="admission",
        ),
        pytest.param(
            'pods "a" is forbidden: error looking up service account shop/web: serviceaccount '
            '"web" not found',
            'error looking up service account shop/web: serviceaccount "web" not found',
            "create ServiceAccount shop/web, or correct serviceAccountName",
            id="a missing account",
        ),
        pytest.param(
            'admission webhook "deny.example.com" denied the request: no',
            'admission webhook "deny.example.com" denied the request: no',
            "change what it names; admission webhook deny.example.com forbids it",
            id="a webhook",
        ),
        pytest.param(
            'Internal error occurred: failed calling webhook "add.example.com": timeout',
            'Internal error occurred: failed calling webhook "add.example.com": timeout',
            "make the service of admission webhook add.example.com answer",
            id="a webhook without an answer",
        ),
        pytest.param(
            'pods "a" is forbidden: failed quota: all: must specify limits.cpu for: a,b; '
            "requests.memory for: b",
            "failed quota: all: must specify limits.cpu for: a,b; requests.memory for: b",
            "set limits.cpu of a,b, requests.memory of b, as ResourceQuota shop/all requires",
            id="a quota that demands several amounts",
        ),
        pytest.param(
            'pods "a" is forbidden: no PriorityClass with name high was found',
            "no PriorityClass with name high was found",
            "create PriorityClass high, or correct priorityClassName",
            id="a missing class of priority",
        ),
        pytest.param(
            'pods "a" is forbidden: pod rejected: RuntimeClass "kata" not found',
            'pod rejected: RuntimeClass "kata" not found',
            "create RuntimeClass kata, or correct runtimeClassName",
            id="a missing runtime",
        ),
        pytest.param(
            'pods "a" is forbidden: [maximum cpu usage per Container is 1, but limit is 2]',
            "[maximum cpu usage per Container is 1, but limit is 2]",
            "set the limit of cpu of the containers to at most 1, or change max.cpu of the "
            "LimitRange of namespace shop: kubectl describe limitrange -n shop",
            id="a limit of containers",
        ),
        pytest.param(
            'pods "a" is forbidden: [minimum memory usage per Pod is 1.5Gi.  No request is '
            "specified, maximum cpu usage per Container is 2.  No limit is specified]",
            "[minimum memory usage per Pod is 1.5Gi.  No request is specified, maximum cpu usage "
            "per Container is 2.  No limit is specified]",
            "set the request of memory of the pod to at least 1.5Gi, or change min.memory of the "
            "LimitRange of namespace shop, and set the limit of cpu of the containers to at most "
            "2, or change max.cpu of the LimitRange of namespace shop: kubectl describe limitrange "
            "-n shop",
            id="two limits",
        ),
        pytest.param(
            "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical "
            "system-cluster-critical]}]",
            "insufficient quota to match these scopes: [{PriorityClass In [system-node-critical "
            "system-cluster-critical]}]",
            "create a ResourceQuota in namespace shop whose scopeSelector has scopeName "
            "PriorityClass, operator In and the class of the pods, or use a priorityClassName "
            "other than system-node-critical system-cluster-critical: the API server admits pods "
            "of these classes only where such a quota is",
            id="a class of priority that only quotas admit",
        ),
        pytest.param(
            'Pod "a" is invalid: spec.containers[0].resources.requests: Invalid value: "1Gi": must '
            "be less than or equal to memory limit of 512Mi",
            'spec.containers[0].resources.requests: Invalid value: "1Gi": must be less than or '
            "equal to memory limit of 512Mi",
            "set the limit of memory to at least the request of it",
            id="a request beyond its limit",
        ),
        pytest.param("", "FailedCreate", "", id="without a message"),
    ],
)
def test_the_reason_of_the_api_server_is_shown_without_the_name_of_a_pod_that_does_not_exist(
    message: str, cause: str, fix: str
) -> None:
    controller = owned(
        "ReplicationController", "old", spec={"replicas": 1}, status=refused(message)
    )
    (found,) = missing_pods(world(controller))
    assert (found.owner, found.cause, found.fix) == ("ReplicationController/old", cause, fix)


@pytest.mark.parametrize(
    ("message", "fix"),
    [
        (
            "maximum memory usage per Container is 4Gi, but limit is 8Gi",
            "set the limit of memory of the containers to at most 4Gi, or change max.memory of the "
            "LimitRange shop/big: kubectl describe limitrange -n shop",
        ),
        (
            "must be less than or equal to memory limit of 512Mi",
            "set the limit of memory to at least the request of it; a container without one gets "
            "512Mi from LimitRange shop/default",
        ),
    ],
)
def test_the_limit_range_that_refuses_pods_is_named(message: str, fix: str) -> None:
    limits = {
        "default": {"type": "Container", "default": {"memory": "512Mi"}},
        "big": {"type": "Container", "max": {"memory": "4Gi"}},
        "other": {"type": "Pod", "max": {"memory": "4Gi", "cpu": "1"}},
    }
    ranges = [owned("LimitRange", name, spec={"limits": [one]}) for name, one in limits.items()]
    for one in ranges:
        one["apiVersion"] = "v1"
    replica_set = owned("ReplicaSet", "web", spec={"replicas": 1}, status=refused(message))
    (found,) = missing_pods(world(replica_set, *ranges))
    assert found.fix == fix


def test_an_old_pod_that_is_being_deleted_is_awaited_instead_of_ending_another_one() -> None:
    running = {
        "nodeName": "a",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}],
    }
    deletion = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    cluster = world(
        owned("ReplicaSet", "web-1", "Deployment/web", spec={"replicas": 1}),
        owned("ReplicaSet", "web-5d9", "Deployment/web", spec={"replicas": 1},
              status=refused(QUOTA)),
        owned("Pod", "one", "ReplicaSet/web-1", spec=running),
        owned("Pod", "two", "ReplicaSet/web-1", spec=running, metadata=deletion),
    )  # fmt: skip
    (found,) = missing_pods(cluster)
    assert found.fix == (
        "let pod shop/two end, which is being deleted and counts in the quota until it is gone; or "
        "raise ResourceQuota shop/compute, or request less"
    )


def test_a_workload_that_has_all_its_pods_or_no_failure_misses_none() -> None:
    message = refused(QUOTA, replicas=2)
    assert missing_pods(
        world(
            owned("ReplicaSet", "complete", spec={"replicas": 2}, status=message),
            owned("Pod", "one", "ReplicaSet/complete"),
            owned("Pod", "two", "ReplicaSet/complete"),
            owned("ReplicaSet", "starting", spec={"replicas": 2}, status={"replicas": 0}),
            owned("ReplicaSet", "resolved", spec={"replicas": 2}, status={
                "conditions": [{"type": "ReplicaFailure", "status": "False"}]
            }),
        )
    ) == []  # fmt: skip


def test_all_that_is_used_up_of_quotas_is_named_at_once() -> None:
    """The API server names what a container has to specify first, and then one quota."""
    hard, used = {"pods": "7", "requests.cpu": "1"}, {"pods": "7", "requests.cpu": "200"}
    named = "pods of ResourceQuota q (7 of 7 used)"
    quota = owned("ResourceQuota", "q", spec={"hard": hard}, status={"hard": hard, "used": used})
    quota["apiVersion"] = "v1"

    def fix(message: str) -> str:
        status = refused(f'pods "a" is forbidden: {message}')
        replica_set = owned("ReplicaSet", "web", spec={"replicas": 3}, status=status)
        (found,) = missing_pods(world(replica_set, quota))
        return found.fix

    assert fix("failed quota: q: must specify requests.cpu for: pause") == (
        "set requests.cpu of pause, as ResourceQuota shop/q requires; and raise "
        f"{named}, requests.cpu of ResourceQuota q (200 of 1 used)"
    )
    exceeded = "exceeded quota: {}, requested: {}=1, used: {}=7, limited: {}=7"
    assert fix(exceeded.format("q", *["pods"] * 3)) == (
        "raise ResourceQuota shop/q, or delete other pods"
    )
    assert fix(exceeded.format("other", *["requests.cpu"] * 3)) == (
        f"raise ResourceQuota shop/other, or request less; and raise {named}"
    )
    quota["spec"]["scopes"] = ["BestEffort"]
    assert "raise" not in fix("failed quota: q: must specify requests.cpu for: pause")


@pytest.mark.parametrize(("old", "helps"), [("1", True), ("500m", False)])
def test_an_old_pod_of_a_rollout_makes_room_in_a_quota_if_it_uses_enough(
    old: str, helps: bool
) -> None:
    running = {
        "nodeName": "a",
        "containers": [{"name": "c", "resources": {"requests": {"cpu": old}}}],
    }
    cluster = world(
        owned("ReplicaSet", "web-1", "Deployment/web", spec={"replicas": 1}),
        owned("ReplicaSet", "web-5d9", "Deployment/web", spec={"replicas": 1},
              status=refused(QUOTA)),
        owned("Pod", "one", "ReplicaSet/web-1", spec=running),
    )  # fmt: skip
    (found,) = missing_pods(cluster)
    earlier = (
        "let an old pod end before a new one starts: set maxSurge to 0 and maxUnavailable to 1 in "
        "Deployment shop/web; or "
    )
    assert (
        found.fix
        == (earlier if helps else "") + "raise ResourceQuota shop/compute, or request less"
    )


@pytest.mark.parametrize(
    ("hashed", "listed", "workload"),
    [
        ("5d9", True, "Deployment/web"),
        ("5d9", False, "Deployment/web"),  # by the label, also without the ReplicaSet
        ("7c1", False, "ReplicaSet/web-5d9"),
    ],
)
def test_a_pod_of_a_deployment_shows_it(hashed: str, listed: bool, workload: str) -> None:
    labels = {"labels": {"pod-template-hash": hashed}}
    pod = owned("Pod", "one", "ReplicaSet/web-5d9", metadata=labels)
    made = [owned("ReplicaSet", "web-5d9", "Deployment/web")] if listed else []
    cluster = world(*made, pod)
    assert workload_of(cluster, pod) == workload
    kind, _, name = workload.partition("/")
    assert [one["metadata"]["name"] for one in pods_of(cluster, kind, "shop", name)] == ["one"]


def test_labels_that_a_pod_demands_are_part_of_a_cause() -> None:
    expressions = [{"key": "zone", "operator": "In", "values": ["a", "b"]}]
    daemons = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}
    terms = [{"matchExpressions": expressions}, daemons]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    affinity = {"affinity": {"nodeAffinity": required}}
    assert demanded_labels({}) == ""
    assert demanded_labels({"nodeSelector": {"disk": "ssd", "cpu": "x"}}) == "cpu=x, disk=ssd"
    assert demanded_labels(affinity | {"nodeSelector": {"d": "e"}}) == "d=e, zone in (a,b)"
