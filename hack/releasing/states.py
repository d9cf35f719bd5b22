"""The state that a release leaves in the API, recorded so that later versions keep reading it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from cluster import paths
from cluster.api import Api
from cluster.model import Sandbox

FOLDER: Final = paths.REPOSITORY / "tests" / "unit" / "release" / "states"
_OWN: Final = "app.kubernetes.io%2Fmanaged-by%3Dkube-scheduler-operator"
_PATHS: Final = (
    f"/api/v1/namespaces/kube-scheduler-operator/configmaps?labelSelector={_OWN}",
    "/api/v1/namespaces/kube-system/pods?labelSelector=component%3Dkube-scheduler",
    "/apis/config.openshift.io/v1/clusteroperators",
    "/apis/config.openshift.io/v1/schedulers",
    "/apis/operator.openshift.io/v1/kubeschedulers",
    "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerprofiles",
    "/apis/kube-scheduler-operator.dev/v1alpha1/schedulerextenders",
    "/apis/kube-scheduler-operator.dev/v1alpha1/secondaryschedulers",
)


def record(sandbox: Sandbox, version: str) -> Path:
    """Write the state of a sandbox that runs a release.

    Raises:
        ApiError: the operator's kinds are not installed.
    """
    api = Api(sandbox)
    state = {path.partition("?")[0]: _items(api, path) for path in _PATHS}
    FOLDER.mkdir(exist_ok=True)
    target = FOLDER / f"v{version}.json"
    target.write_text(json.dumps(state, indent=1, sort_keys=True) + "\n")
    return target


def _items(api: Api, path: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.request("GET", path)["items"]
    for item in items:
        item["metadata"].pop("managedFields", None)
    return items
