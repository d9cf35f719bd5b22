"""deploy/ agrees with its platforms, and grants exactly the necessary rights."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.__main__ import COMMANDS, _parser
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import (
    AUTHENTICATION_NAMESPACE,
    KUBEADM,
    MANAGED,
    OPENSHIFT,
    PLATFORMS,
    RKE2,
    Platform,
)
from kube_scheduler_operator.base.settings import Settings
from kube_scheduler_operator.config.effective.profiles import aks_support
from kube_scheduler_operator.config.effective.secondary.compose import PORT
from kube_scheduler_operator.config.effective.secondary.request import (
    PRIORITY_CLASS,
    SchedulerRequest,
)
from kube_scheduler_operator.kube.resource import WatchSpec
from kube_scheduler_operator.node.static_pod.cert_syncer import SecretRef
from kube_scheduler_operator.operator.controlplane import node_pods as pods
from kube_scheduler_operator.operator.controlplane.target_config_maps import network_policies
from kube_scheduler_operator.operator.engine.watches import watches
from kube_scheduler_operator.operator.profiles import aks
from kube_scheduler_operator.operator.secondary.content import _objects
from kube_scheduler_operator.serving.tls_settings import parse_serving_info
from kube_scheduler_operator.simulate.job import LABELS, missing_isolation
from kube_scheduler_operator.simulate.job import PORT as PORT_OF_SIMULATIONS
from kube_scheduler_operator.simulate.kinds import KINDS

from .overlays import DEPLOY, Object, build

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "simulations.yaml"
OVERLAYS = {name: build(DEPLOY / name) for name in PLATFORMS}
ALL_WRITES = {"create", "update", "delete"}

each_platform = pytest.mark.parametrize(
    "platform", PLATFORMS.values(), ids=lambda platform: platform.name
)
each_with_static_pods = pytest.mark.parametrize(
    "platform",
    [platform for platform in PLATFORMS.values() if platform.owns_static_pods],
    ids=lambda platform: platform.name,
)


def found(platform: Platform, kind: str, name: str, namespace: str | None = None) -> Object:
    (obj,) = (
        obj
        for obj in OVERLAYS[platform.name]
        if obj["kind"] == kind
        and obj["metadata"]["name"] == name
        and namespace in (None, obj["metadata"].get("namespace"))
    )
    return obj


def bound(platform: Platform, account: str, namespace: str) -> Iterator[tuple[str, Object]]:
    """(namespace, "" for all; rule) for everything that a ServiceAccount may do."""
    yield from bound_by(OVERLAYS[platform.name], account, namespace)


def bound_by(
    objects: Sequence[Object], account: str, namespace: str
) -> Iterator[tuple[str, Object]]:
    """The same for the bindings and roles among these objects."""
    for binding in objects:
        subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
        if subject not in binding.get("subjects", ()):
            continue
        place = binding["metadata"].get("namespace", "")
        roles = [
            obj
            for obj in objects
            if obj["kind"] == binding["roleRef"]["kind"]
            and obj["metadata"]["name"] == binding["roleRef"]["name"]
            and obj["metadata"].get("namespace", "") == place
        ]
        assert len(roles) == 1, f"{binding['metadata']} binds {binding['roleRef']}"
        for rule in roles[0]["rules"]:
            yield place, rule


def may(
    platform: Platform,
    verbs: set[str],
    resource: str,
    *,
    group: str = "",
    namespace: str = "",
    name: str = "",
) -> bool:
    """Whether the operator has all of these rights."""
    account = bound(platform, platform.operator.account, platform.operator_namespace)
    granted = {
        verb
        for place, rule in account
        if place in ("", namespace)
        and group in rule["apiGroups"]
        and resource in rule["resources"]
        and (name in rule["resourceNames"] if "resourceNames" in rule else True)
        for verb in rule["verbs"]
    }
    return verbs <= granted


def watched_name(watch: WatchSpec) -> str:
    prefix = "metadata.name="
    selector = watch.field_selector or ""
    return selector.removeprefix(prefix) if selector.startswith(prefix) else ""


def arguments(container: Object) -> list[str]:
    return [*container["command"][1:], *container.get("args", ())]


def test_there_is_an_overlay_for_every_platform() -> None:
    folders = {path.parent.name for path in DEPLOY.glob("*/kustomization.yaml")}
    others = {"base", "monitoring", "admission", "secondary-schedulers", "load-annotator"}
    # deploy/managed with what applies spec.assign, in one command.
    others |= {"managed-policy", "managed-webhook"}
    assert folders - others == set(PLATFORMS)


@each_platform
def test_the_operator_is_started_for_its_platform(platform: Platform) -> None:
    deployment = found(platform, "Deployment", platform.operator.deployment)
    assert deployment["metadata"]["namespace"] == platform.operator_namespace
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    line = arguments(container)
    args = _parser("x", "x", COMMANDS, line).parse_args(line)
    assert PLATFORMS[args.platform] == platform


@each_platform
def test_namespaces_precede_their_objects(platform: Platform) -> None:
    made = {
        obj["metadata"]["name"] for obj in OVERLAYS[platform.name] if obj["kind"] == "Namespace"
    }
    assert made == {platform.operator_namespace, platform.target_namespace}
    elsewhere = {"kube-system", *platform.source_namespaces}
    used = {obj["metadata"].get("namespace") for obj in OVERLAYS[platform.name]} - {None}
    assert used <= made | elsewhere


@each_platform
def test_one_image_everywhere(platform: Platform) -> None:
    images = set()
    for obj in OVERLAYS[platform.name]:
        if obj["kind"] in ("Deployment", "DaemonSet"):
            for container in obj["spec"]["template"]["spec"]["containers"]:
                images.add(container["image"])
                assert "localhost/kube" not in str(container["env"]), "an overlay sets images only"
    assert images == {"localhost/kube-scheduler-operator:dev"}


def test_where_no_control_plane_node_is_visible_the_operator_runs_on_any_node() -> None:
    spec = found(MANAGED, "Deployment", names.PROGRAM)["spec"]["template"]["spec"]
    assert "nodeSelector" not in spec
    tolerated = {toleration["key"] for toleration in spec["tolerations"]}
    assert tolerated == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


def test_where_the_provider_runs_the_scheduler_the_operator_reads_nothing_of_it() -> None:
    for verb in ("get", "list", "watch"):
        one = {"group": "coordination.k8s.io", "namespace": "kube-system", "name": "kube-scheduler"}
        assert not may(MANAGED, {verb}, "leases", **one)
    assert may(MANAGED, {"list"}, "nodes"), "the provider is recognised by nodes"
    assert not may(MANAGED, {"watch"}, "nodes")
    for verb in ("create", "update", "delete", "patch"):
        assert not may(MANAGED, {verb}, "pods", namespace=MANAGED.target_namespace)


def test_the_operator_may_write_the_one_secondary_scheduler_that_it_makes() -> None:
    own: Any = {"group": "kube-scheduler-operator.dev"}
    name = Settings().managed_scheduler
    assert may(MANAGED, {"create"}, "secondaryschedulers", **own)
    assert may(MANAGED, {"update", "delete"}, "secondaryschedulers", name=name, **own)
    for verb in ("update", "patch", "delete"):
        assert not may(MANAGED, {verb}, "secondaryschedulers", name="a-users", **own)


def test_the_operator_may_write_the_one_configuration_of_aks() -> None:
    own: Any = {"group": aks.REF.resource.group}
    kind = aks.REF.resource.plural
    assert may(MANAGED, {"create"}, kind, **own)
    assert may(
        MANAGED, {"get", "list", "watch", "update", "delete"}, kind, name=aks_support.NAME, **own
    )
    for verb in ("get", "update", "patch", "delete"):
        assert not may(MANAGED, {verb}, kind, name="another", **own)
        assert not may(KUBEADM, {verb}, kind, name=aks_support.NAME, **own)


def test_pods_of_the_class_of_schedulers_have_a_quota_where_one_is_required() -> None:
    (quota,) = (obj for obj in OVERLAYS[MANAGED.name] if obj["kind"] == "ResourceQuota")
    (expression,) = quota["spec"]["scopeSelector"]["matchExpressions"]
    spec = found(MANAGED, "Deployment", names.PROGRAM)["spec"]["template"]["spec"]
    assert expression["values"] == [spec["priorityClassName"]] == [PRIORITY_CLASS]


@each_with_static_pods
def test_the_operator_runs_on_a_control_plane_node(platform: Platform) -> None:
    spec = found(platform, "Deployment", platform.operator.deployment)["spec"]["template"]["spec"]
    ((label, value),) = spec["nodeSelector"].items()
    assert label in platform.node_selectors
    assert value == ("true" if platform == RKE2 else "")
    tolerated = {toleration["key"] for toleration in spec["tolerations"]}
    assert {*platform.node_selectors, "node.kubernetes.io/not-ready"} <= tolerated


@each_platform
def test_scheduler_and_kubescheduler_are_included_without_a_namespace(
    platform: Platform,
) -> None:
    for kind in ("Scheduler", "KubeScheduler"):
        metadata = found(platform, kind, names.CLUSTER)["metadata"]
        assert metadata.keys() - {"annotations"} == {"name", "labels"}


def test_openshifts_typed_client_can_update_the_shipped_kubescheduler() -> None:
    """OpenShift's definition has no default; elsewhere the operator's own has one."""
    assert found(OPENSHIFT, "KubeScheduler", names.CLUSTER)["spec"] == {
        "managementState": "Managed"
    }
    assert found(KUBEADM, "KubeScheduler", names.CLUSTER)["spec"] == {}


@each_platform
def test_every_object_is_labelled_and_none_is_managed_by_the_operator(
    platform: Platform,
) -> None:
    """Removal deletes all objects managed by the operator, which would include its account."""
    for obj in OVERLAYS[platform.name]:
        metadata = [obj["metadata"]]
        if "template" in obj.get("spec", {}):
            metadata.append(obj["spec"]["template"]["metadata"])
        for one in metadata:
            assert one["labels"][names.PART_OF_LABEL] == names.PROGRAM
            assert one["labels"].get(names.MANAGED_BY_LABEL) != names.PROGRAM
        assert {names.MANAGED_BY_LABEL, "app.kubernetes.io/name"} <= metadata[0]["labels"].keys()


@each_platform
def test_no_account_has_wildcards_or_escalation(platform: Platform) -> None:
    for obj in OVERLAYS[platform.name]:
        assert obj.get("roleRef", {}).get("name") != "cluster-admin"
        for rule in obj.get("rules", ()):
            words = {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not words & {"*", "escalate", "impersonate"}, rule


@each_platform
def test_the_operator_can_grant_three_roles_and_no_others(platform: Platform) -> None:
    """The API server's roles for a secondary scheduler; by name, and with the verb bind only."""
    granted = {
        (place, resource, name)
        for place, rule in bound(platform, platform.operator.account, platform.operator_namespace)
        if "bind" in rule["verbs"]
        for resource in rule["resources"]
        for name in rule["resourceNames"]
        if rule["verbs"] == ["bind"]
    }
    assert granted == {
        ("", "clusterroles", "system:kube-scheduler"),
        ("", "clusterroles", "system:volume-scheduler"),
        (AUTHENTICATION_NAMESPACE, "roles", "extension-apiserver-authentication-reader"),
    }
    wanted = {
        (obj["metadata"].get("namespace", ""), obj["roleRef"]["name"])
        for obj in _objects(SchedulerRequest("x", "u", platform.target_namespace))
        if "roleRef" in obj
    }
    assert wanted == {
        *((place, name) for place, _, name in granted),
        (platform.target_namespace, "x"),
    }


