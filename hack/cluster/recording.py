"""Recording what kube-scheduler really sends to an extender, for tests that play it back.

The extender that listens takes any node and any victim; it binds by itself, as one with the verb
`bind` must.
"""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from cluster import hollow, scheduling
from cluster.api import Api, wait
from cluster.console import SandboxError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cluster.api import Object
    from cluster.model import Sandbox

NAMESPACE = "recorded"
VERBS = ("filter", "prioritize", "bind", "preempt")
NODES = 3
_SECONDS = 60.0
_IMAGES = 1
_HEADERS = ("Content-Type", "User-Agent", "Accept-Encoding")
_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_TOKEN = re.compile(r"kube-api-access-[a-z0-9]{5}\b")


def record(sandbox: Sandbox, *, names: bool) -> list[Object]:
    """The requests of a kube-scheduler for a few pods, in the order in which they came.

    Args:
        sandbox: without nodes; whatever its Kubernetes is sends the requests.
        names: names of nodes on the wire (`nodeCacheCapable`), or whole objects.

    Returns:
        For each the verb, the headers that say something, and the body: `wire` makes its bytes.

    Raises:
        SandboxError: Not all verbs were called, or a body would not come out as it came.
    """
    api = Api(sandbox)
    scheduler = scheduling.Scheduler(sandbox)
    listener = _Listener(api)
    try:
        _prepare(api)
        scheduler.start([listener.entry(names=names)])
        _place(api, _web(), listener.requests, scheduler.log)
        _place(api, _batch(_owner(api)), listener.requests, scheduler.log)
        _preempt(api, scheduler.log)
    finally:
        scheduler.stop()
        listener.close()
        scheduling.delete_pods(api, NAMESPACE)
        hollow.remove(api)
    called = {request["verb"] for request in listener.requests}
    if missing := set(VERBS) - called:
        raise SandboxError(f"never called: {', '.join(sorted(missing))}\n{scheduler.log()}")
    return _scrub(listener.requests)


def document(kubernetes: str, form: str, requests: list[Object]) -> str:
    """The text of a file: a line for each request, so that one can see which ones have changed."""
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in requests)
    head = f'{{"kubernetes": "{kubernetes}", "form": "{form}", "requests": ['
    return f"{head}\n{lines}\n]}}\n"


def wire(body: Any) -> bytes:
    """The bytes of a recorded body as Go's encoding/json writes them, which escapes HTML."""
    text = json.dumps(body, separators=(",", ":"), ensure_ascii=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # kube-scheduler is killed in the end
            super().handle_error(request, client_address)


class _Listener:
    """The extender."""

    def __init__(self, api: Api) -> None:
        self.requests: list[Object] = []
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                verb, body = self.path.lstrip("/"), json.loads(content)
                if wire(body) != content:
                    raise SandboxError(f"{verb}: not what would be sent again: {content[:2000]!r}")
                headers = {name: self.headers[name] for name in _HEADERS}
                requests.append({"verb": verb, "headers": headers, "body": body})
                answer = json.dumps(_answer(api, verb, body)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        self._server = _Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def entry(self, *, names: bool) -> Object:
        """What KubeSchedulerConfiguration has of it."""
        return {
            "urlPrefix": f"http://127.0.0.1:{self._server.server_address[1]}",
            **{f"{verb}Verb": verb for verb in VERBS},
            "weight": 1,
            "httpTimeout": "20s",
            "nodeCacheCapable": names,
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def _answer(api: Api, verb: str, body: Object) -> Any:
    if verb == "filter":
        return {"Nodes": body["Nodes"], "NodeNames": body["NodeNames"], "Error": ""}
    if verb == "prioritize":
        return [{"Host": name, "Score": 5} for name in _names(body)]
    if verb == "bind":
        path = f"{scheduling.pods_of(body['PodNamespace'])}/{body['PodName']}/binding"
        target = {"apiVersion": "v1", "kind": "Node", "name": body["Node"]}
        metadata = {"name": body["PodName"], "uid": body["PodUID"]}
        made = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        api.request("POST", path, made)
        return {"Error": ""}
    return {"NodeNameToMetaVictims": _meta_victims(body)}


def _names(body: Object) -> list[str]:
    if body["NodeNames"] is not None:
        return list(body["NodeNames"])
    return [node["metadata"]["name"] for node in body["Nodes"]["items"]]


def _meta_victims(body: Object) -> Object:
    """All candidates with all their victims, always by uid."""
    if body.get("NodeNameToMetaVictims"):
        found: Object = body["NodeNameToMetaVictims"]
        return found
    return {
        node: {
            "Pods": [{"UID": pod["metadata"]["uid"]} for pod in victims["Pods"]],
            "NumPDBViolations": victims["NumPDBViolations"],
        }
        for node, victims in body["NodeNameToVictims"].items()
    }


# --- the pods -----------------------------------------------------------------------------------


def _prepare(api: Api) -> None:
    scheduling.create_namespace(api, NAMESPACE)
    hollow.create(api, NODES)
    for name, value in (("lowly", -10), ("lofty", 1000)):
        metadata = {"name": f"{NAMESPACE}-{name}"}
        body = {"metadata": metadata, "value": value, "description": "for a recording"}
        api.create("/apis/scheduling.k8s.io/v1/priorityclasses", body)
    budget = {
        "metadata": {"name": "kept"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"kept": "yes"}}},
    }
    api.create(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", budget)


def _web() -> Object:
    """What most pods are like."""
    return scheduling.pod("web", 1)


def _batch(owner: Object) -> Object:
    """A pod with all that may be in one, and characters that Go escapes."""
    pod = scheduling.pod("batch", 2, labels={"batch.kubernetes.io/job-name": "nightly"})
    pod["metadata"]["annotations"] = {
        "example.com/note": 'a < b && c > d; größer, 日本語, \u2028, "quoted", back\\slash',
        "example.com/empty": "",
    }
    pod["metadata"]["ownerReferences"] = [owner]
    term = {
        "matchExpressions": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}]
    }
    selector = {"matchLabels": {"batch.kubernetes.io/job-name": "nightly"}}
    spread = {
        "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector,
    }  # fmt: skip
    anti = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
    pod["spec"] |= {
        "restartPolicy": "Never",
        "priorityClassName": f"{NAMESPACE}-lowly",
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "affinity": {
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
            },
            "podAntiAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 50, "podAffinityTerm": anti}
                ]
            },
        },
        "topologySpreadConstraints": [spread],
        "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "batch"}],
        "initContainers": [
            {
                "name": "fetch",
                "image": "registry.example.com/tools/fetch:v2",
                "resources": {"requests": {"cpu": "1500m", "memory": "1Gi"}},
            }
        ],
        "volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}}],
    }
    return pod


