"""What is adopted from all nodes, and how it is remembered."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED, OPENSHIFT
from kube_scheduler_operator.operator.controlplane.adoption.adopted import (
    NOTHING,
    Adopted,
    adopted,
    adoption_conditions,
)
from kube_scheduler_operator.operator.controlplane.desired import desired_content, facts_of
from kube_scheduler_operator.operator.controlplane.revision.history import read
from kube_scheduler_operator.operator.model.snapshot import Snapshot

from .....builders import (
    config_map,
    kubescheduler,
    node,
    node_status,
    operand_pod,
    scheduler,
    snapshot,
)
from .....customised import CUSTOMISED, customised

STOCK: dict[str, Any] = json.loads(Path(__file__).with_name("kubeadm-mirror-pod.json").read_text())


def on(node_name: str, *names_: str, **changes: Any) -> dict[str, Any]:
    pod = customised(STOCK, *names_)
    pod["metadata"]["name"] = f"kube-scheduler-{node_name}"
    pod["spec"]["nodeName"] = node_name
    pod["spec"]["containers"][0] |= changes
    return pod


def cluster(pods: dict[str, Any], **fields: Any) -> Snapshot:
    given: dict[str, Any] = {
        "server_version": "v1.35.4",
        "scheduler": scheduler(),
        "kubescheduler": kubescheduler(),
        "nodes": {name: node(name) for name in pods},
        "operand_pods": pods,
    }
    return snapshot(**{**given, **fields})


def revision(number: int, record: str, outcome: str = names.OUTCOME_INSTALLED) -> dict[str, Any]:
    """The ConfigMaps of a revision with a record."""
    status = config_map(f"revision-status-{number}", revision=str(number))
    status["metadata"]["annotations"] = {
        names.REVISION_READY_ANNOTATION: "true",
        **({names.OUTCOME_ANNOTATION: outcome} if outcome else {}),
    }
    pod = config_map(
        f"kube-scheduler-pod-{number}", **({names.ADOPTED_KEY: record} if record else {})
    )
    return {status["metadata"]["name"]: status, pod["metadata"]["name"]: pod}


RECORD = adopted(cluster({"a": on("a", "environment", "client")})).record


def test_kubeadms_own_scheduler_leaves_no_record() -> None:
    found = adopted(cluster({"a": on("a")}))
    assert found == Adopted(new=True)
    assert found.record == ""


@pytest.mark.parametrize("name", CUSTOMISED)
def test_each_customisation_is_in_the_content_of_the_first_revision(name: str) -> None:
    snapshot = cluster({"a": on("a", name)})
    content, findings = desired_content(snapshot)
    assert content is not None, findings
    found = adopted(snapshot)
    assert found.config == CUSTOMISED[name].config
    config = json.loads(content.parts[names.CONFIG][names.CONFIG_KEY])
    for key, value in CUSTOMISED[name].config.items():
        assert config[key] == ({**config[key], **value} if isinstance(value, dict) else value)
    pod = json.loads(content.parts[names.POD][names.POD_KEY])
    arguments = pod["spec"]["containers"][0]["args"]
    for flag in CUSTOMISED[name].kept:
        if flag.startswith("flags."):
            assert any(word.lstrip("-").startswith(f"{flag[6:]}=") for word in arguments)


def test_equal_nodes_are_adopted() -> None:
    found = adopted(cluster({name: on(name, "environment") for name in "abc"}))
    assert found.findings == ()
    assert [name for name, _ in found.settings.names()] == [
        "env.GOGC", "env.HTTPS_PROXY", "env.NO_PROXY",
    ]  # fmt: skip


def test_nodes_that_differ_are_named_with_what_differs() -> None:
    pods = {
        "a": on("a"),
        "b": on("b", "resources"),
        "c": on("c", "resources"),
        "d": on("d", "flags"),
    }
    texts = [finding.message for finding in adopted(cluster(pods)).findings]
    assert [text.partition(";")[0] for text in texts] == [
        'nodes "b", "c" and node "a" differ in resources',
        'node "d" and node "a" differ in flags.feature-gates, flags.tls-min-version, flags.v',
    ]
    assert all(finding.blocking for finding in adopted(cluster(pods)).findings)


def test_what_cannot_be_kept_names_the_nodes_that_have_it() -> None:
    secret = [{"name": "TOKEN", "value": "hunter2"}]
    found = adopted(cluster({"a": on("a"), "b": on("b", env=secret)}))
    lost = [finding for finding in found.findings if finding.reason == "SettingNotKept"]
    assert [finding.path for finding in lost] == [
        '/etc/kubernetes/manifests/kube-scheduler.yaml on node "b": env.TOKEN'
    ]
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    ("flag", "name"),
    [
        ("--kubeconfig=/etc/kubernetes/other.conf", "flags.kubeconfig"),
        ("--leader-elect-resource-name=mine", "flags.leader-elect-resource-name"),
        ("--leader-elect-resource-namespace=default", "flags.leader-elect-resource-namespace"),
    ],
)
def test_flags_that_cannot_be_kept_block(flag: str, name: str) -> None:
    pod = on("a")
    pod["spec"]["containers"][0]["command"].append(flag)
    (finding,) = adopted(cluster({"a": pod})).findings
    assert finding.path.endswith(f": {name}")
    assert desired_content(cluster({"a": pod}))[0] is None


def test_the_record_of_the_revision_in_use_is_the_memory() -> None:
    maps = {**revision(1, "{}"), **revision(2, RECORD), **revision(3, "{}", "failed")}
    found = adopted(cluster({"a": operand_pod("a", 2)}, config_maps=maps))
    assert found.record == RECORD
    assert not found.new


def test_a_stock_manifest_that_appears_after_adoption_is_not_adopted() -> None:
    status = {"nodeStatuses": [node_status("a", 1)]}
    maps = revision(1, RECORD)
    snapshot = cluster(
        {"a": on("a", "resources")}, config_maps=maps, kubescheduler=kubescheduler(status)
    )
    assert adopted(snapshot).record == RECORD


def test_a_node_that_joins_with_another_manifest_blocks_nothing() -> None:
    pods = {
        "a": operand_pod("a", 1),
        "b": on("b", "resources", env=[{"name": "TOKEN", "value": "x"}]),
    }
    found = adopted(cluster(pods, config_maps=revision(1, RECORD, "")))
    assert found.findings == ()
    assert found.record == RECORD


def test_flags_of_a_node_that_joins_later_change_nothing_that_was_adopted() -> None:
    kept = {"arguments": {"cert-dir": ["/x"]}}
    snapshot = cluster(
        {"a": operand_pod("a", 1), "b": on("b", "flags")},
        config_maps=revision(1, RECORD),
        kubescheduler=kubescheduler(observedConfig=kept),
    )
    assert facts_of(snapshot, "image", adopted(snapshot)).control_plane.stock_arguments == ()
    content, findings = desired_content(snapshot)
    assert content is not None, findings
    assert "--cert-dir=/x" in content.parts[names.POD][names.POD_KEY]
    assert "tls-min-version" not in content.parts[names.POD][names.POD_KEY]


def test_the_only_scheduler_may_be_away_while_it_is_replaced() -> None:
    assert adopted(cluster({}, config_maps=revision(1, RECORD, ""))).record == RECORD


@pytest.mark.parametrize("text", ["", "text", "[]", "7", '{"pod": 7, "config": []}', "{"])
def test_a_record_that_another_client_wrote_counts_as_none(text: str) -> None:
    found = adopted(cluster({}, config_maps=revision(1, text)))
    assert found.record == ""


def test_a_record_has_what_made_it() -> None:
    (found,) = (adopted(cluster({}, config_maps={**revision(1, RECORD)})),)
    assert found.config == CUSTOMISED["client"].config
    assert dict(found.settings.names()).keys() == CUSTOMISED["environment"].kept
    history = read(revision(1, RECORD), KUBEADM.parts)
    assert [one.number for one in history] == [1]


def test_platforms_whose_manifests_are_not_their_users_adopt_nothing() -> None:
    for platform in (OPENSHIFT, MANAGED):
        snapshot = cluster({"a": on("a", "environment")}, platform=platform)
        assert adopted(snapshot) == Adopted()


def test_the_condition_names_what_was_kept_without_values() -> None:
    found = adopted(cluster({"a": on("a", "environment")}))
    informed, degraded = adoption_conditions(KUBEADM, found, ())
    assert (informed.type, informed.status) == ("AdoptedSettings", "True")
    assert "env.GOGC, env.HTTPS_PROXY, env.NO_PROXY;" in informed.message
    assert "proxy.example" not in informed.message
    assert (degraded.type, degraded.status) == ("AdoptionDegraded", "False")


def test_the_condition_names_the_flags_that_were_kept_and_that_profiling_is_off() -> None:
    found = adopted(cluster({"a": on("a", "environment")}))
    informed, _ = adoption_conditions(
        KUBEADM, found, (), {"v": ["4"], "tls-min-version": ["VersionTLS13"]}, {"parallelism": 16}
    )
    assert "operator: flags.tls-min-version, flags.v, env.GOGC" in informed.message
    assert "/debug/pprof" in informed.message
    informed, _ = adoption_conditions(KUBEADM, NOTHING, (), {"v": ["4"]}, {"enableProfiling": True})
    assert (informed.status, informed.reason) == ("True", "Kept")
    assert "/debug/pprof" not in informed.message
    informed, _ = adoption_conditions(KUBEADM, NOTHING, (), (), {"enableProfiling": False})
    assert (informed.status, informed.reason) == ("False", "AsExpected")
    assert informed.message.startswith("/debug/pprof")


def test_settings_that_were_adopted_do_not_hide_an_edit() -> None:
    pod = deepcopy(on("a", "flags"))
    content, _ = desired_content(cluster({"a": pod}, kubescheduler=kubescheduler(logLevel="Trace")))
    assert content is not None
    assert "-v=6" in content.parts[names.POD][names.POD_KEY]


def test_what_other_clients_wrote_on_a_mirror_pod_is_named_and_blocks_nothing() -> None:
    foreign = {"b": ("labels.example.com/team",)}
    snapshot = cluster({"a": on("a"), "b": on("b")}, foreign_metadata=foreign)
    found = adopted(snapshot)
    assert found.findings == ()
    informed, degraded = adoption_conditions(KUBEADM, found, ())
    assert (informed.status, informed.reason) == ("True", "NotInManifest")
    assert informed.message.startswith(
        'labels.example.com/team of the Pod on node "b" are not kept'
    )
    assert degraded.status == "False"
    kept = adopted(cluster({n: on(n, "environment") for n in "ab"}, foreign_metadata=foreign))
    informed, _ = adoption_conditions(KUBEADM, kept, ())
    assert informed.reason == "Kept"
    assert informed.message.endswith("put them into the manifest to keep them")