@each_platform
def test_the_operator_may_write_the_objects_of_secondary_schedulers(platform: Platform) -> None:
    group = "rbac.authorization.k8s.io"
    writes, place = {"get", "create", "update"}, platform.target_namespace
    for resource in ("configmaps", "serviceaccounts", "services"):
        assert may(platform, writes, resource, namespace=place)
    assert may(platform, writes, "deployments", group="apps", namespace=place)
    assert may(platform, writes, "poddisruptionbudgets", group="policy", namespace=place)
    for resource in ("roles", "rolebindings"):
        assert may(platform, writes, resource, group=group, namespace=place)
    # The operator must have the rights that it grants.
    (role,) = (o for o in _objects(SchedulerRequest("x", "u", place)) if o["kind"] == "Role")
    for rule in role["rules"]:
        for name in rule.get("resourceNames", [""]):
            leases = {"group": "coordination.k8s.io", "namespace": place, "name": name}
            assert may(platform, set(rule["verbs"]), "leases", **leases)
    assert may(platform, writes, "rolebindings", group=group, namespace=AUTHENTICATION_NAMESPACE)
    assert may(platform, writes, "clusterrolebindings", group=group)
    own = "kube-scheduler-operator.dev"
    assert may(platform, {"get"}, "secondaryschedulers", group=own)
    assert may(platform, {"update"}, "secondaryschedulers/status", group=own)
    if platform.owns_static_pods:
        for verb in ("create", "update", "patch", "delete"):
            assert not may(platform, {verb}, "secondaryschedulers", group=own)


