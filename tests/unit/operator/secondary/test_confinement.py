"""What the author of a SecondaryScheduler cannot obtain through its Pods."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.images import AllowedImages
from kube_scheduler_operator.config.effective.secondary.confinement import confinement_problems
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, DEPLOYMENTS

from .world import NAMESPACE, World

IMAGE = "registry.example/extender:v1"
ROOT = [{"name": "host", "hostPath": {"path": "/"}}]
CLAIM = [{"name": "a", "ephemeral": {"volumeClaimTemplate": {"spec": {"volumeName": "of-others"}}}}]


def sidecar(**fields: Any) -> dict[str, Any]:
    return {"name": "extender", "image": IMAGE, **fields}


def with_context(**context: Any) -> dict[str, Any]:
    return {"sidecars": [sidecar(securityContext=context)]}


def with_sidecar(**fields: Any) -> dict[str, Any]:
    return {"sidecars": [sidecar(**fields)]}


OWN_IMAGE = "registry.example/own:v1"
OWN_PROGRAM = names.PROGRAM
MIRRORS = AllowedImages(("registry.example/*", "mirror.example/*"))


def own(**fields: Any) -> dict[str, Any]:
    """A sidecar with the operator's own image; by default it is an extender."""
    extender = {"args": ["extender", "--no-watch", "--policy=foo"], **fields}
    return with_sidecar(**{"image": OWN_IMAGE, **extender})


def with_volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "data", **source}]}


TOKEN = {"serviceAccountToken": {"path": "token"}}
PROBE = {"httpGet": {"host": "169.254.169.254", "port": 80}}
ATTACKS = [
    (with_context(privileged=True), "sidecars[0].securityContext.privileged"),
    (with_context(runAsUser=0), "sidecars[0].securityContext.runAsUser"),
    (with_context(runAsNonRoot=False), "sidecars[0].securityContext.runAsNonRoot"),
    (
        with_context(allowPrivilegeEscalation=True),
        "sidecars[0].securityContext.allowPrivilegeEscalation",
    ),
    (with_context(capabilities={}), "sidecars[0].securityContext.capabilities"),
    (
        with_context(capabilities={"drop": ["ALL"], "add": ["SYS_ADMIN"]}),
        "sidecars[0].securityContext.capabilities",
    ),
    (with_context(procMount="Unmasked"), "sidecars[0].securityContext.procMount"),
    (
        with_context(seccompProfile={"type": "Unconfined"}),
        "sidecars[0].securityContext.seccompProfile",
    ),
    (
        with_context(appArmorProfile={"type": "Unconfined"}),
        "sidecars[0].securityContext.appArmorProfile",
    ),
    (with_context(seLinuxOptions={"type": "spc_t"}), "sidecars[0].securityContext.seLinuxOptions"),
    (with_context(seLinuxOptions={"user": "root"}), "sidecars[0].securityContext.seLinuxOptions"),
    (
        with_context(windowsOptions={"hostProcess": True}),
        "sidecars[0].securityContext.windowsOptions",
    ),
    (with_sidecar(ports=[{"containerPort": 1, "hostPort": 1}]), "sidecars[0].ports[0].hostPort"),
    (with_sidecar(volumeDevices=[{"name": "x", "devicePath": "/d"}]), "sidecars[0].volumeDevices"),
    (
        with_sidecar(volumeMounts=[{"name": "api-access", "mountPath": "/t"}]),
        "sidecars[0].volumeMounts[0].name",
    ),
    (
        with_sidecar(volumeMounts=[{"name": "config", "mountPath": "/t"}]),
        "sidecars[0].volumeMounts[0].name",
    ),
    (
        with_sidecar(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}]),
        "sidecars[0].env[0].valueFrom.secretKeyRef",
    ),
    (with_sidecar(envFrom=[{"secretRef": {"name": "s"}}]), "sidecars[0].envFrom[0].secretRef"),
    (with_sidecar(livenessProbe=PROBE), "sidecars[0].livenessProbe.httpGet.host"),
    (
        with_sidecar(lifecycle={"preStop": {"tcpSocket": {"host": "a", "port": 1}}}),
        "sidecars[0].lifecycle.preStop.tcpSocket.host",
    ),
    ({"sidecars": [sidecar()], "volumes": ROOT}, "volumes[0].hostPath"),
    ({"sidecars": [sidecar()], "volumes": CLAIM}, "volumes[0].ephemeral"),
    (with_volume(secret={"secretName": "s"}), "volumes[0].secret"),
    (with_volume(persistentVolumeClaim={"claimName": "c"}), "volumes[0].persistentVolumeClaim"),
    (with_volume(csi={"driver": "secrets-store.csi.k8s.io"}), "volumes[0].csi"),
    (with_volume(nfs={"server": "a", "path": "/"}), "volumes[0].nfs"),
    (
        with_volume(projected={"sources": [TOKEN]}),
        "volumes[0].projected.sources[0].serviceAccountToken",
    ),
    (
        with_volume(projected={"sources": [{"secret": {"name": "s"}}]}),
        "volumes[0].projected.sources[0].secret",
    ),
    ({"volumes": [{"name": "api-access", "emptyDir": {}}]}, "volumes[0].name"),
    ({"sidecars": [{"name": "x", "image": "evil.example/x:v1"}]}, "sidecars[0].image"),
    (with_sidecar(livenessProbe={"exec": {"command": ["id"]}}), "sidecars[0].livenessProbe.exec"),
    (
        with_sidecar(lifecycle={"postStart": {"exec": {"command": ["id"]}}}),
        "sidecars[0].lifecycle.postStart.exec",
    ),
    (with_sidecar(env=[{"name": "PYTHONPATH", "value": "/x"}]), "sidecars[0].env[0].name"),
    (with_sidecar(env=[{"name": "LD_PRELOAD", "value": "/x"}]), "sidecars[0].env[0].name"),
    (with_sidecar(env=[{"name": "node_options", "value": "-r x"}]), "sidecars[0].env[0].name"),
    (
        with_sidecar(envFrom=[{"prefix": "LD_", "configMapRef": {"name": "c"}}]),
        "sidecars[0].envFrom[0].prefix",
    ),
    ({"image": "evil.example/kube-scheduler:v1.35.4"}, "image"),
    ({"command": ["kube-scheduler", "--master=https://evil.example"]}, "command[1]"),
    ({"command": ["sh", "-c", "cat /var/run/secrets/x"]}, "command[1]"),
    ({"command": ["sh\n"]}, "command[0]"),
    ({"extraArguments": {"vmodule=a=1 --master": "x"}}, "extraArguments['vmodule=a=1 --master']"),
    ({"extraArguments": {"config=/x": "y"}}, "extraArguments['config=/x']"),
    (
        {"extraArguments": {"authorization-always-allow-paths": "/*"}},
        "extraArguments.authorization-always-allow-paths",
    ),
    (
        {"extraArguments": {"authentication-skip-lookup": "true"}},
        "extraArguments.authentication-skip-lookup",
    ),
    ({"extraArguments": {"vmodule": "a=1\n"}}, "extraArguments.vmodule"),
    ({"extraArguments": {"vmodule": "a=1\x00"}}, "extraArguments.vmodule"),
]  # fmt: skip

