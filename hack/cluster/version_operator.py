"""The part of OpenShift's cluster-version operator that other operators notice.

It keeps the manifests of a release as they are, except those that the ClusterVersion overrides and
those that are only created; writes the TLS profile of the API servers into ConfigMaps that ask for
it; and reports the upgrade as complete once every ClusterOperator has the versions of the release.
Like service-ca, it also issues the serving certificates that Services ask for.
"""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from cluster import payload, pki
from cluster.api import Api, ApiError, condition
from cluster.console import say

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from cluster.api import Object
    from cluster.model import Sandbox

MANAGER = "cluster-version-operator"
INTERVAL = 5.0
CREATE_ONLY = "release.openshift.io/create-only"
INJECT_TLS = "config.openshift.io/inject-tls"
SERVING_CERT = "service.beta.openshift.io/serving-cert-secret-name"
CLUSTERVERSION = "/apis/config.openshift.io/v1/clusterversions/version"
_APPLY = "application/apply-patch+yaml"


def is_overridden(manifest: Object, overrides: Sequence[Mapping[str, Any]]) -> bool:
    """Whether spec.overrides of the ClusterVersion takes an object out of management."""
    group, _, _ = manifest["apiVersion"].rpartition("/")
    metadata = manifest["metadata"]
    own = (manifest["kind"], group, metadata.get("namespace", ""), metadata["name"])
    return any(
        own == tuple(one.get(key, "") for key in ("kind", "group", "namespace", "name"))
        and one.get("unmanaged") is True
        for one in overrides
    )


def with_tls(config_map: Object, serving_info: Mapping[str, Any]) -> Object:
    """A ConfigMap whose configurations have the TLS settings of a profile."""
    import yaml

    data = {}
    for key, text in config_map["data"].items():
        document = yaml.safe_load(text)
        if isinstance(document, dict) and "kind" in document:
            document["servingInfo"] = {**(document.get("servingInfo") or {}), **serving_info}
            text = yaml.safe_dump(document, sort_keys=True)
        data[key] = text
    return {**config_map, "data": data}


def missing(expected: Object, found: Object) -> list[str]:
    """What a ClusterOperator lacks for the end of the upgrade; empty: nothing."""
    name, status = expected["metadata"]["name"], found.get("status") or {}
    reported = {one["name"]: one["version"] for one in status.get("versions") or ()}
    wanted = {one["name"]: one["version"] for one in expected["status"]["versions"]}
    lacks = [
        f'{name}: version {key} is "{reported.get(key, "")}", not "{version}"'
        for key, version in wanted.items()
        if reported.get(key) != version
    ]
    for kind, good in (("Available", "True"), ("Degraded", "False")):
        if condition(found, kind) != good:
            lacks.append(f"{name}: {kind} is {condition(found, kind)}")
    return lacks


