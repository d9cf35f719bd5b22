"""The accounts of the operator's Pods that other bindings make administrators, in `check`."""

from __future__ import annotations

import json

import pytest
from aiohttp import web

from kube_scheduler_operator.base.names import INSTALLER_SERVICE_ACCOUNT
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, Platform
from kube_scheduler_operator.kube.resource import CLUSTER_ROLE_BINDINGS

from ..conftest import Cluster


def bind(cluster: Cluster, name: str, subject: dict[str, str], role: str = "cluster-admin") -> None:
    obj = {"metadata": {"name": name}, "roleRef": {"name": role}, "subjects": [subject]}
    cluster.put(CLUSTER_ROLE_BINDINGS, obj)


def account(namespace: str, name: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "namespace": namespace, "name": name}


def accounts_of(platform: Platform) -> tuple[tuple[str, str], ...]:
    return (
        (platform.operator_namespace, platform.operator.account),
        (platform.target_namespace, INSTALLER_SERVICE_ACCOUNT),
    )


@pytest.mark.parametrize("platform", [KUBEADM, OPENSHIFT], ids=lambda platform: platform.name)
@pytest.mark.parametrize("at", [0, 1], ids=["operator", "installer"])
async def test_an_account_is_named_with_all_that_make_it_an_administrator(
    cluster: Cluster, platform: Platform, at: int
) -> None:
    namespace, name = accounts_of(platform)[at]
    user = f"system:serviceaccount:{namespace}:{name}"

    async def review(request: web.Request) -> web.Response:
        spec = (await request.json())["spec"]
        is_everything = (spec.get("resourceAttributes") or {}).get("verb") == "*"
        allowed = not is_everything or spec["user"] == user
        return web.json_response({"status": {"allowed": allowed}}, status=201)

    async def version(_: web.Request) -> web.Response:
        return web.json_response({"gitVersion": "v1.35.4"})

    cluster.api.routes |= {"/subjectaccessreviews": review, "/version": version}
    cluster.api.served |= {CLUSTER_ROLE_BINDINGS}
    cluster.kubescheduler({"a": 1})
    group = f"system:serviceaccounts:{namespace}"
    bind(cluster, "leftover", account(namespace, name))
    bind(cluster, "group", {"kind": "Group", "name": group})
    bind(cluster, "other", account("elsewhere", name))
    bind(cluster, "harmless", account(namespace, name), "view")
    done = await cluster.run("check", "--platform", platform.name, "-o", "json")
    (cause,) = (
        result["cause"]
        for result in json.loads(done.out)["checks"]
        if result["check"] == "operator-rights"
    )
    assert f"{namespace}/{name} may do everything by ClusterRoleBinding group, leftover" in cause
