"""The changes that `why` names: their text, and what their patch does.

The cluster is in files, and the real kube-scheduler is asked again with each patch.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin

from ..seeds import some_in_presubmit
from .pending_kinds import CONFIGURATION, KINDS, NAMESPACE, Object, Situation
from .pending_kinds.as_files import edited, objects_of
from .test_why import HOST, ZONE, Files, pod

PAIRS: Final = 24
Ask = Callable[..., Any]
"""Returns the document of `why` about a pod, by default `waiting`, in files with objects."""


@pytest.fixture
def why(kube_scheduler_binary: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Ask:
    config, file = tmp_path / "config.json", tmp_path / "cluster.json"
    config.write_text(json.dumps(CONFIGURATION))

    def ask(objects: Sequence[Object], name: str = "default/waiting") -> Any:
        file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*objects]}))
        command = ["why", name, "--from-files", str(file), "--config", str(config), "-o", "json"]
        command += ["--kube-scheduler", str(kube_scheduler_binary)]
        assert kubectl_plugin(command) == 0, capsys.readouterr().err
        return json.loads(capsys.readouterr().out)

    return ask


def test_combined_changes_have_amounts_and_a_whole_patch(why: Ask) -> None:
    files = Files()
    files.waiting["spec"]["nodeSelector"] = {"disk": "tape"}
    files.requests()["cpu"] = "9"
    (fix,) = why([*files.objects.values()])["fixes"]
    assert fix["text"] == (
        "remove disk=tape from the nodeSelector, and request 4 of cpu instead of 9"
    )
    assert [(edit["field"], edit["to"]) for edit in fix["patch"]] == [
        ("spec.nodeSelector.disk", None),
        ("spec.containers[0].resources.requests.cpu", "4"),
    ]
    assert (fix["changes"], fix["kind"]) == (2, "drop")


def test_a_combination_with_a_change_of_no_known_object_has_no_patch(why: Ask) -> None:
    files = Files()
    files.requests()["cpu"] = "9"
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    files.waiting["spec"]["volumes"] = [volume]
    (fix,) = why([*files.objects.values()])["fixes"]
    assert fix["text"] == (
        "request 4 of cpu instead of 9, and see whether it exists "
        "(kubectl get persistentvolumeclaims -A), or create PersistentVolumeClaim data"
    )
    assert fix["patch"] == []


def test_of_what_no_node_has_nothing_is_requested(why: Ask) -> None:
    files = Files()
    resources = files.waiting["spec"]["containers"][0]["resources"]
    resources["requests"] |= {"cpu": "9", "example.com/gpu": "1"}
    resources["limits"] = {"example.com/gpu": "1"}
    (fix,) = why([*files.objects.values()])["fixes"]
    assert fix["text"] == "request no example.com/gpu, and request 4 of cpu instead of 9"
    assert fix["kind"] == "nothing"


def test_a_constraint_that_hides_behind_another_one_is_found(why: Ask) -> None:
    """kube-scheduler counts only the domains of nodes that the affinity admits: here none."""
    files = Files()
    for name in ("a", "b"):
        files.add(pod(f"on-{name}", nodeName=name))
    files.add(pod("full", app="other", nodeName="c"))
    files.nodes[2]["status"]["allocatable"]["pods"] = "1"
    files.waiting["spec"] |= {
        "nodeSelector": {"disk": "tape"},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ],
    }
    document = why([*files.objects.values()])
    causes = " ".join(each["text"] for group in document["groups"] for each in group["causes"])
    assert "maxSkew" not in causes
    (fix,) = document["fixes"]
    assert fix["text"].startswith("remove disk=tape from the nodeSelector, and use ScheduleAnyway")
    assert sorted(fix["nodes"]) == ["a", "b"]


def test_a_new_node_is_combined_with_a_change_where_all_nodes_are_full(why: Ask) -> None:
    files = Files()
    for one in files.nodes:
        one["status"]["allocatable"]["pods"] = "1"
    files.running()
    files.waiting["spec"]["nodeSelector"] = {"disk": "tape"}
    (fix,) = why([*files.objects.values()])["fixes"]
    assert fix["text"] in {
        f"add a node like {name}, and remove disk=tape from the nodeSelector" for name in "abc"
    }
    assert (fix["kind"], fix["patch"], len(fix["nodes"])) == ("drop", [], 1)


def test_no_node_gets_a_label_whose_value_another_rule_demands(why: Ask) -> None:
    files = Files()
    del files.nodes[1]["metadata"]["labels"]["disk"]
    files.waiting["spec"]["nodeSelector"] = {"disk": "tape"}
    expression = {"key": "disk", "operator": "NotIn", "values": ["hdd"]}
    terms = [{"matchExpressions": [expression]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    files.waiting["spec"]["affinity"] = {"nodeAffinity": required}
    label = "label a node: kubectl label node a disk=tape --overwrite (a is one of 3 such nodes)"
    found = {fix["text"]: fix["nodes"] for fix in why([*files.objects.values()])["fixes"]}
    assert found[label] == ["a", "b", "c"]
    expression |= {"operator": "In", "values": ["ssd"]}
    found = {fix["text"]: fix["nodes"] for fix in why([*files.objects.values()])["fixes"]}
    assert found == {"remove disk=tape from the nodeSelector": ["a", "c"]}


def test_no_label_is_advised_by_which_other_rules_group_nodes(why: Ask) -> None:
    """What was tried is the pod without its nodeSelector, in the domains of today."""
    files = Files()
    for one in files.nodes:
        one["metadata"]["labels"]["rack"] = one["metadata"]["name"]
    files.waiting["spec"]["nodeSelector"] = {"rack": "r"}
    rule = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    files.waiting["spec"]["topologySpreadConstraints"] = [{**rule, **selector}]
    texts = [fix["text"] for fix in why([*files.objects.values()])["fixes"]]
    assert texts == ["remove rack=r from the nodeSelector"]


def test_a_label_is_for_the_nodes_without_it(why: Ask) -> None:
    files = Files()
    del files.nodes[2]["metadata"]["labels"][ZONE]
    files.add(pod("on-a", nodeName="a"))
    files.waiting["spec"]["topologySpreadConstraints"] = [
        {
            "maxSkew": 1,
            "minDomains": 2,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    document = why([*files.objects.values()])
    own = {node: group["causes"][0]["scheduler"] for group in document["groups"]
           for node in group["nodes"]}  # fmt: skip
    words = "node(s) didn't match pod topology spread constraints"
    assert own == {"a": [words], "b": [words], "c": [f"{words} (missing required label)"]}
    nodes = {fix["text"]: fix["nodes"] for fix in document["fixes"]}
    assert nodes[f"label the nodes: kubectl label node c {ZONE}=VALUE"] == ["c"]
    assert sorted(nodes["remove minDomains"]) == ["a", "b"]


def _taint(files: Files) -> None:
    for one in files.nodes:
        one["spec"]["taints"] = [{"key": "k", "value": "v", "effect": "NoSchedule"}]
    files.waiting["spec"]["tolerations"] = [{"key": "other", "operator": "Exists"}]


def _cordon(files: Files) -> None:
    for one in files.nodes:
        one["spec"]["unschedulable"] = True


def _too_much(files: Files) -> None:
    files.running("2")
    files.requests()["cpu"] = "3"


def _wrong_label(files: Files) -> None:
    files.waiting["spec"]["nodeSelector"] = {"disk": "ssd", "example.com/gpu": "yes"}


def _spread(files: Files) -> None:
    rule = {"maxSkew": 1, "topologyKey": HOST, "whenUnsatisfiable": "DoNotSchedule"}
    selector = {"labelSelector": {"matchLabels": {"app": "web"}}}
    files.waiting["spec"]["topologySpreadConstraints"] = [rule | selector | {"minDomains": 5}]
    files.running()


def _port(files: Files) -> None:
    ports = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    files.running()
    for one in [*files.objects.values()]:
        if one["kind"] == "Pod":
            one["spec"]["containers"][0]["ports"] = [*ports]


def _apart(files: Files) -> None:
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "web"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    files.waiting["spec"]["affinity"] = {"podAntiAffinity": required}
    files.running()


def _several(files: Files) -> None:
    _wrong_label(files)
    files.requests()["cpu"] = "9"


@pytest.mark.parametrize(
    "arrange",
    [_taint, _cordon, _too_much, _wrong_label, _spread, _port, _apart, _several],
    ids=lambda arrange: arrange.__name__,
)
def test_the_patch_of_a_fix_makes_the_pod_fit_on_its_nodes(
    why: Ask, arrange: Callable[[Files], None]
) -> None:
    files = Files()
    arrange(files)
    objects = [*files.objects.values()]
    fixes = [fix for fix in why(objects)["fixes"] if fix["kind"] != "node"]
    assert fixes
    for fix in fixes:
        assert fix["patch"], fix
        changed = why(edited(objects, fix["patch"]))
        assert sorted(changed["candidates"]) == sorted(fix["nodes"]), fix


@pytest.mark.parametrize("seed", some_in_presubmit(list(range(PAIRS)), 3))
def test_a_pod_that_waits_for_two_reasons_fits_on_the_named_nodes_after_the_patch(
    seed: int, why: Ask
) -> None:
    chosen = random.Random(f"two causes {seed}").sample(list(KINDS), 2)
    situation = Situation(f"two-{seed}")
    for name in chosen:
        try:
            KINDS[name].arrange(situation)
        except (IndexError, KeyError):
            pytest.skip(f"{chosen} cannot be combined")
    pod_name = f"{NAMESPACE}/{situation.waiting['metadata']['name']}"
    objects = objects_of(situation)
    for fix in why(objects, pod_name)["fixes"]:
        if fix["patch"]:
            after = why(edited(objects, fix["patch"]), pod_name)
            assert set(fix["nodes"]) <= set(after["candidates"]), (chosen, fix)
