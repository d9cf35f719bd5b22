"""The bootstrap scheduler: its rendered configuration and manifests, and its Lease."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import assets
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.operator.controlplane.bootstrap import (
    FEATURE_SET_ANNOTATION,
    BootstrapError,
    BootstrapPod,
    ManifestFile,
    Template,
    bootstrap_config,
    bootstrap_manifests,
    contradictions,
    feature_set_of,
)

from ....control_plane_inputs import inputs_of

POD = BootstrapPod("hyperkube:1", "IfNotPresent", "/configs", "config.yaml", "/secrets")
KIND = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}


def own(folder: str, name: str) -> Template:
    return Template(name, assets.text("templates", f"bootkube/{folder}/{name}.j2"))


def config(*overrides: Any, template: Any = None) -> Any:
    template = template or own("config", "bootstrap-config-overrides.yaml")
    files = [ManifestFile(f"{i}.yaml", (override,)) for i, override in enumerate(overrides)]
    return bootstrap_config(OPENSHIFT, POD, template, files)


def rendered_pod() -> Any:
    template = own("bootstrap-manifests", "kube-scheduler-pod.yaml")
    ((pod,),) = (f.documents for f in bootstrap_manifests(OPENSHIFT, POD, [template], "Default"))
    return pod


def test_it_differs_from_its_successors_only_in_the_kubeconfig_path() -> None:
    successors = compose(inputs_of(OPENSHIFT, Version(1, 35), {"spec": {}}, {"spec": {}})).config
    assert successors is not None
    ours = config()
    assert ours.pop("clientConnection") != successors["clientConnection"]
    assert ours == {key: successors[key] for key in successors if key != "clientConnection"}


def test_it_uses_the_lease_that_the_operator_watches() -> None:
    election = config()["leaderElection"]
    assert election["leaderElect"] is True
    assert election["resourceNamespace"] == OPENSHIFT.operand_lease_namespace
    assert election["resourceName"] == OPENSHIFT.operand_lease_name


def test_the_pod_mounts_the_rendered_configuration() -> None:
    spec = rendered_pod()["spec"]
    (container,) = spec["containers"]
    host = {v["name"]: v["hostPath"] for v in spec["volumes"] if "hostPath" in v}
    seen = {mount["mountPath"]: host.get(mount["name"]) for mount in container["volumeMounts"]}
    flags = dict(arg.lstrip("-").split("=", 1) for arg in container["args"])
    assert seen[flags["config"]] == {"path": "/configs/config.yaml", "type": "File"}
    assert seen["/etc/kubernetes/secrets"] == {"path": "/secrets", "type": "Directory"}
    kubeconfig = config()["clientConnection"]["kubeconfig"]
    assert kubeconfig == "/etc/kubernetes/secrets/kubeconfig"
    assert flags["authentication-kubeconfig"] == flags["authorization-kubeconfig"] == kubeconfig
    # kube-scheduler ignores the first with --config; the second would override the file.
    assert not {"kubeconfig", "leader-elect"} & set(flags)


def test_the_namespace_of_the_lease_equals_that_of_the_overlay() -> None:
    template = own("manifests", "00_openshift-kube-scheduler-ns.yaml")
    ((ours,),) = (f.documents for f in bootstrap_manifests(OPENSHIFT, POD, [template], "Default"))
    assert ours["metadata"]["name"] == OPENSHIFT.operand_lease_namespace
    from ...deploy.overlays import DEPLOY

    deployed = yaml.safe_load_all((DEPLOY / "openshift" / "namespaces.yaml").read_text())
    assert ours in list(deployed)


def test_overrides_are_merged_semantically_and_in_order() -> None:
    merged = config(
        {"parallelism": 4, "percentageOfNodesToScore": 50},
        {"parallelism": 8, "profiles": [{"pluginConfig": []}]},
        {"percentageOfNodesToScore": None, "profiles": [{"percentageOfNodesToScore": 7}]},
    )
    assert merged["parallelism"] == 8
    assert "percentageOfNodesToScore" not in merged
    (profile,) = merged["profiles"]
    assert profile == {"schedulerName": "default-scheduler", "percentageOfNodesToScore": 7}


@pytest.mark.parametrize(
    ("election", "field"),
    [
        pytest.param({"leaderElect": False}, "leaderElect", id="no election at all"),
        pytest.param({"resourceNamespace": "kube-system"}, "resourceNamespace", id="namespace"),
        pytest.param({"resourceName": "bootstrap"}, "resourceName", id="name"),
    ],
)
def test_an_override_cannot_make_two_schedulers_active(election: Any, field: Any) -> None:
    with pytest.raises(BootstrapError, match=rf"^config\.leaderElection\.{field}: .*two sched"):
        config({"leaderElection": election})


def test_leader_election_cannot_be_removed() -> None:
    with pytest.raises(BootstrapError, match="two schedulers active"):
        config({"leaderElection": None})


@pytest.mark.parametrize(
    ("override", "output"),
    [
        pytest.param({"parallelism": 0}, r"^config\.parallelism: ", id="range"),
        pytest.param({"parallelism": "many"}, r"^config\.parallelism: ", id="type"),
        pytest.param({**KIND, "kind": "Pod"}, r"^0\.yaml: .*/Pod does not equal", id="kind"),
        pytest.param({"leaderElection": 5}, r"^config\.leaderElection: ", id="shape"),
    ],
)
def test_an_invalid_override_is_refused(override: Any, output: Any) -> None:
    with pytest.raises(BootstrapError, match=output):
        config(override)


def test_unknown_plugins_are_left_to_kube_scheduler() -> None:
    plugins = {"multiPoint": {"enabled": [{"name": "OfANewerVersion"}]}}
    (profile,) = config({"profiles": [{"plugins": plugins}]})["profiles"]
    assert profile["plugins"] == plugins


@pytest.mark.parametrize(
    ("text", "output"),
    [
        pytest.param("image: {{ .Image }}", "t.yaml, line 1: .*Jinja2", id="a Go template"),
        pytest.param(
            "image: {{ Image }}", "'Image' is undefined; the variables are config, ", id="name"
        ),
        pytest.param("a: [", "t.yaml does not render to YAML objects", id="no YAML"),
        pytest.param("- a", "list where an object belongs", id="no object"),
    ],
)
def test_an_invalid_template_is_reported(text: Any, output: Any) -> None:
    with pytest.raises(BootstrapError, match=output):
        bootstrap_manifests(OPENSHIFT, POD, [Template("t.yaml", text)], "Default")


def document(name: str, *feature_sets: str) -> str:
    annotations = {FEATURE_SET_ANNOTATION: feature_sets[0]} if feature_sets else {}
    return yaml.safe_dump({"kind": "X", "metadata": {"name": name, "annotations": annotations}})


@pytest.mark.parametrize(
    ("feature_set", "left"),
    [
        pytest.param("Default", ["always", "default"], id="default"),
        pytest.param("TechPreviewNoUpgrade", ["always", "preview"], id="preview"),
        pytest.param("CustomNoUpgrade", ["always", "preview"], id="second of the list"),
        pytest.param("Tech", ["always"], id="a part of a name is not a name"),
    ],
)
def test_manifests_of_other_feature_sets_are_omitted(feature_set: Any, left: Any) -> None:
    text = "---\n".join([
        document("always"),
        document("preview", "TechPreviewNoUpgrade, CustomNoUpgrade"),
        document("default", "Default"),
    ])  # fmt: skip
    (file,) = bootstrap_manifests(OPENSHIFT, POD, [Template("t.yaml", text)], feature_set)
    assert [one["metadata"]["name"] for one in file.documents] == left


def test_an_empty_file_is_not_written() -> None:
    template = Template("t.yaml", document("preview", "TechPreviewNoUpgrade"))
    assert bootstrap_manifests(OPENSHIFT, POD, [template], "Default") == []


def gate(spec: Any, **changes: Any) -> dict[str, Any]:
    return {
        "apiVersion": "config.openshift.io/v1",
        "kind": "FeatureGate",
        "metadata": {"name": "cluster"},
        "spec": spec,
        **changes,
    }


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        pytest.param([], "Default", id="none"),
        pytest.param([gate({})], "Default", id="not set"),
        pytest.param([gate({"featureSet": ""})], "Default", id="empty"),
        pytest.param(
            [gate({"featureSet": "DevPreviewNoUpgrade"})], "DevPreviewNoUpgrade", id="set"
        ),
        pytest.param([gate({"featureSet": "X"}, apiVersion="x/v1")], "Default", id="another's"),
    ],
)
def test_the_feature_set_is_that_of_the_feature_gate(documents: Any, expected: Any) -> None:
    assert feature_set_of([ManifestFile("f", tuple(documents))]) == expected


ONE = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "n"}}


@pytest.mark.parametrize(
    ("other", "contradicts"),
    [
        pytest.param(ONE, False, id="the same"),
        pytest.param({**ONE, "data": {}}, True, id="other content"),
        pytest.param({**ONE, "data": {}, "kind": "Role"}, False, id="another kind"),
        pytest.param({**ONE, "metadata": {"name": "a"}}, False, id="another namespace"),
        pytest.param({**ONE, "apiVersion": "x/v1"}, False, id="another group"),
    ],
)
def test_different_definitions_of_one_object_are_reported(other: Any, contradicts: Any) -> None:
    found = contradictions([ManifestFile("1.yaml", (ONE,)), ManifestFile("2.yaml", (other,))])
    expected = "2.yaml and 1.yaml define Secret a in n differently; keep one of them"
    assert found == ([expected] if contradicts else [])


def test_versions_of_a_group_are_one_object() -> None:
    one, other = ({**ONE, "apiVersion": f"x/{version}"} for version in ("v1", "v2"))
    assert len(contradictions([ManifestFile("1", (one,)), ManifestFile("2", (other,))])) == 1


def test_objects_with_generated_names_never_conflict() -> None:
    nameless = [{**ONE, "metadata": {"generateName": "a"}, "data": {"i": i}} for i in "ab"]
    assert contradictions([ManifestFile("1", tuple(nameless))]) == []
