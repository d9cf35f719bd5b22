"""A program in the place of kube-scheduler, for simulations: it looks at CPU and at extenders only.

It reads its configuration, and nodes and pods from the API server of the simulation, and binds the
pods of its profiles to the first node, by name, with enough free CPU.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

VERSION = "v1.35.4"
POLL = 0.02
"""Seconds."""

Object = dict[str, Any]


def install(path: Path) -> Path:
    """Make the program `path`."""
    path.write_text(f"#!{sys.executable}\n{Path(__file__).read_text()}")
    path.chmod(0o755)
    return path


def call(method: str, url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
    request = urllib.request.Request(url, data, {"Content-Type": kind}, method=method)
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def cpu(pod: Object) -> float:
    """The requested CPUs."""
    requests = [(c.get("resources") or {}).get("requests") or {} for c in pod["spec"]["containers"]]
    return sum(map(cpus, (request.get("cpu", "0") for request in requests)))


def cpus(text: str) -> float:
    return float(text[:-1]) / 1000 if text.endswith("m") else float(text)


class Scheduler:
    def __init__(self, config: Object, server: str) -> None:
        self.server = f"{server}/api/v1"
        self.extenders = config.get("extenders") or []
        self.names = {profile["schedulerName"] for profile in config["profiles"]}
        self.tried: set[str] = set()

    def run(self) -> None:
        while True:
            nodes = call("GET", f"{self.server}/nodes")["items"]
            pods = call("GET", f"{self.server}/pods")["items"]
            waiting = [pod for pod in pods if self.is_next(pod)]
            for pod in sorted(waiting, key=lambda pod: -(pod["spec"].get("priority") or 0))[:1]:
                self.tried.add(pod["metadata"]["uid"])
                self.schedule(pod, nodes, pods)
            time.sleep(0 if waiting else POLL)

    def is_next(self, pod: Object) -> bool:
        spec = pod["spec"]
        mine = spec.get("schedulerName") in self.names and not spec.get("schedulingGates")
        return mine and not spec.get("nodeName") and pod["metadata"]["uid"] not in self.tried

    def schedule(self, pod: Object, nodes: list[Object], pods: list[Object]) -> None:
        fitting = sorted(node["metadata"]["name"] for node in nodes if self.fits(pod, node, pods))
        chosen = fitting
        for extender in self.extenders:
            url = f"{extender['urlPrefix']}/{extender['filterVerb']}"
            chosen = call("POST", url, {"Pod": pod, "NodeNames": chosen})["NodeNames"] or []
        metadata = pod["metadata"]
        where = f"{self.server}/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        if chosen:
            call("POST", f"{where}/binding", {"target": {"name": chosen[0]}})
            return
        rejected = {"spy": len(fitting), "Insufficient cpu": len(nodes) - len(fitting)}
        reasons = ", ".join(f"{count} {reason}" for reason, count in rejected.items() if count)
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": f"0/{len(nodes)} nodes are available: {reasons}.",
        }
        call("PATCH", f"{where}/status", {"status": {"conditions": [condition]}})

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