class VersionOperator:
    """Keeps one sandbox at the release in its folder `payload`."""

    def __init__(self, sandbox: Sandbox, version: str) -> None:
        self._sandbox = sandbox
        self._version = version
        self._api = Api(sandbox)
        self._plurals: dict[str, dict[str, Object]] = {}
        self._applied: dict[str, tuple[str, tuple[str, ...]]] = {}

    @property
    def folder(self) -> Path:
        """The release's manifests."""
        return self._sandbox.state / "payload"

    def run(self) -> None:
        """Synchronize until the process is ended."""
        while True:
            try:
                self.synchronize()
            except (ApiError, OSError) as error:
                say(f"cannot synchronize: {error}")
            time.sleep(INTERVAL)

    def synchronize(self) -> None:
        """One round.

        Raises:
            ApiError: the ClusterVersion cannot be read or written.
        """
        cluster_version = self._api.request("GET", CLUSTERVERSION)
        overrides = (cluster_version.get("spec") or {}).get("overrides") or ()
        problems, waiting = [], []
        for manifest in payload.read(self.folder):
            if is_overridden(manifest, overrides):
                continue
            try:
                self._apply(manifest)
                if manifest["kind"] == "ClusterOperator":
                    waiting += missing(manifest, self._api.request("GET", self._path(manifest)))
                if manifest["kind"] == "Service":
                    self._issue(manifest)
            except ApiError as error:
                problems.append(str(error))
                self._plurals.clear()
        self._report(cluster_version, problems, waiting)

    def _apply(self, manifest: Object) -> None:
        annotations = manifest["metadata"].get("annotations", {})
        path = self._path(manifest)
        if annotations.get(CREATE_ONLY) == "true":
            self._api.create(path.rpartition("/")[0], manifest)
            return
        if annotations.get(INJECT_TLS) == "true":
            manifest = with_tls(manifest, self._serving_info())
        text = json.dumps({key: value for key, value in manifest.items() if key != "status"})
        try:
            state = _state(self._api.request("GET", path))
        except ApiError as error:
            if error.code != 404:
                raise
            state = ()
        if self._applied.get(path) == (text, state):
            return
        query = f"{path}?fieldManager={MANAGER}&force=true"
        applied = self._api.request("PATCH", query, json.loads(text), content_type=_APPLY)
        self._applied[path] = (text, _state(applied))

    def _path(self, manifest: Object) -> str:
        version, metadata = manifest["apiVersion"], manifest["metadata"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if version not in self._plurals:
            found = self._api.request("GET", root)["resources"]
            self._plurals[version] = {one["kind"]: one for one in found if "/" not in one["name"]}
        kind = self._plurals[version].get(manifest["kind"])
        if kind is None:
            del self._plurals[version]
            raise ApiError(404, f"{version} has no kind {manifest['kind']} yet")
        place = f"/namespaces/{metadata['namespace']}" if kind["namespaced"] else ""
        return f"{root}{place}/{kind['name']}/{metadata['name']}"

    def _serving_info(self) -> Mapping[str, Any]:
        from kube_scheduler_operator.config.effective.control_plane.tls_profiles import serving_info

        found = self._api.request("GET", "/apis/config.openshift.io/v1/apiservers/cluster")
        return serving_info((found.get("spec") or {}).get("tlsSecurityProfile"))[0]

    def _issue(self, service: Object) -> None:
        """The Secret with the serving certificate of a Service, unless it exists."""
        metadata = service["metadata"]
        secret = metadata.get("annotations", {}).get(SERVING_CERT)
        if not secret:
            return
        host = f"{metadata['name']}.{metadata['namespace']}.svc"
        authority = pki.Authority(self._sandbox.state / "pki", "service-ca")
        pair = authority.issue(f"serving-{host}", host, hosts=[host, f"{host}.cluster.local"])
        keys = zip(("tls.crt", "tls.key"), pair, strict=True)
        data = {key: base64.b64encode(path.read_bytes()).decode() for key, path in keys}
        self._api.create(
            f"/api/v1/namespaces/{metadata['namespace']}/secrets",
            {"metadata": {"name": secret}, "type": "kubernetes.io/tls", "data": data},
        )

    def _report(self, before: Object, problems: Sequence[str], waiting: Sequence[str]) -> None:
        """Write the ClusterVersion's status if it changes."""
        done = not problems and not waiting
        old = before.get("status") or {}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        entry = next(iter(old.get("history") or ()), _attempt(old, now))
        if entry.get("state") != "Completed":  # an upgrade that has ended stays so
            entry = {**entry, "version": self._version, "state": "Partial"}
            if done:
                entry |= {"state": "Completed", "completionTime": now}
        text = "; ".join((*problems, *waiting))
        states = {
            "Available": (bool(entry.get("completionTime")), f"Done applying {self._version}"),
            "Failing": (bool(problems), "; ".join(problems)),
            "Progressing": (not done, text or f"Cluster version is {self._version}"),
        }
        times = {one["type"]: (one["status"], one["lastTransitionTime"])
                 for one in old.get("conditions") or ()}  # fmt: skip
        conditions = []
        for kind, (state, message) in states.items():
            status = str(state)
            since = times.get(kind, ("", now))
            stamp = since[1] if since[0] == status else now
            conditions.append({"type": kind, "status": status, "message": message,
                               "lastTransitionTime": stamp})  # fmt: skip
        status_now: Object = {
            **old,
            "desired": {**old["desired"], "version": self._version},
            "history": [entry],
            "conditions": conditions,
        }
        if status_now != old:  # a merge patch would drop completionTime: null
            body = {**before, "status": status_now}
            self._api.request("PUT", f"{CLUSTERVERSION}/status", body)


def _attempt(status: Object, now: str) -> Object:
    """A new entry of the history, with the fields that OpenShift's definition requires."""
    image = status["desired"]["image"]
    return {"startedTime": now, "completionTime": None, "image": image, "verified": False}


def _state(found: Object) -> tuple[str, ...]:
    """What changes with an edit of an object by any client, and not with a write of its status."""
    metadata = found["metadata"]
    return metadata["uid"], str(metadata.get("generation") or metadata["resourceVersion"])