@each_platform
def test_network_policies_allow_secondary_schedulers(platform: Platform) -> None:
    policy = found(platform, "NetworkPolicy", "secondary-schedulers", platform.target_namespace)
    spec: Any = policy["spec"]
    labels = SchedulerRequest("x", "u", platform.target_namespace).labels
    assert spec["podSelector"]["matchLabels"].items() <= labels.items()
    assert spec["ingress"] == [{"ports": [{"protocol": "TCP", "port": PORT}]}]
    for address, reached in {
        "169.254.169.254": False,  # credentials of the machine: AWS, Azure, Google, OpenStack
        "168.63.129.16": False,  # Azure's host
        "100.100.100.200": False,  # Alibaba's
        "fd00:ec2::254": False,
        "10.96.0.1": True,
        "192.0.2.1": True,
        "2001:db8::1": True,
    }.items():
        assert reaches(spec["egress"], address) is reached, address
    (usual,) = (rule["ports"] for rule in spec["egress"] if "to" not in rule)
    assert {(port["protocol"], port["port"]) for port in usual} == {
        ("UDP", 53), ("TCP", 53), ("TCP", 443), ("TCP", 6443),
    }  # fmt: skip
    assert any({"namespaceSelector": {}} in rule.get("to", ()) for rule in spec["egress"])