OWN_ATTACKS = [
    (own(command=["python3", "-c", "import os"]), "sidecars[0].args"),
    (own(command=["python3", "-c", "import os"], args=None), "sidecars[0].command"),
    (own(command=["/usr/bin/env", OWN_PROGRAM]), "sidecars[0].args"),
    (own(args=["simulate", "--kube-scheduler=/data/x"]), "sidecars[0].args"),
    (own(args=["extender", "--policy=foo"]), "sidecars[0].args"),
    (own(args=["extender", "--no-watch", "--kubeconfig=/data/x"]), "sidecars[0].args"),
    (own(args=["extender", "--no-watch", "--kubec=/data/x"]), "sidecars[0].args"),
    (own(args=["$(A)", "--no-watch"]), "sidecars[0].args"),
    (own(args=["extender", "", "--no-watch"]), "sidecars[0].args"),
    (own(args=["extender", "--no-watch", "--config=$(A)"]), "sidecars[0].args"),
    (own(env=[{"name": "KUBECONFIG", "value": "/x"}]), "sidecars[0].env[0].name"),
    (own(terminationMessagePath="/usr/local/lib/a.py"), "sidecars[0].terminationMessagePath"),
    (own(envFrom=[{"configMapRef": {"name": "c"}}]), "sidecars[0].envFrom"),
    (
        own(volumeMounts=[{"name": "data", "mountPath": "/data/../usr/local/bin"}])
        | {"volumes": [{"name": "data", "configMap": {"name": "c", "defaultMode": 0o755}}]},
        "sidecars[0].volumeMounts[0].mountPath",
    ),
    (
        own(image="mirror.example/kube-scheduler-operator@sha256:0", command=["python3"]),
        "sidecars[0].args",
    ),
    ({"image": OWN_IMAGE, "command": ["python3"]}, "image"),
]  # fmt: skip
"""Of the operator's own image, whose name the admission policies do not know."""
EVERY_ATTACK = [*ATTACKS, *OWN_ATTACKS]
each_attack = pytest.mark.parametrize(
    ("spec", "path"), EVERY_ATTACK, ids=[path for _, path in EVERY_ATTACK]
)


@each_attack
def test_a_setting_that_gives_more_than_a_scheduler_is_refused(
    spec: dict[str, Any], path: str
) -> None:
    world = World(allowed_images=MIRRORS, operator_image=OWN_IMAGE)
    world.put(**spec)
    world.run()
    status, _, message = world.condition(names.DEGRADED)
    assert status == "True"
    assert f"spec.{path}: " in message
    assert "; " in message, "it has a fix"
    assert not any(kind == DEPLOYMENTS for kind, _, _ in world.objects)


@each_attack
def test_after_a_refused_edit_the_last_accepted_content_keeps_running(
    spec: dict[str, Any], path: str
) -> None:
    del path
    world = World(allowed_images=MIRRORS, operator_image=OWN_IMAGE)
    good = world.installed()
    world.put(**spec)
    world.run()
    assert world.running() == good


