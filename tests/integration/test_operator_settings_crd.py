"""What a real API server makes of the kind OperatorSettings, and what kubectl shows of it.

There is one object, so its tests are in one file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.effective.settings.requested_pod import ALLOWED, RESERVED

from ..unit.config.effective.settings.test_validate import EVERYTHING
from .conftest import ApiServer, RefusedError
from .test_crds import SINCE, Kind
from .test_zero_values import unexpected

pytestmark = pytest.mark.presubmit

if TYPE_CHECKING:
    from collections.abc import Iterator

CLUSTER = "cluster"


@pytest.fixture
def settings(api_server: ApiServer) -> Iterator[Kind]:
    kind = Kind(api_server, "OperatorSettings")
    yield kind
    kind.remove()


def test_everything_at_once(settings: Kind) -> None:
    settings.create({"pods": EVERYTHING}, CLUSTER)
    assert settings.get(CLUSTER)["spec"] == {"pods": EVERYTHING}


def test_nothing_is_enough(settings: Kind) -> None:
    settings.create({}, CLUSTER)
    assert settings.get(CLUSTER)["spec"] == {}


def test_a_cluster_has_one_object(settings: Kind) -> None:
    with pytest.raises(RefusedError, match='must be "cluster"; a cluster has one OperatorSettings'):
        settings.create({}, "mine")


def mounted(path: str, at: str = "") -> dict[str, Any]:
    return {"hostFiles": [{"path": path, "mountPath": at}]}


@pytest.mark.parametrize(
    ("pods", "message"),
    [
        ({"env": [{"name": "A B"}]}, r"spec.pods.env\[0\].name"),
        ({"env": [{"name": "A", "value": "x\u0007"}]}, r"spec.pods.env\[0\].value"),
        ({"env": [{"name": "A"}, {"name": "A"}]}, "Duplicate value"),
        ({"env": [{"name": "A", "valueFrom": {}}]}, "unknown field"),
        ({"annotations": {"kubernetes.io/config.source": "api"}}, "belong to the kubelet"),
        (
            {
                "annotations": {
                    "container.apparmor.security.beta.kubernetes.io/kube-scheduler": "unconfined"
                }
            },
            "belong to the kubelet",
        ),
        ({"annotations": {"io.kubernetes.cri-o.Devices": "/dev/mem"}}, "belong to the kubelet"),
        ({"annotations": {"kube-scheduler-operator.dev/x": "y"}}, "to the operator; remove them"),
        ({"annotations": {"a b": "y"}}, "a key must be NAME or PREFIX/NAME"),
        ({"annotations": {"a": "x" * 4097}}, "Too long"),
        ({"priorityClassName": "high"}, "supported values"),
        ({"resources": {"limits": {"ephemeral-storage": "1Gi"}}}, "unknown field"),
        ({"resources": {"requests": {"cpu": 0.5}}}, "spec.pods.resources.requests.cpu"),
        (
            mounted("/etc/kubernetes/admin.conf"),
            "without keys and kubeconfigs can be mounted, from",
        ),
        (
            mounted("/etc/kubernetes/admin.conf"),
            "copy the file to /etc/kube-scheduler-operator/public",
        ),
        (mounted("/var/lib/rancher/rke2/server/tls/server-ca.key"), "without keys"),
        (mounted("/etc/ssl"), "without keys"),
        (mounted("/etc/ssl/certsx"), "without keys"),
        (mounted("/etc/ssl/certs/../private"), "without .. and without a / at its end"),
        (mounted("/etc/ssl/certs/./a"), "without .. and without a / at its end"),
        (mounted("/etc/ssl/certs/"), "without .. and without a / at its end"),
        (mounted("/etc/ssl/certs/A.Key"), "the path of a key or a kubeconfig"),
        (mounted("/etc/pki/ca-trust/private/a"), "the path of a key or a kubeconfig"),
        (mounted("/etc/localtime", "/etc"), "a mount here would hide files"),
        (mounted("/etc/localtime", "/"), "use an absolute path"),
        (mounted("/etc/localtime", "/a/../etc/kubernetes"), "use an absolute path"),
        ({"hostFiles": [{"path": "/etc/localtime", "type": "Socket"}]}, "supported values"),
        ({"removeAdopted": ["env.A", "env.A"]}, "Duplicate value"),
    ],
)
@pytest.mark.presubmit
def test_refused_with_the_field(settings: Kind, pods: dict[str, Any], message: str) -> None:
    with pytest.raises(RefusedError, match=message):
        settings.create({"pods": pods}, CLUSTER)


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"mode": "warn"}, "supported values"),
        ({"mode": False}, "must be of type string"),  # what YAML makes of Off without quotes
        ({"timeoutSeconds": 29}, "must be at least 30, in which a Pod with two images can start"),
        ({"timeoutSeconds": 1801}, "less than or equal to 1800"),
        ({"approved": "yes"}, "must be status.placementCheck.configuration, 64 hexadecimal digits"),
        (
            {"approvedSchedulers": {"a": "yes"}},
            "must be status.placementCheck.configuration of",
        ),
        ({"hold": True}, "unknown field"),
    ],
)
def test_a_wrong_check_is_refused_with_the_field(
    settings: Kind, check: dict[str, Any], message: str
) -> None:
    with pytest.raises(RefusedError, match=message):
        settings.create({"placementCheck": check}, CLUSTER)


@pytest.mark.parametrize("mode", ["", "Off", "Warn", "Gate"])
def test_every_mode_of_a_check_is_accepted(settings: Kind, mode: str) -> None:
    check = {"mode": mode, "timeoutSeconds": 30, "approved": "0123456789abcdef" * 4}
    check["approvedSchedulers"] = {"batch": "0123456789abcdef" * 4, "web": ""}
    settings.create({"placementCheck": check}, CLUSTER)
    found: dict[str, Any] = {
        "configuration": "0" * 64,
        "result": "NotKnown",
        "state": "Held",
        "message": "x",
    }
    found |= {
        "running": "",
        "settings": "1" * 64,
        "ran": [f"{number:064d}" for number in range(20)],
    }
    settings.set_status(CLUSTER, {"placementCheck": found})
    assert settings.get(CLUSTER)["status"]["placementCheck"] == found


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ({"version": 1.37}, "must be of type string"),  # what YAML makes of 1.37 without quotes
        ({"version": "1.37.2"}, "should match"),
        ({"version": "v1.37"}, "should match"),
        ({"version": "1.37", "image": "a b"}, "should match"),
        ({"version": "1.37", "wait": True}, "unknown field"),
    ],
)
def test_a_wrong_check_of_a_version_is_refused_with_the_field(
    settings: Kind, check: dict[str, Any], message: str
) -> None:
    with pytest.raises(RefusedError, match=message):
        settings.create({"upgradeCheck": check}, CLUSTER)


def test_a_check_of_a_version_is_accepted_and_its_memory_is_kept(settings: Kind) -> None:
    settings.create({"upgradeCheck": {"version": "1.37", "image": "a.example/b:v1.37.2"}}, CLUSTER)
    found: dict[str, Any] = {
        "version": "1.37", "image": "", "configuration": "0" * 64,
        "started": "2026-01-01T00:00:00Z", "checked": "2026-01-01T00:01:00Z",
        "state": "Checked", "result": "Changes", "tried": True,
        "message": "x", "reached": "v1.37.2",
    }  # fmt: skip
    settings.set_status(CLUSTER, {"upgradeCheck": found})
    assert settings.get(CLUSTER)["status"]["upgradeCheck"] == found


def test_every_allowed_path_can_be_mounted_and_no_reserved_one_is_hidden(settings: Kind) -> None:
    path = f"{settings.path}?dryRun=All"

    def refusal(pods: dict[str, Any]) -> str:
        body = {
            "apiVersion": "kube-scheduler-operator.dev/v1alpha1", "kind": "OperatorSettings",
            "metadata": {"name": CLUSTER}, "spec": {"pods": pods},
        }  # fmt: skip
        try:
            settings.server.request("POST", path, body)
        except RefusedError as error:
            return str(error)
        return ""

    assert [one for one in ALLOWED if refusal(mounted(one, "/extra"))] == []
    assert [one for one in ALLOWED if refusal(mounted(f"{one}/a.crt"))] == []
    assert [one for one in RESERVED if not refusal(mounted("/etc/localtime", one))] == []
    assert [one for one in RESERVED if not refusal(mounted("/etc/localtime", f"{one}/a"))] == []


@pytest.mark.presubmit
def test_zero_values_of_optional_fields_are_accepted(api_server: ApiServer) -> None:
    assert unexpected(api_server, names.OPERATORSETTINGS, "OperatorSettings", CLUSTER) == {}


def test_the_columns_show_whether_it_is_in_use(settings: Kind) -> None:
    settings.create({"pods": EVERYTHING}, CLUSTER)
    found = {
        "type": "Accepted",
        "status": "True",
        "reason": "Accepted",
        "lastTransitionTime": SINCE,
    }
    warned = {**found, "type": "Warnings", "reason": "NotAdopted", "message": "x"}
    status = {"accepted": {"pods": EVERYTHING}, "acceptedGeneration": 1, "observedGeneration": 1}
    settings.set_status(CLUSTER, {**status, "conditions": [found, warned]})
    assert settings.get(CLUSTER)["status"]["accepted"] == {"pods": EVERYTHING}
    row = settings.row(CLUSTER, "-o", "wide")
    assert (row["NAME"], row["ACCEPTED"], row["WARNINGS"]) == (CLUSTER, "True", "True")