def _owner(api: Api) -> Object:
    """What owns that pod: no Job, whose controller would have a say, but something that exists."""
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nightly"}}
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
    api.create(path, made)
    uid = api.request("GET", f"{path}/nightly")["metadata"]["uid"]
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    return {**kind, "name": "nightly", "uid": uid, "controller": True}


def _place(api: Api, pod: Object, requests: list[Object], log: Callable[[], str]) -> None:
    """Create a pod, and wait until it has been bound."""
    _bound(api, pod, log)
    name = pod["metadata"]["name"]
    if not any(one["body"].get("PodName") == name for one in requests):
        raise SandboxError(f"{name} was bound without the extender\n{log()}")


def _bound(api: Api, pod: Object, log: Callable[[], str]) -> None:
    path, name = scheduling.pods_of(NAMESPACE), pod["metadata"]["name"]
    api.request("POST", path, pod)
    wait(
        lambda: bool(api.request("GET", f"{path}/{name}")["spec"].get("nodeName")),
        _SECONDS,
        lambda: f"{name} was not bound\n{log()}",
    )


def _preempt(api: Api, log: Callable[[], str]) -> None:
    """Fill the nodes with pods that may go, and ask for the room of one of them."""
    for number in range(NODES):
        pod = scheduling.pod(f"filler-{number}", labels={"kept": "yes" if number == 1 else "no"})
        node = hollow.node(number)
        cores = int(node["status"]["capacity"]["cpu"])
        pod["spec"] |= {
            "nodeName": node["metadata"]["name"],
            "priorityClassName": f"{NAMESPACE}-lowly",
            "terminationGracePeriodSeconds": 0,
        }
        pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": f"{cores * 1000 - 1500}m"}}
        api.request("POST", scheduling.pods_of(NAMESPACE), pod)
    time.sleep(1)  # until kube-scheduler knows of all of them
    pod = scheduling.pod("urgent")
    pod["spec"]["priorityClassName"] = f"{NAMESPACE}-lofty"
    pod["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "2500m"}}
    _bound(api, pod, log)


# --- what is kept -------------------------------------------------------------------------------


def _scrub(requests: list[Object]) -> list[Object]:
    """The same with what is random made the same in every recording, and fewer images."""
    for request in requests:
        for node in (request["body"].get("Nodes") or {}).get("items", []):
            node["status"]["images"] = node["status"]["images"][:_IMAGES]
    known: dict[str, str] = {}

    def uid(match: re.Match[str]) -> str:
        return known.setdefault(match[0], f"00000000-0000-4000-8000-{len(known) + 1:012}")

    text = json.dumps(requests, ensure_ascii=False)
    text = _TOKEN.sub("kube-api-access-abcde", _TIME.sub("2026-01-01T00:00:00Z", text))
    text = re.sub(r'"resourceVersion": "\d+"', '"resourceVersion": "1000"', text)
    scrubbed: list[Object] = json.loads(_UID.sub(uid, text))
    return scrubbed
