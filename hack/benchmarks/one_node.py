"""One node: how fast edits become revisions and running schedulers, and what the operator costs."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from benchmarks.table import REPOSITORY, Row
from cluster import node_files, nodes
from cluster.api import Api, ApiError, Object, condition
from cluster.console import run, say
from cluster.model import Sandbox
from cluster.observe import (
    CLUSTEROPERATOR,
    KUBESCHEDULER,
    OPERATOR_NAMESPACE,
    SCHEDULER,
    edit,
    until,
)

BURST = 1000
CONFIG_MAPS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/configmaps"
PODS = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/pods"
OURS = {"app.kubernetes.io/managed-by": "kube-scheduler-operator"}


def measure(sandbox: Sandbox, repeat: int, idle_seconds: float) -> Iterator[Row]:
    """All figures of one node, as they come."""
    api = Api(sandbox)
    until(lambda: _current(api) > 0, 120, "the stock scheduler was not adopted")
    operator = Operator(sandbox, api)
    yield from rollouts(api, repeat)
    yield overwrites(sandbox, api, min(repeat, 3))
    yield burst(api, operator)
    yield start(api, operator, repeat)
    yield from idle(operator, idle_seconds)


class Operator:
    """The operator in the sandbox, through its own metrics."""

    def __init__(self, sandbox: Sandbox, api: Api) -> None:
        self.sandbox, self.api = sandbox, api
        kubectl = (str(sandbox.state / "bin/kubectl"), f"--kubeconfig={sandbox.kubeconfig}")
        for arguments in (
            ("create", "serviceaccount", "bench"),
            ("create", "clusterrole", "bench", "--verb=get", "--non-resource-url=/metrics"),
            ("create", "clusterrolebinding", "bench", "--clusterrole=bench",
             "--serviceaccount=default:bench"),
        ):  # fmt: skip
            subprocess.run([*kubectl, *arguments], capture_output=True, check=False)
        self.token = run(*kubectl, "create", "token", "bench", "--duration=3h").strip()

    def pod(self) -> Object:
        """The pod that is Ready; empty if none is."""
        selector = "labelSelector=app.kubernetes.io%2Fname%3Dkube-scheduler-operator"
        found = [
            pod
            for pod in self.api.request("GET", f"{PODS}?{selector}")["items"]
            if "deletionTimestamp" not in pod["metadata"] and condition(pod, "Ready") == "True"
        ]
        return found[0] if found else {}

    def name(self) -> str:
        """The name of the pod that is Ready; empty if none is."""
        return str(self.pod().get("metadata", {}).get("name", ""))

    def metrics(self) -> dict[str, float]:
        """All samples by name with labels."""
        until(lambda: bool(self.pod()), 120, "the operator is not Ready")
        address = self.pod()["status"]["podIP"]
        program = (
            "import ssl, urllib.request\n"
            f"request = urllib.request.Request('https://{address}:8443/metrics',"
            f" headers={{'Authorization': 'Bearer {self.token}'}})\n"
            "context = ssl._create_unverified_context()\n"
            "print(urllib.request.urlopen(request, context=context).read().decode())\n"
        )
        inside = nodes.enter(self.sandbox, self.sandbox.nodes[0], [sys.executable, "-c", program])
        lines = [line for line in run(*inside).splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def owned(self) -> dict[str, str]:
        """The resourceVersion of everything that the operator writes, Leases excepted."""
        found = {
            path: self.api.request("GET", path)["metadata"]["resourceVersion"]
            for path in (KUBESCHEDULER, CLUSTEROPERATOR)
        }
        events = f"/api/v1/namespaces/{OPERATOR_NAMESPACE}/events"
        for path in (CONFIG_MAPS, PODS, events):
            for item in self.api.request("GET", path)["items"]:
                if item.get("source", {}).get("component") == "kubelet":
                    continue  # the kubelet's reports about our pods are not our writes
                name = item["metadata"]["name"]
                found[f"{path}/{name}"] = item["metadata"]["resourceVersion"]
        return found


def rollouts(api: Api, repeat: int) -> list[Row]:
    revision, healthy = [], []
    for number in range(repeat):
        profile = ("HighNodeUtilization", "NoScoring")[number % 2]
        line = edit(api, SCHEDULER, {"spec": {"profile": profile}})
        say(
            f"  rollout {number + 1}: " + ", ".join(f"{k} {v:.2f}" for k, v in line.seconds.items())
        )
        say("    on the node: " + ", ".join(f"{k} {v:.2f}" for k, v in line.steps.items()))
        revision.append(line.seconds["revision"])
        healthy.append(line.seconds["healthy"])
        time.sleep(3)
    return [
        Row("edit to new revision", revision, "s", 1.0),
        Row("edit to node healthy on it", healthy, "s", 15.0),
    ]


def overwrites(sandbox: Sandbox, api: Api, repeat: int) -> Row:
    """The yardstick of the same minutes: a manifest written over the old one, as is often done."""
    api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": "Unmanaged"}})
    node = sandbox.nodes[0]
    folder = node_files.root(sandbox, node) / "etc/kubernetes"
    manifest, mark = folder / "manifests" / "kube-scheduler.yaml", "bench.example.com/number"
    mirror = f"/api/v1/namespaces/kube-system/pods/kube-scheduler-{node.name}"
    values = []
    for number in range(repeat):
        time.sleep(3)
        pod = json.loads(manifest.read_text())
        pod["metadata"].setdefault("annotations", {})[mark] = str(number)
        begun = time.monotonic()
        (folder / "new.yaml").write_text(json.dumps(pod))
        (folder / "new.yaml").rename(manifest)

        def healthy(number: int = number) -> bool:
            found = api.request("GET", mirror)
            ready = condition(found, "Ready") == "True"
            return ready and found["metadata"]["annotations"].get(mark) == str(number)

        until(healthy, 120, "the overwritten scheduler did not become Ready")
        values.append(time.monotonic() - begun)
        say(f"  manifest overwritten in place: Ready after {values[-1]:.2f} s")
    api.request("PATCH", KUBESCHEDULER, {"spec": {"managementState": "Managed"}})
    return Row("yardstick: overwritten manifest to Ready", values, "s", None)


def burst(api: Api, operator: Operator) -> Row:
    """Events of an object that the operator watches, as fast as the API server takes them."""
    time.sleep(5)
    body = {"metadata": {"name": "burst", "labels": OURS}, "data": {"n": "0"}}
    api.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", **body})
    time.sleep(3)
    before = operator.metrics()
    begun = time.monotonic()

    def change(number: int) -> None:
        for attempt in range(5):
            try:
                api.request("PATCH", f"{CONFIG_MAPS}/burst", {"data": {"n": f"{number}.{attempt}"}})
                return
            except ApiError as error:
                if error.code or attempt == 4:  # 0: no answer in time
                    raise

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(change, range(1, BURST + 1)))
    seconds = time.monotonic() - begun
    time.sleep(3)
    passes = _sum(operator.metrics(), "kube_scheduler_operator_passes_total") - _sum(
        before, "kube_scheduler_operator_passes_total"
    )
    api.request("DELETE", f"{CONFIG_MAPS}/burst")
    say(f"  burst: {BURST} events in {seconds:.1f} s led to {passes:.0f} passes")
    return Row(f"reconciles for {BURST} events in {seconds:.1f} s", [passes], "", 10)


def start(api: Api, operator: Operator, repeat: int) -> Row:
    """From the start of the process to its first complete pass."""
    values = []
    name = "kube_scheduler_operator_start_to_first_pass_seconds"
    for _ in range(repeat):
        old = operator.name()
        api.request("DELETE", f"{PODS}/{old}")

        def replaced(old: str = old) -> bool:
            return operator.name() not in ("", old)

        until(replaced, 120, "no new operator")
        until(lambda: operator.metrics().get(name, 0) > 0, 60, "no reconcile")
        values.append(operator.metrics()[name])
    return Row("start to first complete reconcile", values, "s", 4.0)


def idle(operator: Operator, seconds: float) -> list[Row]:
    time.sleep(min(30.0, seconds))
    before, owned = operator.metrics(), operator.owned()
    say(f"  idle: {seconds:.0f} s ...")
    time.sleep(seconds)
    after = operator.metrics()
    changed = [name for name, version in operator.owned().items() if owned.get(name) != version]

    def asked(method: str) -> float:
        name = "rest_client_requests_total"
        return _sum(after, name, f'"{method}"') - _sum(before, name, f'"{method}"')

    # Lease renewals are the operator's only PUTs at rest; reviews (for our own scrape) are POSTs.
    verbs = {method: asked(method) for method in ("POST", "PUT", "PATCH", "DELETE")}
    say(f"  idle: requests {verbs}; changed objects: {changed or 'none'}")
    memory = after["process_resident_memory_bytes"] / 2**20
    cpu = after["process_cpu_seconds_total"] - before["process_cpu_seconds_total"]
    writes = len(changed) + verbs["PATCH"] + verbs["DELETE"]
    return [
        Row(f"writes in {seconds:.0f} s of idling (Leases excepted)", [writes], "", 0),
        Row("resident memory, idle", [memory], "MiB", 80),
        Row("CPU, idle", [100 * cpu / max(seconds, 1)], "% of a core", 2),
    ]


def help_time() -> Row:
    program = REPOSITORY / ".venv/bin/kube-scheduler-operator"
    values = []
    for _ in range(11):
        begun = time.monotonic()
        subprocess.run([program, "--help"], capture_output=True, check=True)
        values.append(time.monotonic() - begun)
    return Row("kube-scheduler-operator --help", values[1:], "s", 0.3)


def _current(api: Api) -> int:
    entries = api.request("GET", KUBESCHEDULER).get("status", {}).get("nodeStatuses", [])
    return int(entries[0].get("currentRevision", 0)) if entries else 0


def _sum(samples: dict[str, float], name: str, word: str = "") -> float:
    return sum(v for key, v in samples.items() if key.startswith(name) and word in key)
