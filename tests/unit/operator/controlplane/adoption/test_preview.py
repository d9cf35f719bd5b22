"""The preview lists every setting with what becomes of it, as the operator decides it."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.node.config_reader.report import ConfigReport
from kube_scheduler_operator.operator.controlplane.adoption.preview import (
    HIDDEN,
    AdoptionPreview,
    Outcome,
    preview,
    value_text,
)

from .....customised import CONFIG_FILE, CONFIGURATION, CUSTOMISED, with_config_file
from .test_adopted import cluster, on

REPORT = ConfigReport(dict(CONFIGURATION))


def outcomes(seen: AdoptionPreview, node: str = "a") -> dict[str, tuple[str, Outcome]]:
    (found,) = (one for one in seen.nodes if one.node == node)
    assert len({one.name for one in found.settings}) == len(found.settings)
    return {one.name: (one.value, one.outcome) for one in found.settings}


@pytest.mark.parametrize("name", CUSTOMISED)
def test_each_customisation_is_listed_as_kept(name: str) -> None:
    seen = preview(cluster({"a": on("a", name)}), {})
    found = outcomes(seen)
    for setting in CUSTOMISED[name].kept:
        assert found[setting][1] is Outcome.KEPT, setting
    assert {one for _, one in found.values()} <= {Outcome.KEPT, Outcome.SAME}
    assert seen.adoptable
    assert seen.findings == ()


def test_an_image_that_is_not_kubernetes_own_is_listed_as_kept() -> None:
    pod = on("a")
    assert "image" not in outcomes(preview(cluster({"a": pod}), {}))
    image = "docker.io/example/crane-scheduler:main"
    pod["spec"]["containers"][0]["image"] = image
    assert outcomes(preview(cluster({"a": pod}), {}))["image"] == (image, Outcome.KEPT)
    configured = cluster({"a": pod}, settings=Settings(operand_image="other:v1"))
    assert outcomes(preview(configured, {}))["image"] == (image, Outcome.DROPPED)


def test_flags_become_fields_with_their_path() -> None:
    seen = preview(cluster({"a": on("a", "client")}), {})
    notes = {one.name: one.note for one in seen.nodes[0].settings}
    assert notes["flags.kube-api-qps"] == "spec.observedConfig.clientConnection.qps"
    assert notes["flags.profiling"] == "spec.observedConfig.enableProfiling"
    assert notes["flags.kubeconfig"] == ""


def test_the_preview_has_the_first_revision_of_the_operator() -> None:
    pod = with_config_file(on("a", "flags"))
    seen = preview(cluster({"a": pod}), {"a": REPORT})
    assert outcomes(seen)["config.profiles"] == ("default-scheduler, second", Outcome.KEPT)
    assert seen.content is not None
    config = seen.content.config
    assert config["parallelism"] == 8
    assert [one["schedulerName"] for one in config["profiles"]] == ["default-scheduler", "second"]
    arguments = seen.content.operand["args"]
    assert "--tls-min-version=VersionTLS13" in arguments


def test_a_file_that_is_not_known_is_not_visible_and_not_adoptable() -> None:
    seen = preview(cluster({"a": with_config_file(on("a"))}), {})
    assert seen.unseen == {"a": CONFIG_FILE}
    assert seen.findings == ()
    assert not seen.adoptable
    assert outcomes(seen)["flags.config"] == (CONFIG_FILE, Outcome.UNKNOWN)


def test_a_file_with_an_error_blocks() -> None:
    report = ConfigReport(error="the file has a syntax error at line 1, column 2; correct it")
    seen = preview(cluster({"a": with_config_file(on("a"))}), {"a": report})
    assert [one.reason for one in seen.findings] == ["SettingNotKept"]
    assert outcomes(seen)["flags.config"][1] is Outcome.BLOCKS
    assert not seen.adoptable


def test_flags_without_an_effect_are_not_lost() -> None:
    pod = with_config_file(on("a", "client"))
    found = outcomes(preview(cluster({"a": pod}), {"a": REPORT}))
    assert found["flags.kube-api-qps"] == ("120", Outcome.NO_EFFECT)


def test_a_single_scheduler_without_election() -> None:
    pod = on("a")
    command = pod["spec"]["containers"][0]["command"]
    command[command.index("--leader-elect=true")] = "--leader-elect=false"
    seen = preview(cluster({"a": pod}), {})
    assert outcomes(seen)["flags.leader-elect"] == ("false", Outcome.DROPPED)
    assert seen.adoptable


@pytest.mark.parametrize(
    ("change", "setting"),
    [
        ({"env": [{"name": "HTTPS_PROXY", "value": "http://me:hunter2@proxy"}]}, "env.HTTPS_PROXY"),
        ({"env": [{"name": "API_TOKEN", "value": "hunter2"}]}, "env.API_TOKEN"),
    ],
)
def test_credentials_block_and_are_never_shown(change: dict[str, Any], setting: str) -> None:
    seen = preview(cluster({"a": on("a", **change)}), {})
    assert outcomes(seen)[setting] == (HIDDEN, Outcome.BLOCKS)
    assert not seen.adoptable
    assert "hunter2" not in str(seen)


def test_an_annotation_like_a_credential_is_kept_and_not_shown() -> None:
    pod = on("a")
    pod["metadata"]["annotations"]["example.com/token"] = "hunter2"
    seen = preview(cluster({"a": pod}), {})
    assert outcomes(seen)["annotations.example.com/token"] == (HIDDEN, Outcome.KEPT)


def test_a_flag_with_credentials_is_not_shown() -> None:
    pod = on("a")
    pod["spec"]["containers"][0]["command"].append("--master=https://me:hunter2@api")
    assert outcomes(preview(cluster({"a": pod}), {}))["flags.master"][0] == HIDDEN


def test_nodes_that_differ_block_by_name() -> None:
    seen = preview(cluster({"a": on("a"), "b": on("b", "resources")}), {})
    assert [one.reason for one in seen.findings] == ["NodesDiffer"]
    assert "resources" in outcomes(seen, "b")
    assert "resources" not in outcomes(seen, "a")


def test_metadata_of_other_clients_is_dropped_with_the_way_to_keep_it() -> None:
    seen = preview(cluster({"a": on("a")}, foreign_metadata={"a": ("labels.team",)}), {})
    assert outcomes(seen)["labels.team"] == (HIDDEN, Outcome.DROPPED)
    assert ["labels.team" in note for note in seen.notes] == [True, False]
    assert seen.adoptable


def test_an_old_file_is_listed_with_what_the_conversion_changes() -> None:
    old = {
        "apiVersion": "kubescheduler.config.k8s.io/v1beta2",
        "kind": "KubeSchedulerConfiguration",
        "healthzBindAddress": "0.0.0.0:10251",
    }
    pod = with_config_file(on("a"))
    seen = preview(cluster({"a": pod}), {"a": ConfigReport(old)})
    texts = [one.text for one in seen.nodes[0].converted]
    assert any(text.startswith("healthzBindAddress") for text in texts)
    assert preview(cluster({"a": pod}), {"a": REPORT}).nodes[0].converted == ()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("x", "x"),
        (True, "true"),
        (7, "7"),
        ({"limits": {"memory": "1Gi"}}, "limits=(memory=1Gi)"),
        ([{"ip": "1"}, "a"], "(ip=1), a"),
        ({"name": "certs", "hostPath": {"path": "/a", "type": ""}}, "hostPath /a"),
        ({"name": "certs", "mountPath": "/a", "readOnly": True}, "certs, read-only"),
    ],
)
def test_values_are_one_line(value: Any, text: str) -> None:
    assert value_text(value) == text