def reaches(egress: list[Any], address: str) -> bool:
    """Whether a policy allows any port of an address that is not a Pod's."""
    target = ip_address(address)
    blocks = [
        peer["ipBlock"]
        for rule in egress
        if "ports" not in rule
        for peer in rule.get("to") or [{"ipBlock": {"cidr": "0.0.0.0/0"}}]
        if "ipBlock" in peer
    ]
    return any(
        target in ip_network(block["cidr"])
        and not any(target in ip_network(hole) for hole in block.get("except", ()))
        for block in blocks
    )


@each_platform
def test_every_binding_refers_to_an_existing_role_and_account(platform: Platform) -> None:
    accounts = [o["metadata"] for o in OVERLAYS[platform.name] if o["kind"] == "ServiceAccount"]
    for account in accounts:
        assert list(bound(platform, account["name"], account["namespace"]))
    known = {(account["name"], account["namespace"]) for account in accounts}
    subjects = {
        (subject["name"], subject["namespace"])
        for obj in OVERLAYS[platform.name]
        for subject in obj.get("subjects", ())
        if subject["kind"] == "ServiceAccount"
    }
    assert subjects == known


@each_platform
def test_the_operator_may_read_everything_that_it_watches(platform: Platform) -> None:
    for watch in watches(platform):
        assert may(
            platform,
            {"list", "watch"},
            watch.resource.plural,
            group=watch.resource.group,
            namespace=watch.namespace or "",
            name=watched_name(watch),
        ), watch


@each_platform
def test_the_operator_may_write_everything_that_it_writes(platform: Platform) -> None:
    target, own = platform.target_namespace, platform.operator_namespace
    assert may(platform, ALL_WRITES, "configmaps", namespace=target)
    if platform.owns_static_pods:
        for resource in ("pods", "serviceaccounts"):
            assert may(platform, ALL_WRITES, resource, namespace=target)
        assert may(platform, ALL_WRITES, "poddisruptionbudgets", group="policy", namespace=target)
    if platform.credentials:
        assert may(platform, ALL_WRITES, "secrets", namespace=target)
    operators, config = "operator.openshift.io", "config.openshift.io"
    assert may(platform, {"update"}, "kubeschedulers", group=operators)
    assert may(platform, {"update"}, "kubeschedulers/status", group=operators)
    assert may(platform, {"create"}, "clusteroperators", group=config)
    assert may(platform, {"update"}, "clusteroperators/status", group=config)
    leases = "coordination.k8s.io"
    assert may(platform, {"get", "create", "update"}, "leases", group=leases, namespace=own)
    assert may(platform, {"create", "patch"}, "events", namespace=own)
    assert may(platform, {"create"}, "tokenreviews", group="authentication.k8s.io")
    assert may(platform, {"create"}, "subjectaccessreviews", group="authorization.k8s.io")


@each_with_static_pods
def test_the_operator_may_read_what_scheduling_reads_and_run_a_simulation(
    platform: Platform,
) -> None:
    for resource, kind in KINDS.items():
        if kind.makes_nodes or kind.of_new_pods:
            continue  # only commands read these, with the rights of their user
        assert may(platform, {"list"}, resource.plural, group=resource.group), resource.plural
    place = platform.target_namespace
    assert may(platform, {"create", "delete"}, "jobs", group="batch", namespace=place)
    assert may(platform, {"list"}, "pods", namespace=place)
    for subresource in ("exec", "portforward", "proxy", "attach", "log"):
        assert not may(platform, {"create"}, f"pods/{subresource}", namespace=place)
        assert not may(platform, {"get"}, f"pods/{subresource}", namespace=place)


