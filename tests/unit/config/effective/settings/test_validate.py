"""OperatorSettings: what is refused, with the field and the fix, and what has no effect."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import assets, names
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED, OPENSHIFT, RKE2, Platform
from kube_scheduler_operator.config.effective.settings.requested_pod import (
    ALLOWED,
    NOTHING_REQUESTED,
    RESERVED,
    HostFile,
    RequestedPod,
)
from kube_scheduler_operator.config.effective.settings.upgrade_check import (
    UpgradeRequest,
    upgrade_request,
)
from kube_scheduler_operator.config.effective.settings.validate import (
    DEFINITION,
    NODE_DOMAINS,
    PlacementSettings,
    PodDefaults,
    SettingsResult,
    placement_settings,
    validate_settings,
)
from kube_scheduler_operator.config.language.versions import Version

from .....builders import operator_settings
from .....odd_json import nested

OWN = {"requests": {"cpu": "100m", "memory": "50Mi"}}
NOTHING_ADOPTED = PodDefaults(OWN, {})
EVERYTHING: dict[str, Any] = {
    "resources": {"requests": {"cpu": 1, "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
    "env": [{"name": "GOGC", "value": "80"}, {"name": "EMPTY"}],
    "annotations": {"example.com/team": "infra"},
    "priorityClassName": "system-cluster-critical",
    "hostFiles": [
        {"path": "/etc/ssl/certs", "type": "Directory"},
        {"path": "/etc/localtime", "mountPath": "/etc/zone"},
    ],
    "removeAdopted": ["env.HTTPS_PROXY"],
}


def result(*, defaults: PodDefaults = NOTHING_ADOPTED, **pods: Any) -> SettingsResult:
    found = validate_settings({"cluster": operator_settings(**pods)}, KUBEADM, defaults)
    assert found is not None
    return found


def errors(defaults: PodDefaults = NOTHING_ADOPTED, **pods: Any) -> list[str]:
    return [
        finding.text.removeprefix("OperatorSettings/cluster spec.pods.")
        for finding in result(defaults=defaults, **pods).findings
    ]


def test_without_the_object_nothing_is_requested() -> None:
    assert validate_settings({}, KUBEADM, NOTHING_ADOPTED) is None
    assert validate_settings({"other": operator_settings()}, KUBEADM, NOTHING_ADOPTED) is None


def test_everything_at_once() -> None:
    found = result(**EVERYTHING)
    assert (found.accepted, found.findings) == (True, ())
    assert found.pods == RequestedPod(
        {"requests": {"cpu": "1", "memory": "256Mi"}, "limits": {"memory": "1Gi"}},
        (("GOGC", "80"), ("EMPTY", "")),
        {"example.com/team": "infra"},
        "system-cluster-critical",
        (
            HostFile("/etc/ssl/certs", "/etc/ssl/certs", "Directory"),
            HostFile("/etc/localtime", "/etc/zone"),
        ),
        ("env.HTTPS_PROXY",),
    )


def test_zero_values_count_as_unset() -> None:
    zero: dict[str, Any] = {
        "resources": {"requests": {"cpu": 0, "memory": "0"}, "limits": {}},
        "env": [], "annotations": {}, "priorityClassName": "", "hostFiles": [], "removeAdopted": [],
    }  # fmt: skip
    assert result(**zero).pods == NOTHING_REQUESTED
    file = {"path": "/etc/localtime", "mountPath": "", "type": ""}
    assert result(hostFiles=[file]).pods.host_files == (
        HostFile("/etc/localtime", "/etc/localtime"),
    )


def test_errors_of_all_fields_are_reported_at_once() -> None:
    found = errors(
        resources={"limits": {"memory": "x"}},
        env=[{"name": "TOKEN", "value": "hunter2"}],
        hostFiles=[{"path": "/etc/shadow"}],
    )
    assert [text.partition(":")[0] for text in found] == [
        "env[0].value", "resources.limits.memory", "hostFiles[0].path",
    ]  # fmt: skip


def file(path: str, at: str = "") -> dict[str, Any]:
    return {"hostFiles": [{"path": path, "mountPath": at}]}


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        ({"resources": {"requests": {"cpu": "lots"}}},
         'resources.requests.cpu: "lots" is not a quantity such as 250m, 1.5 or 512Mi'),
        ({"resources": {"limits": {"cpu": "-1"}}}, "resources.limits.cpu: -1 is negative"),
        ({"resources": {"limits": {"memory": "512m"}}},
         "resources.limits.memory: 512m is less than a mebibyte, too little to start a scheduler; "
         "did you mean 512Mi?"),
        ({"resources": {"requests": {"cpu": 2}, "limits": {"cpu": "1500m"}}},
         "resources.limits.cpu: the request of 2 is more than the limit of 1500m; set both"),
        ({"resources": {"limits": {"memory": "40Mi"}}},
         "resources.limits.memory: the request of 50Mi, which the operator sets by default, is "
         "more than the limit of 40Mi"),
        ({"resources": {"limits": {"nvidia.com/gpu": 1}}}, "resources.limits"),
        ({"env": [{"name": "A=B"}]}, "env[0].name: "),
        ({"env": [{"name": "A", "value": "a\x00"}]}, "env[0].value: "),
        ({"env": [{"name": "A"}, {"name": "A"}]}, 'env[1].name: the variable "A" is already set'),
        ({"env": [{"name": "A", "valueFrom": {}}]}, "env[0].valueFrom: "),
        ({"env": [{"name": "API_TOKEN", "value": "hunter2"}]},
         'env[0].value: the variable "API_TOKEN" has credentials'),
        ({"env": [{"name": "LD_PRELOAD", "value": "/etc/ssl/certs/a"}]},
         'env[0].name: the variable "LD_PRELOAD" chooses the code of a program'),
        ({"env": [{"name": "HTTPS_PROXY", "value": "http://me:hunter2@proxy:3128"}]},
         'env[0].value: the variable "HTTPS_PROXY" has credentials'),
        ({"env": [{"name": "A", "value": "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0t"}]},
         'env[0].value: the variable "A" has credentials'),
        ({"annotations": {"kubernetes.io/config.source": "api"}},
         "annotations['kubernetes.io/config.source']: this annotation belongs to the kubelet"),
        ({"annotations": {"kube-scheduler-operator.dev/content-hash": "x"}},
         "annotations['kube-scheduler-operator.dev/content-hash']: this annotation belongs to the "
         "operator; remove it"),
        ({"annotations": {"container.apparmor.security.beta.kubernetes.io/kube-scheduler": "x"}},
         "this annotation belongs to the kubelet, to container runtimes"),
        ({"annotations": {"cdi.k8s.io/gpu": "vendor.example/gpu=0"}}, "belongs to the kubelet"),
        ({"annotations": {"devices.nri.io/container.x": "[]"}}, "use a domain of your own"),
        ({"annotations": {"cpu-quota.crio.io/x": "disable"}}, "belongs to the kubelet"),
        ({"annotations": {"kubectl.kubernetes.io/default-container": "x"}}, "to the kubelet"),
        ({"annotations": {"io.kubernetes.cri-o.Devices": "/dev/mem"}}, "belongs to the kubelet"),
        ({"annotations": {"run.oci.handler": "x"}}, "belongs to the kubelet"),
        ({"annotations": {"no spaces": "x"}}, "annotations['no spaces']: \"no spaces\" is not"),
        ({"priorityClassName": "high"}, "priorityClassName: "),
        (file("/etc/kubernetes/admin.conf"), "hostFiles[0].path: /etc/kubernetes/admin.conf "
         "cannot be mounted: only /etc/ca-certificates, "),
        (file("/etc/kubernetes/admin.conf"), "copy the file to /etc/kube-scheduler-operator/public"
         " on every control-plane node"),
        (file("/etc/ssl/certs/../private/a"), "hostFiles[0].path: "),
        (file("/etc/ssl/certsx/a"), "hostFiles[0].path: /etc/ssl/certsx/a cannot be mounted"),
        (file("/etc/ssl"), "hostFiles[0].path: /etc/ssl cannot be mounted"),
        (file("etc/ssl/certs"), "hostFiles[0].path: "),
        (file("/etc/ssl/certs/"), "hostFiles[0].path: "),
        (file("/etc/ssl/certs/server.KEY"),
         "hostFiles[0].path: /etc/ssl/certs/server.KEY is the path of a key or a kubeconfig"),
        (file("/etc/pki/tls/certs/server.pem"), "hostFiles[0].path: "),
        (file("/etc/localtime", "/etc/kubernetes/scheduler.conf"),
         "hostFiles[0].mountPath: a mount at /etc/kubernetes/scheduler.conf would hide files"),
        (file("/etc/localtime", "/etc"), "hostFiles[0].mountPath: a mount at /etc would hide"),
        (file("/etc/localtime", "/usr/local/bin/kube-scheduler"), "hostFiles[0].mountPath: "),
        (file("/etc/localtime", "zone"), "hostFiles[0].mountPath: "),
        ({"hostFiles": [*file("/etc/localtime", "/x")["hostFiles"], *file("/etc/ssl/certs", "/x")
          ["hostFiles"]]}, "hostFiles[1].mountPath: another entry is mounted at /x; remove one"),
        ({"hostFiles": [*file("/etc/ssl/certs")["hostFiles"], *file("/etc/localtime",
          "/etc/ssl/certs/zone")["hostFiles"]]}, "hostFiles[1].mountPath: the mounts at"),
        ({"removeAdopted": ["flags.v"]},
         'removeAdopted[0]: "flags.v" is not an adopted setting of the Pod'),
        ({"env": "GOGC=80"}, "env: must be a list"),
        ({"resource": {}}, "resource: "),
    ],
)  # fmt: skip
def test_an_error_names_field_and_fix(pods: dict[str, Any], message: str) -> None:
    found = errors(**pods)
    assert len(found) == 1
    assert message in found[0]
    assert "hunter2" not in found[0]


@pytest.mark.parametrize(
    "key", ["team", "example.com/team", "prometheus.io/scrape", "my-kubernetes.io/x", "a.b/c.d"]
)
def test_annotations_of_users_are_accepted(key: str) -> None:
    assert errors(annotations={key: "x"}) == []


@pytest.mark.parametrize("path", ALLOWED)
def test_files_below_an_allowed_directory_can_be_mounted(path: str) -> None:
    assert errors(**file(path)) == []
    assert errors(**file(f"{path}/ca.crt", "/etc/extra/ca.crt")) == []


@pytest.mark.parametrize("path", RESERVED)
def test_no_mount_hides_the_scheduler(path: str) -> None:
    for at in (path, f"{path}/x"):
        assert len(errors(**file("/etc/localtime", at))) == 1


@pytest.mark.parametrize("platform", [KUBEADM, RKE2])
def test_what_the_scheduler_needs_is_within_reserved_paths(platform: Any) -> None:
    for needed in (platform.scheduler_kubeconfig, *platform.kubeconfig_files):
        assert any(needed.startswith(f"{one}/") for one in RESERVED)


def test_no_directory_of_keys_is_allowed() -> None:
    keys = ("/etc/kubernetes", "/var/lib/rancher", "/var/lib/kubelet", "/root", "/etc/ssl/private",
            "/etc/pki/tls/private", "/var/lib/etcd", "/home", "/run", "/etc/ssh")  # fmt: skip
    for one in ALLOWED:
        assert not any(f"{one}/".startswith(f"{key}/") for key in keys)
        assert not any(f"{key}/".startswith(f"{one}/") for key in keys)


def test_the_definition_has_the_same_lists() -> None:
    """Its rules and messages repeat them: an API server cannot read the program."""
    document = yaml.safe_load(assets.text("crds", DEFINITION))
    schema = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    file_ = schema["properties"]["pods"]["properties"]["hostFiles"]["items"]["properties"]
    allowed = file_["path"]["x-kubernetes-validations"][1]
    reserved = file_["mountPath"]["x-kubernetes-validations"][1]["rule"]
    quoted = [part for part in allowed["rule"].split("'") if part.startswith("/") and part != "/"]
    assert tuple(quoted) == ALLOWED
    assert all(path in allowed["message"] for path in ALLOWED)
    found = [part for part in reserved.split("'") if part.startswith("/") and part != "/"]
    assert tuple(found) == RESERVED
    annotations = schema["properties"]["pods"]["properties"]["annotations"]
    rule = annotations["x-kubernetes-validations"][1]
    assert f"({'|'.join(NODE_DOMAINS)})[.]io/" in rule["rule"]
    assert all(f"{domain}.io" in rule["message"] for domain in NODE_DOMAINS)


# --- what was adopted -----------------------------------------------------------------------------

ADOPTED = PodDefaults(OWN, {"env.HTTPS_PROXY": {}, "resources": {"requests": {"memory": "900Mi"}}})


def test_a_limit_is_compared_with_the_adopted_request() -> None:
    (error,) = errors(ADOPTED, resources={"limits": {"memory": "500Mi"}})
    assert "the request of 900Mi, which was adopted, is more than the limit of 500Mi" in error
    limited = {"limits": {"memory": "500Mi"}}
    assert errors(ADOPTED, resources=limited, removeAdopted=["resources"]) == []


def test_removing_what_was_not_adopted_is_a_warning() -> None:
    found = result(defaults=ADOPTED, removeAdopted=["env.HTTP_PROXY", "env.HTTPS_PROXY"])
    assert found.accepted
    (warning,) = found.warnings
    assert warning.text == (
        'OperatorSettings/cluster spec.pods.removeAdopted[0]: "env.HTTP_PROXY" was not adopted; '
        'did you mean "env.HTTPS_PROXY"?; use a name from AdoptedSettings of KubeScheduler, or '
        "remove it"
    )


# --- versions -------------------------------------------------------------------------------------


def test_the_last_accepted_version_stays_in_use() -> None:
    accepted = {"pods": {"env": [{"name": "GOGC", "value": "80"}]}}
    found = result(accepted=accepted, env=[{"name": "A B"}])
    assert (found.accepted, found.uses_last_accepted) == (False, True)
    assert found.pods.env == (("GOGC", "80"),)
    assert len(found.findings) == 1


@pytest.mark.parametrize(
    "pods",
    [
        {"env": [{"name": "LD_PRELOAD", "value": "/x.so"}]},
        {"annotations": {"container.apparmor.security.beta.kubernetes.io/kube-scheduler": "x"}},
    ],
)
def test_what_is_no_longer_allowed_stays_in_use_if_it_was_accepted_before(
    pods: dict[str, Any],
) -> None:
    found = result(accepted={"pods": pods}, **pods)
    assert (found.accepted, found.uses_last_accepted) == (False, True)
    assert [finding.reason for finding in found.findings] == ["NotAllowed"]
    assert found.pods.env or found.pods.annotations
    assert not result(**pods).uses_last_accepted


def test_an_accepted_version_is_validated_again() -> None:
    accepted = {"pods": {"resources": {"limits": {"memory": "500Mi"}}}}
    found = result(defaults=ADOPTED, accepted=accepted, env="x")
    assert (found.accepted, found.spec, found.pods) == (False, None, NOTHING_REQUESTED)
    assert [finding.path.rpartition(" ")[2] for finding in found.findings] == [
        "spec.pods.env", "status.accepted.pods.resources.limits.memory",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "pods", [{"env": [{"name": 1}]}, {"annotations": [1]}, {"hostFiles": [{}]}, {"x": nested(80)}]
)
def test_odd_values_are_errors(pods: dict[str, Any]) -> None:
    assert not result(**pods).accepted


# --- platforms ------------------------------------------------------------------------------------


def test_on_openshift_nothing_has_an_effect_and_each_field_has_a_warning() -> None:
    found = validate_settings(
        {"cluster": operator_settings(**EVERYTHING)}, OPENSHIFT, NOTHING_ADOPTED
    )
    assert found is not None
    assert found.accepted
    assert found.pods == NOTHING_REQUESTED
    assert len(found.warnings) == len(EVERYTHING)
    assert found.warnings[0].text == (
        "OperatorSettings/cluster spec.pods.annotations: has no effect on OpenShift, where the "
        "release defines the static Pods; remove it"
    )


def test_on_managed_clusters_resources_and_priority_have_an_effect() -> None:
    found = validate_settings(
        {"cluster": operator_settings(**EVERYTHING)}, MANAGED, NOTHING_ADOPTED
    )
    assert found is not None
    assert found.pods.priority_class_name == "system-cluster-critical"
    assert found.pods.resources["limits"] == {"memory": "1Gi"}
    assert not found.pods.env
    assert [warning.path.rpartition(".")[2] for warning in found.warnings] == [
        "annotations", "env", "hostFiles", "removeAdopted",
    ]  # fmt: skip
    assert "has only resources and priorityClassName; remove it" in found.warnings[0].text


def test_findings_are_of_a_condition_of_their_own() -> None:
    assert {f.condition for f in result(env="x").findings} == {names.OPERATOR_SETTINGS_DEGRADED}


# --- spec.placementCheck --------------------------------------------------------------------------


def checked(platform: Platform = KUBEADM, **check: Any) -> SettingsResult:
    obj = {**operator_settings(), "spec": {"placementCheck": check}}
    found = validate_settings({"cluster": obj}, platform, NOTHING_ADOPTED)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"mode": False}, 'mode: must be a string; write "Off" in quotes: YAML reads Off as false'),
        ({"mode": "Gates"}, 'mode: "Gates" is not supported; did you mean "Gate"?'),
        ({"timeoutSeconds": 5},
         "timeoutSeconds: 5 s are not enough to start a Pod with two images; use 30 or more"),
        ({"timeoutSeconds": 4000}, "timeoutSeconds: 4000 is too large; use 1800 or less"),
        ({"approved": "yes"}, 'approved: "yes" is not the hash of a configuration; use kubectl '
         "scheduler rollout approve, which writes it"),
    ],
)  # fmt: skip
def test_a_wrong_check_is_an_error_with_a_fix(check: dict[str, Any], message: str) -> None:
    (finding,) = checked(**check).findings
    text = finding.text.removeprefix("OperatorSettings/cluster spec.placementCheck.")
    assert text == message


def test_a_check_is_off_without_its_fields_and_with_zero_values() -> None:
    for check in ({}, {"mode": "", "timeoutSeconds": 0, "approved": ""}, {"mode": "Off"}):
        found = checked(**check)
        assert found.findings == ()
        assert placement_settings(found.spec) == PlacementSettings("Off", 300, "")
    assert placement_settings(None) == PlacementSettings("Off", 300, "")
    chosen: dict[str, Any] = {"mode": "Gate", "timeoutSeconds": 60, "approved": "0" * 64}
    assert placement_settings(checked(**chosen).spec) == PlacementSettings("Gate", 60, "0" * 64)


def test_a_check_has_an_effect_on_every_platform() -> None:
    for platform in (KUBEADM, RKE2, OPENSHIFT, MANAGED):
        assert checked(platform, mode="Gate").warnings == ()


def test_an_approval_of_a_secondary_scheduler_is_read_by_its_name() -> None:
    approvals = {"batch": "0" * 64, "web": ""}
    found = checked(mode="Gate", approvedSchedulers=approvals)
    assert found.findings == ()
    assert placement_settings(found.spec).approved_schedulers == {"batch": "0" * 64}
    (finding,) = checked(approvedSchedulers={"batch": "yes\n"}).findings
    assert 'placementCheck.approvedSchedulers.batch: "yes' in finding.text
    assert "\n" not in finding.text


# --- spec.upgradeCheck ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"version": 1.37},
         'version: must be a string; write "1.37" in quotes: YAML reads 1.37 as a number'),
        ({"version": "1.37.2"},
         'version: "1.37.2" does not match ^(1\\.(0|[1-9][0-9]{0,2}))?$; write a minor version, '
         'such as "1.37"'),
    ],
)  # fmt: skip
def test_a_wrong_check_of_a_version_is_an_error_with_a_fix(
    check: dict[str, Any], message: str
) -> None:
    obj = {**operator_settings(), "spec": {"upgradeCheck": check}}
    found = validate_settings({"cluster": obj}, KUBEADM, NOTHING_ADOPTED)
    assert found is not None
    (finding,) = found.findings
    assert finding.text.removeprefix("OperatorSettings/cluster spec.upgradeCheck.") == message
    assert upgrade_request({"upgradeCheck": {"version": "soon"}}) is None


def test_a_check_of_a_version_has_the_version_and_an_image() -> None:
    assert upgrade_request(None) is None
    for unset in ({}, {"version": ""}, {"version": "", "image": ""}):
        assert upgrade_request({"upgradeCheck": unset}) is None
    assert upgrade_request({"upgradeCheck": {"version": "1.37"}}) == UpgradeRequest(Version(1, 37))
    image = {"version": "1.37", "image": "a:v1.37.2"}
    assert upgrade_request({"upgradeCheck": image}) == UpgradeRequest(Version(1, 37), "a:v1.37.2")