ALLOWED: list[dict[str, Any]] = [
    with_context(runAsUser=1000, runAsGroup=0, readOnlyRootFilesystem=False),
    with_context(capabilities={"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}),
    with_context(seccompProfile={"type": "Localhost", "localhostProfile": "a"}),
    with_sidecar(env=[{"name": "A", "value": "1"}], envFrom=[{"configMapRef": {"name": "c"}}]),
    with_sidecar(livenessProbe={"httpGet": {"path": "/healthz", "port": 8080}}, args=["--x"]),
    {
        "sidecars": [sidecar(volumeMounts=[{"name": "data", "mountPath": "/data"}])],
        "volumes": [{"name": "data", "emptyDir": {}}],
    },
    own(),
    own(command=[OWN_PROGRAM]),
    own(command=["/usr/local/bin/kube-scheduler-operator", "extender"], args=["--no-watch"]),
    own(
        args=["extender", "--config=/config/extender.yaml", "--no-watch", "--port=8888"],
        env=[{"name": "LOG_LEVEL", "value": "DEBUG"}],
        volumeMounts=[{"name": "data", "mountPath": "/config"}],
    )
    | {"volumes": [{"name": "data", "configMap": {"name": "c"}}]},
    with_sidecar(command=["/extender"], args=["--x"]),
    with_sidecar(lifecycle={"preStop": {"sleep": {"seconds": 1}}}),
    with_volume(configMap={"name": "c"}),
    with_volume(projected={"sources": [{"configMap": {"name": "c"}}]}),
    {"image": "registry.example/scheduler-plugins/kube-scheduler:v0.31.8"},
    {"image": "registry.k8s.io/kube-scheduler:v1.34.0"},
    {"command": ["/usr/local/bin/kube-scheduler"]},
    {"command": ["hyperkube", "kube-scheduler"]},
    {"extraArguments": {"authorization-always-allow-paths": "/healthz,/metrics"}},
]


@pytest.mark.parametrize("spec", ALLOWED, ids=map(json.dumps, ALLOWED))
def test_an_allowed_image_with_its_program_stays_allowed(spec: dict[str, Any]) -> None:
    world = World(allowed_images=MIRRORS, operator_image=OWN_IMAGE)
    world.put(**spec)
    world.run()
    assert world.condition(names.DEGRADED)[0] == "False", world.condition(names.DEGRADED)


def test_only_the_scheduler_and_agents_have_a_token() -> None:
    world = World(allowed_images=AllowedImages((IMAGE,)))
    world.put(**with_sidecar())
    world.extender("safe", port=5401, agent={"policies": [{"name": "safe-overload"}]})
    world.run()
    (pod,) = (
        json.loads(obj["data"][names.POD_KEY])
        for (kind, namespace, _), obj in world.objects.items()
        if kind == CONFIG_MAPS and namespace == NAMESPACE
    )
    assert pod["automountServiceAccountToken"] is False
    holders = {
        container["name"]
        for container in (*pod["initContainers"], *pod["containers"])
        if any(mount["name"] == "api-access" for mount in container.get("volumeMounts", ()))
    }
    assert holders == {"preflight", "kube-scheduler", "extender-safe"}
    (token,) = (volume for volume in pod["volumes"] if volume["name"] == "api-access")
    assert token["projected"]["sources"][0]["serviceAccountToken"]["expirationSeconds"] == 3607


def test_a_refused_image_names_the_setting_and_the_entry() -> None:
    world = World(allowed_images=AllowedImages())
    world.put(image="registry.k8s.io/scheduler-plugins/kube-scheduler:v0.31.8")
    world.run()
    message = world.condition(names.DEGRADED)[2]
    assert 'add "registry.k8s.io/scheduler-plugins/kube-scheduler" to ALLOWED_IMAGES' in message


def test_an_image_that_is_no_longer_allowed_keeps_running() -> None:
    world = World(allowed_images=AllowedImages(("registry.example/*",)))
    good = world.installed(image="registry.example/mine:v1")
    world.settings = World(allowed_images=AllowedImages()).settings
    world.run()
    assert world.running() == good
    assert "ALLOWED_IMAGES" in world.condition(names.DEGRADED)[2]


keys = st.sampled_from(
    ["name", "image", "securityContext", "capabilities", "add", "drop", "seccompProfile", "type",
     "volumeMounts", "ports", "hostPort", "env", "valueFrom", "secretKeyRef", "envFrom",
     "livenessProbe", "lifecycle", "preStop", "httpGet", "host", "projected", "sources", "secret",
     "hostPath", "runAsUser", "privileged", "seLinuxOptions", "windowsOptions", "procMount"]
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 1) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)


objects = st.lists(st.dictionaries(keys, values, max_size=6), max_size=2)


@settings(max_examples=150, deadline=None)
@given(objects, objects)
def test_any_value_is_reported_or_allowed_and_never_raises(sidecars: Any, volumes: Any) -> None:
    for problem in confinement_problems(sidecars, volumes, AllowedImages()):
        assert problem.path[0] in ("sidecars", "volumes")
        assert problem.sentence
