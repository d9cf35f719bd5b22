"""Clusters that people have reported, rebuilt small: `why` names what they found at last.

The cluster is in files and the kube-scheduler is real.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pytest

from .test_why import HOST, ZONE, Files, Object, node, pod
from .test_why_changes import Ask
from .test_why_changes import why as why_fixture

pytestmark = [pytest.mark.presubmit, pytest.mark.timeout(180, func_only=True)]

why = why_fixture
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
GROUP: Final = "leaderworkerset.sigs.k8s.io/group-key"


@dataclass(frozen=True)
class Reported:
    """A world, and parts of what is said: of a cause, of the first change and of no sentence."""

    arrange: Callable[[Files], object]
    cause: str
    first: str
    never: tuple[str, ...] = ()
    nodes: tuple[str, ...] | None = None  # where it fits after the first change


def owned(made: Object, kind: str, name: str) -> Object:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    return made


def workload(kind: str, name: str, **spec: Any) -> Object:
    selector = {"matchLabels": {"app": name}}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": []}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": selector, "template": template, **spec},
    }


def _apart(key: str, **selector: Any) -> Object:
    return {"podAntiAffinity": {REQUIRED: [{"topologyKey": key, "labelSelector": selector}]}}


def _one_node(files: Files) -> None:
    for name in "bc":
        del files.objects["Node", name]


def _replicas_apart(files: Files) -> None:
    """nacos-group/nacos-k8s#328: three replicas and one node."""
    _one_node(files)
    rule = _apart(HOST, matchLabels={"app": "web"})
    files.add(workload("StatefulSet", "web"))
    files.add(owned(pod("web-0", nodeName="a", affinity=rule), "StatefulSet", "web"))
    owned(files.waiting, "StatefulSet", "web")["spec"]["affinity"] = rule


def _group_alone(name: str, group: str, **spec: Any) -> Object:
    own = {"matchExpressions": [{"key": GROUP, "operator": "In", "values": [group]}]}
    others = [
        {"key": GROUP, "operator": "Exists"},
        {"key": GROUP, "operator": "NotIn", "values": [group]},
    ]
    rules = {"podAffinity": {REQUIRED: [{"topologyKey": ZONE, "labelSelector": own}]}}
    rules |= _apart(ZONE, matchExpressions=others)
    made = owned(pod(name, affinity=rules, **spec), "StatefulSet", name)
    made["metadata"]["labels"][GROUP] = group
    return made


def _groups_in_every_zone(files: Files) -> None:
    """kubernetes-sigs/lws#539: groups that have their zones alone."""
    files.add(_group_alone("first", "8fb2", nodeName="a"))
    files.add(_group_alone("second", "77aa", nodeName="c"))
    files.add(_group_alone("waiting", "99cc"))


REPORTED: Final = [
    Reported(
        _replicas_apart,
        "pod default/web-0 with app=web runs in kubernetes.io/hostname a",
        "add a node like a",
        ("change the label", "has anti-affinity to pods"),
    ),
    Reported(
        _groups_in_every_zone,
        "pod default/second with",
        f"add a node like a with another value of {ZONE}",
        ("demands", "change the label"),
    ),
]


@pytest.mark.parametrize("reported", REPORTED, ids=lambda one: one.arrange.__name__.strip("_"))
def test_what_people_found_is_said(reported: Reported, why: Ask) -> None:
    files = Files()
    reported.arrange(files)
    document = why([*files.objects.values()])
    causes = [cause["text"] for group in document["groups"] for cause in group["causes"]]
    texts = [fix["text"] for fix in document["fixes"]]
    assert any(reported.cause in text for text in causes), causes
    assert reported.first in texts[0], texts
    for words in reported.never:
        assert not any(words in text for text in (*causes, *texts)), words
    if reported.nodes is not None:
        assert tuple(sorted(document["fixes"][0]["nodes"])) == reported.nodes


def test_an_anti_affinity_of_a_workload_ends_for_all_its_pods(why: Ask) -> None:
    files = Files()
    _replicas_apart(files)
    (fix,) = (fix for fix in why([*files.objects.values()])["fixes"] if fix["kind"] == "drop")
    assert fix["text"] == (
        "remove the pod anti-affinity to pods with app=web per kubernetes.io/hostname, then delete "
        "pod default/web-0, which has it as well"
    )
    where = "spec.template.spec.affinity.podAntiAffinity"
    assert [(edit["object"], edit["field"]) for edit in fix["patch"]] == [
        ("StatefulSet default/web", f"{where}.{REQUIRED}[0]"), ("Pod default/web-0", ""),
    ]  # fmt: skip


def test_a_namespace_that_kube_scheduler_counts_by_mistake_is_named(why: Ask) -> None:
    """kubernetes/kubernetes#141526; versions with its repair place the pod."""
    files = Files()
    _one_node(files)
    files.add(node("a", "x"))
    chosen = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["default"]}
    rule = _apart(HOST, matchLabels={"app": "web"})
    rule["podAntiAffinity"][REQUIRED][0]["namespaceSelector"] = {"matchExpressions": [chosen]}
    files.waiting["spec"]["affinity"] = rule
    files.running()
    files.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    document = why([*files.objects.values()])
    if not document["candidates"]:
        ((cause,),) = (group["causes"] for group in document["groups"])
        assert "but this version of kube-scheduler counts it" in cause["text"]
        first = document["fixes"][0]
        assert first["text"].startswith("set the namespaces of the pod anti-affinity to other")
        assert first["nodes"] == ["a"]