def test_the_example_lets_a_user_read_all_that_a_simulation_reads() -> None:
    documents = yaml.safe_load_all(EXAMPLE.read_text())
    rules = [rule for obj in documents if obj["kind"] == "ClusterRole" for rule in obj["rules"]]
    for resource, kind in KINDS.items():
        verb = "list" if kind.only is None else "get"
        assert any(
            verb in rule["verbs"]
            and resource.group in rule["apiGroups"]
            and resource.plural in rule["resources"]
            for rule in rules
        ), resource.plural


@each_with_static_pods
def test_a_simulation_is_reached_by_the_operator_only_and_reaches_nothing(
    platform: Platform,
) -> None:
    place = platform.target_namespace
    policy: Any = found(platform, "NetworkPolicy", "kube-scheduler-simulation", place)["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= LABELS.items()
    assert policy["policyTypes"] == ["Ingress"]
    assert "egress" not in policy
    (rule,) = policy["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": PORT_OF_SIMULATIONS}]
    (peer,) = rule["from"]
    template = found(platform, "Deployment", platform.operator.deployment)["spec"]["template"]
    selected = peer["podSelector"]["matchLabels"]
    assert selected.items() <= template["metadata"]["labels"].items()
    namespaces = peer.get("namespaceSelector", {}).get("matchLabels")
    other = {"kubernetes.io/metadata.name": platform.operator_namespace}
    assert namespaces == (None if place == platform.operator_namespace else other)
    denied = [
        one
        for one in OVERLAYS[platform.name]
        if one["kind"] == "NetworkPolicy" and one["metadata"]["namespace"] == place
    ]
    kept = [dict(one) for one in network_policies(platform)]
    assert missing_isolation([*denied, *kept]) == ""


@each_platform
def test_events_refer_to_the_deployment(platform: Platform) -> None:
    one = {"group": "apps", "namespace": platform.operator_namespace}
    assert may(platform, {"get"}, "deployments", name=platform.operator.deployment, **one)


@each_platform
def test_the_operator_may_replace_one_of_former_names_and_delete_no_other_deployment(
    platform: Platform,
) -> None:
    one: Any = {"group": "apps", "namespace": platform.operator_namespace}
    assert not may(platform, {"delete"}, "deployments", name=platform.operator.deployment, **one)
    former = platform.former_operator
    name = former.deployment if former else "any"
    assert may(platform, {"get", "delete"}, "deployments", name=name, **one) is (former is not None)


def test_on_openshift_the_operator_has_the_names_by_which_it_is_looked_for() -> None:
    """By must-gather, by alerts, and by the tests of OpenShift's operator."""
    name = "openshift-kube-scheduler-operator"
    assert OPENSHIFT.operator.lease == "openshift-cluster-kube-scheduler-operator-lock"
    deployment = found(OPENSHIFT, "Deployment", name, name)
    assert deployment["metadata"]["labels"]["app"] == name
    # The selector is immutable: with any other, one operator could not replace the other in place.
    assert deployment["spec"]["selector"] == {"matchLabels": {"app": name}}
    pod = deployment["spec"]["template"]
    assert pod["metadata"]["labels"]["app"] == name
    assert "target.workload.openshift.io/management" in pod["metadata"]["annotations"]
    assert [one["name"] for one in pod["spec"]["containers"]] == [
        "kube-scheduler-operator-container"
    ]
    service = found(OPENSHIFT, "Service", "metrics", name)
    assert service["metadata"]["labels"]["app"] == name
    assert service["spec"]["selector"] == {"app": name}
    assert found(OPENSHIFT, "ConfigMap", f"{name}-config", name)


def test_on_openshift_the_account_is_not_the_one_of_openshifts_operator() -> None:
    """The release payload binds that one to cluster-admin, also where this operator replaces it."""
    name = OPENSHIFT.operator.deployment
    account = OPENSHIFT.operator.account
    assert account != name
    spec = found(OPENSHIFT, "Deployment", name, name)["spec"]["template"]["spec"]
    assert spec["serviceAccountName"] == account
    assert found(OPENSHIFT, "ServiceAccount", account, name)["metadata"]["labels"]["app"] == name
    subjects = [
        subject["name"]
        for obj in OVERLAYS[OPENSHIFT.name]
        for subject in obj.get("subjects", ())
        if subject.get("namespace") == OPENSHIFT.operator_namespace
    ]
    assert set(subjects) == {account}


