"""A program in the place of kube-scheduler, for simulations: it looks at CPU and at extenders only.

It reads its configuration, and nodes and pods from the API server of the simulation, and binds the
pods of its profiles to the first node, by name, with enough free CPU.
"""

from __future__ import annotations

import json
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

VERSION = "v1.35.4"
POLL = 0.02
"""Seconds."""

Object = dict[str, Any]


def install(path: Path) -> Path:
    """Make the program `path`."""
    path.write_text(f"#!{sys.executable}\n{Path(__file__).read_text()}")
    path.chmod(0o755)
    return path


class Server:
    """The API server of the simulation, and its extenders, over one connection."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.path = parts.path
        self.connection = HTTPConnection(parts.netloc)

    def call(self, method: str, path: str, body: Any = None) -> Any:
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        data = None if body is None else json.dumps(body)
        self.connection.request(method, path, data, {"Content-Type": kind})
        return json.loads(self.connection.getresponse().read())

    def api(self, method: str, path: str, body: Any = None) -> Any:
        return self.call(method, f"{self.path}/api/v1/{path}", body)


def cpu(pod: Object) -> float:
    """The requested CPUs."""
    requests = [(c.get("resources") or {}).get("requests") or {} for c in pod["spec"]["containers"]]
    return sum(map(cpus, (request.get("cpu", "0") for request in requests)))


def cpus(text: str) -> float:
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


class Scheduler:
    def __init__(self, config: Object, server: str) -> None:
        self.server = Server(server)
        self.extenders = config.get("extenders") or []
        self.names = {profile["schedulerName"] for profile in config["profiles"]}
        self.tried: set[str] = set()

    def run(self) -> None:
        while True:
            nodes = self.server.api("GET", "nodes")["items"]
            pods = self.server.api("GET", "pods")["items"]
            waiting = [pod for pod in pods if self.is_next(pod)]
            for pod in sorted(waiting, key=lambda pod: -(pod["spec"].get("priority") or 0)):
                self.tried.add(pod["metadata"]["uid"])
                pod["spec"]["nodeName"] = self.schedule(pod, nodes, pods)
            time.sleep(0 if waiting else POLL)

    def is_next(self, pod: Object) -> bool:
        spec = pod["spec"]
        mine = spec.get("schedulerName") in self.names and not spec.get("schedulingGates")
        return mine and not spec.get("nodeName") and pod["metadata"]["uid"] not in self.tried

    def schedule(self, pod: Object, nodes: list[Object], pods: list[Object]) -> str:
        """Decide about a pod; returns its node, or nothing."""
        fitting = sorted(node["metadata"]["name"] for node in nodes if self.fits(pod, node, pods))
        chosen = fitting
        for extender in self.extenders:
            path = f"{urlsplit(extender['urlPrefix']).path}/{extender['filterVerb']}"
            answer = self.server.call("POST", path, {"Pod": pod, "NodeNames": chosen})
            chosen = answer["NodeNames"] or []
        metadata = pod["metadata"]
        where = f"namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if chosen:
            self.server.api("POST", f"{where}/binding", {"target": {"name": chosen[0]}})
            return str(chosen[0])
        rejected = {"spy": len(fitting), "Insufficient cpu": len(nodes) - len(fitting)}
        reasons = ", ".join(f"{count} {reason}" for reason, count in rejected.items() if count)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"0/{len(nodes)} nodes are available: {reasons}.",
        }
        self.server.api("PATCH", f"{where}/status", {"status": {"conditions": [condition]}})
        return ""

    @staticmethod
    def fits(pod: Object, node: Object, pods: list[Object]) -> bool:
        if node["spec"].get("unschedulable") or pod["spec"].get("nodeSelector"):
            return False
        name = node["metadata"]["name"]
        used = sum(cpu(other) for other in pods if other["spec"].get("nodeName") == name)
        return used + cpu(pod) <= cpus(node["status"]["allocatable"]["cpu"])


def main() -> None:
    if "--version" in sys.argv:
        print(f"Kubernetes {VERSION}")
        return
    name = next(word for word in sys.argv if word.startswith("--config=")).partition("=")[2]
    config = json.loads(Path(name).read_text())
    kubeconfig = json.loads(Path(config["clientConnection"]["kubeconfig"]).read_text())
    Scheduler(config, kubeconfig["clusters"][0]["cluster"]["server"]).run()


if __name__ == "__main__":
    main()