def test_on_openshift_certificate_and_configuration_of_the_port_are_the_clusters() -> None:
    name = OPENSHIFT.operator.deployment
    spec = found(OPENSHIFT, "Deployment", name)["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    line = arguments(container)
    options = _parser("x", "x", COMMANDS, line).parse_args(line)
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    config = found(OPENSHIFT, "ConfigMap", OPENSHIFT.operator.config, OPENSHIFT.operator_namespace)
    assert config["metadata"]["annotations"]["config.openshift.io/inject-tls"] == "true"
    assert parse_serving_info(config["data"][names.OPERATOR_CONFIG_KEY]) == {}
    service = found(OPENSHIFT, "Service", "metrics")
    requested = "service.beta.openshift.io/serving-cert-secret-name"
    secret = volumes["serving-cert"]["secret"]
    assert service["metadata"]["annotations"][requested] == secret["secretName"]
    pair = (str(options.tls_cert_file), str(options.tls_private_key_file))
    assert pair == tuple(f"{mounted['serving-cert']}/tls.{end}" for end in ("crt", "key"))
    assert secret["optional"] is True, "it may be missing when the operator starts"


def test_on_openshift_what_no_release_payload_has_replaced_counts_as_unset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every placeholder of the manifests."""
    (container,) = found(OPENSHIFT, "Deployment", OPENSHIFT.operator.deployment)["spec"][
        "template"
    ]["spec"]["containers"]
    values = {one["name"]: one["value"] for one in container["env"] if "value" in one}
    assert set(values.values()) == names.PLACEHOLDERS
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    line = arguments(container)
    options = _parser("x", "x", COMMANDS, line).parse_args(line)
    assert (options.operand_image, options.release_version, options.operand_version) == ("", "", "")
    for name in values:
        monkeypatch.setenv(name, f"of-{name}")
    options = _parser("x", "x", COMMANDS, line).parse_args(line)
    assert (options.operand_image, options.release_version, options.operand_version) == (
        "of-IMAGE", "of-OPERATOR_IMAGE_VERSION", "of-OPERAND_IMAGE_VERSION",
    )  # fmt: skip


def test_on_openshift_every_object_is_part_of_the_release_payload() -> None:
    prefix = "include.release.openshift.io"
    profiles = {f"{prefix}/self-managed-high-availability", f"{prefix}/single-node-developer"}
    create_only = set()
    for obj in OVERLAYS[OPENSHIFT.name]:
        annotations = obj["metadata"]["annotations"]
        assert {key for key in annotations if key.startswith(prefix)} == profiles
        assert {annotations[key] for key in profiles} == {"true"}
        if annotations.get("release.openshift.io/create-only") == "true":
            create_only.add(obj["kind"])
    assert create_only == {"Scheduler", "KubeScheduler"}, "they are the administrator's"


@pytest.mark.parametrize("platform", [p for p in PLATFORMS.values() if p != OPENSHIFT])
def test_elsewhere_nothing_is_annotated_for_openshift(platform: Platform) -> None:
    for obj in OVERLAYS[platform.name]:
        assert "openshift.io" not in str(obj["metadata"].get("annotations", {}))


@each_platform
def test_read_only_objects_cannot_be_written(platform: Platform) -> None:
    lease = (platform.operand_lease_namespace, platform.operand_lease_name)
    writes = ALL_WRITES | {"patch"}
    # In namespaces of secondary schedulers the operator needs the Lease that it grants them.
    if platform.operand_lease_namespace not in platform.secondary_namespaces(None):
        for verb in writes:
            assert not may(
                platform, {verb}, "leases",
                group="coordination.k8s.io", namespace=lease[0], name=lease[1],
            )  # fmt: skip
    for verb in writes:
        assert not may(platform, {verb}, "nodes")
        if platform.operand_namespace != platform.target_namespace:
            assert not may(platform, {verb}, "pods", namespace=platform.operand_namespace)
    if platform.credentials:
        source = platform.credentials.namespace
        for verb in writes:
            for resource in ("secrets", "configmaps"):
                assert not may(platform, {verb}, resource, namespace=source)


@each_platform
def test_only_the_schedulers_secrets_can_be_read(platform: Platform) -> None:
    """And labels of those in the target namespace, whose Pods the operator creates anyway."""
    secrets = [
        (place, rule.get("resourceNames"))
        for place, rule in bound(platform, platform.operator.account, platform.operator_namespace)
        if "secrets" in rule["resources"]
    ]
    expected: list[Any] = [(platform.target_namespace, None)]
    if kept := platform.credentials:
        expected = [(kept.namespace, [kept.client_certificate]), (platform.target_namespace, None)]
    assert sorted(secrets) == expected


@each_platform
def test_every_container_requests_cpu_and_memory(platform: Platform) -> None:
    for obj in OVERLAYS[platform.name]:
        template = (obj.get("spec") or {}).get("template", {}).get("spec", {})
        for container in (*template.get("containers", ()), *template.get("initContainers", ())):
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys()


@each_platform
def test_pods_without_host_access_are_restricted(platform: Platform) -> None:
    spec = found(platform, "Deployment", platform.operator.deployment)["spec"]["template"]["spec"]
    assert "hostNetwork" not in spec
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    allowed = {"emptyDir", "secret"}
    assert all(set(volume) - {"name"} <= allowed for volume in spec["volumes"])
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@each_platform
def test_what_programs_write_stays_in_memory(platform: Platform) -> None:
    """Private keys are written to files, because OpenSSL loads only files."""
    volumes = [
        volume
        for obj in OVERLAYS[platform.name]
        for volume in (obj.get("spec") or {}).get("template", {}).get("spec", {}).get("volumes", ())
        if "emptyDir" in volume
    ]
    assert volumes
    for volume in volumes:
        assert volume["emptyDir"]["medium"] == "Memory"
        assert volume["emptyDir"]["sizeLimit"]


def test_a_component_puts_the_operator_into_a_user_namespace() -> None:
    folder = DEPLOY / "openshift/user-namespace"
    component = yaml.safe_load((folder / "kustomization.yaml").read_text())
    (patch,) = component["patches"]
    assert patch["target"] == {"kind": "Deployment", "name": OPENSHIFT.operator.deployment}
    (operation,) = yaml.safe_load((folder / patch["path"]).read_text())
    assert operation == {"op": "add", "path": "/spec/template/spec/hostUsers", "value": False}
    pod = found(OPENSHIFT, "Deployment", OPENSHIFT.operator.deployment)["spec"]["template"]["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC", "hostUsers"} & pod.keys()


class TestCertificateSyncer:
    """For the platform on which the cluster renews certificates."""

    kept = OPENSHIFT.credentials
    pod = found(OPENSHIFT, "DaemonSet", "kube-scheduler-cert-syncer")["spec"]["template"]["spec"]

    def options(self) -> argparse.Namespace:
        (container,) = self.pod["containers"]
        line = arguments(container)
        chosen: argparse.Namespace = _parser("x", "x", COMMANDS, line).parse_args(line)
        return chosen

    def test_it_writes_certificates_to_the_schedulers_paths(self) -> None:
        assert self.kept is not None
        options = self.options()
        assert str(options.certs_dir) == self.kept.directory
        assert {SecretRef.parse(text) for text in options.secrets} == {
            SecretRef(self.kept.namespace, self.kept.client_certificate),
            SecretRef(OPENSHIFT.target_namespace, self.kept.serving_certificate, optional=True),
        }
        (container,) = self.pod["containers"]
        assert {env["name"] for env in container["env"]} == {"POD_NAME", "POD_NAMESPACE"}

    def test_it_mounts_only_that_directory_of_the_host(self) -> None:
        assert self.kept is not None
        host = {v["name"]: v["hostPath"] for v in self.pod["volumes"] if "hostPath" in v}
        ((volume, path),) = host.items()
        assert path == {"path": self.kept.directory, "type": "DirectoryOrCreate"}
        (container,) = self.pod["containers"]
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert mounts == {volume: self.kept.directory, "tmp": "/tmp"}
        assert "hostPID" not in self.pod

    def test_it_depends_on_the_api_server_only(self) -> None:
        assert self.pod["hostNetwork"] is True
        assert self.pod["tolerations"] == [{"operator": "Exists"}]
        assert self.pod["priorityClassName"] == "system-node-critical"
        assert self.options().servers == ["https://localhost:6443"]
        (label,) = self.pod["nodeSelector"]
        assert label == OPENSHIFT.node_selectors[0]

    def test_it_may_read_two_secrets_and_create_events(self) -> None:
        assert self.kept is not None
        account = self.pod["serviceAccountName"]
        rights = [
            (place, rule["resources"], rule.get("resourceNames"), rule["verbs"])
            for place, rule in bound(OPENSHIFT, account, OPENSHIFT.target_namespace)
        ]
        assert sorted(rights, key=str) == [
            (self.kept.namespace, ["secrets"], [self.kept.client_certificate], ["get"]),
            (OPENSHIFT.target_namespace, ["events"], None, ["create"]),
            (OPENSHIFT.target_namespace, ["secrets"], [self.kept.serving_certificate], ["get"]),
        ]

    def test_the_operator_does_not_treat_its_pods_as_its_own(self) -> None:
        daemon_set = found(OPENSHIFT, "DaemonSet", "kube-scheduler-cert-syncer")
        app = daemon_set["spec"]["template"]["metadata"]["labels"]["app"]
        operand = dict(OPENSHIFT.static_pod_labels)["app"]
        assert app not in (names.INSTALLER, names.GUARD, operand)


def test_the_service_selects_the_schedulers() -> None:
    assert OPENSHIFT.credentials is not None
    service = found(OPENSHIFT, "Service", "scheduler", OPENSHIFT.target_namespace)
    assert set(service["spec"]["selector"].items()) <= set(OPENSHIFT.static_pod_labels)
    asked = service["metadata"]["annotations"]["service.beta.openshift.io/serving-cert-secret-name"]
    assert asked == OPENSHIFT.credentials.serving_certificate


@each_platform
def test_network_policies_allow_the_operators_connections(platform: Platform) -> None:
    namespace = platform.operator_namespace
    policy: Any = found(platform, "NetworkPolicy", names.PROGRAM, namespace)["spec"]
    template = found(platform, "Deployment", platform.operator.deployment)["spec"]["template"]
    selected = policy["podSelector"]["matchLabels"].items()
    assert set(selected) <= set(template["metadata"]["labels"].items())
    (port,) = template["spec"]["containers"][0]["ports"]
    assert policy["ingress"] == [{"ports": [{"protocol": "TCP", "port": port["containerPort"]}]}]
    assert {} in policy["egress"]


@each_platform
def test_network_policies_isolate_all_other_pods(platform: Platform) -> None:
    kept = {policy["metadata"]["name"]: policy for policy in network_policies(platform)}
    for namespace in {platform.operator_namespace, platform.target_namespace}:
        if namespace == platform.target_namespace and kept:
            policy: Any = kept["default-deny-all"]
        else:
            policy = found(platform, "NetworkPolicy", "default-deny-all", namespace)
        assert policy["spec"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@each_platform
def test_every_network_policy_has_one_owner(platform: Platform) -> None:
    """Two would undo each other's changes: the manifests', and those that the operator keeps."""
    shipped = {
        (obj["metadata"]["namespace"], obj["metadata"]["name"])
        for obj in OVERLAYS[platform.name]
        if obj["kind"] == "NetworkPolicy"
    }
    for policy in network_policies(platform):
        metadata = policy["metadata"]
        assert (metadata["namespace"], metadata["name"]) not in shipped
        assert may(
            platform, ALL_WRITES, "networkpolicies",
            group="networking.k8s.io", namespace=metadata["namespace"],
        )  # fmt: skip


def test_on_openshift_the_network_policies_are_the_ones_that_its_tests_restore() -> None:
    kept = {policy["metadata"]["name"]: policy["spec"] for policy in network_policies(OPENSHIFT)}
    assert kept.keys() == {"default-deny-all", "installer-pruner"}
    own = found(OPENSHIFT, "NetworkPolicy", "kube-scheduler-operator", OPENSHIFT.operator_namespace)
    (expression,) = kept["installer-pruner"]["podSelector"]["matchExpressions"]
    assert expression == {"key": "app", "operator": "In", "values": ["installer", "pruner"]}
    for spec in (kept["installer-pruner"], own["spec"]):
        dns, anything = spec["egress"]
        assert {(port["protocol"], port["port"]) for port in dns["ports"]} == {
            ("TCP", 5353), ("UDP", 5353),
        }  # fmt: skip
        assert anything == {}


def node_pods(platform: Platform) -> list[dict[str, Any]]:
    """The Pods that the operator creates in the target namespace and that work on a node."""
    if not platform.owns_static_pods:
        return []
    return [
        pods.render_installer_pod(
            platform,
            pods.Attempt("n", 1, 0),
            pods.InstalledScheduler("operand", ()),
            "operator",
            "uid",
        ),
        pods.render_restore_pod(platform, "n", 0, "operator"),
        pods.render_guard_pod(platform, "n", "operator", {}, known="", owner_uid="uid"),
    ]


@each_platform
def test_network_policies_select_no_pods_on_the_host_network(platform: Platform) -> None:
    for pod in node_pods(platform):
        assert pod["metadata"]["namespace"] == platform.target_namespace
        assert pod["spec"]["hostNetwork"] is True
    for obj in OVERLAYS[platform.name]:
        if obj["kind"] == "DaemonSet":
            assert obj["spec"]["template"]["spec"]["hostNetwork"] is True


@each_platform
def test_pod_security_is_as_strict_as_the_pods_of_a_namespace_allow(platform: Platform) -> None:
    modes = ("enforce", "audit", "warn")
    privileged = {pod["metadata"]["namespace"] for pod in node_pods(platform)}
    for namespace in {platform.operator_namespace, platform.target_namespace}:
        labels = found(platform, "Namespace", namespace)["metadata"]["labels"]
        level = "privileged" if namespace in privileged else "restricted"
        assert [labels[f"pod-security.kubernetes.io/{mode}"] for mode in modes] == [level] * 3
