"""A control-plane node: a kubelet, static pods, and the installer that runs on it.

What the real installer does is tested where it lives; here it keeps its promises: it checks before
it touches anything, it swaps, watches and puts the last good manifest back, and it resumes from its
disk. How a scheduler behaves is scripted by the content of its configuration.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import Platform
from kube_scheduler_operator.kube.resource import CONFIG_MAPS, NODES, PODS, ObjectRef
from kube_scheduler_operator.node.config_reader.report import ConfigReport
from kube_scheduler_operator.node.protocol.disk_report import DiskReport
from kube_scheduler_operator.node.protocol.message import UNKNOWN, BootTime
from kube_scheduler_operator.node.protocol.result import InstallerOutcome, Result

from ..builders import ready_condition
from ..imitation import kubelet
from ..imitation.apiserver import ApiServer, Object
from ..imitation.clock import Clock
from . import guard
from .scheduler import GOOD, STOCK, Behavior, Manifest, Process, back_off
from .swap import Journal, Restore, Swap

Step = Generator[float, None, None]

_CONFIG_HASH = "kubernetes.io/config.hash"  # as the kubelet calls it
API_SERVER = "registry.k8s.io/kube-apiserver:v1.35.4"

LIVES_ALONE = 1.0
"""Seconds that a scheduler lives that finds no API server when it starts."""


class Machine:
    """One node."""

    def __init__(
        self,
        name: str,
        server: ApiServer,
        clock: Clock,
        platform: Platform,
        script: dict[int, Behavior],
        rng: random.Random,
        manifest: Manifest | None = STOCK,
    ) -> None:
        self._rng = rng
        self.name = name
        self.up = True
        self.gone = False
        self.manifest: Manifest | None = None
        self.last_good: Manifest | None = manifest
        self.adopted: Manifest | None = None
        self.journal: Journal | None = None
        self.outcomes: dict[int, Result] = {}
        self.process: Process | None = None
        self.proven: set[int] = set()
        self.staged: set[int] = set()
        self.directories: dict[int, str] = {}  # revision -> its content on the disk
        self.looked: set[str] = set()  # uids of guards that have looked at the disk
        self.edited_file = ""  # in the directory of the revision that was installed last
        self.swapping = False
        self.removed = False  # whether a person removed the manifest
        self.refuses_pods = False  # whether it starts no installer
        self.evicted: dict[int, int] = {}
        self.kubeconfig = "first"
        self.api_server = API_SERVER  # the image in the manifest of the node's API server
        self.work = ""  # the directory of a running `kubeadm upgrade`
        self.config_file = "{}"  # that the stock scheduler reads
        self._was_ready = True
        self.skew = 0.0
        self.born = clock.now
        self.is_old = False  # its programs are those of an older operator
        self._booted, self._boots = clock.now, 1
        self._turned = clock.stamp()
        self.probe: Object = {"port": 10259, "path": "/readyz", "scheme": "HTTPS"}
        self._server = server
        self.clock = clock
        self._platform = platform
        self._script = script
        self.of_image: dict[str, Behavior] = {}  # how every configuration behaves with an image
        self._jobs: dict[str, tuple[str, Step]] = {}  # pod uid -> name, program
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "node-role.kubernetes.io/control-plane": "",
                    "kubernetes.io/os": "linux",
                },
            },
            "spec": {},
            "status": self._node_status(ready=True),
        }
        self.uid: str = server.create("kubelet", NODES, node)["metadata"]["uid"]
        server.listeners.append(self._changed)
        if manifest is not None:
            self.place(manifest)
        clock.after(0.5, self._see_all)

    def stamp(self, moment: float | None = None) -> str:
        """A moment (now, if none is given) by the clock of this machine."""
        return self.clock.stamp((self.clock.now if moment is None else moment) + self.skew)

    @property
    def boot_id(self) -> str:
        """The identifier of this boot."""
        return f"{self.name} {self.born:g} {self._boots}"

    def since_boot(self) -> BootTime:
        """Now, by the kernel's clock."""
        if self.is_old:
            return UNKNOWN
        return BootTime(self.boot_id, self.clock.now - self._booted)

    @property
    def healthy(self) -> bool:
        """Whether its scheduler runs and is Ready now."""
        return self.up and self.process is not None and self.process.ready_since is not None

    @property
    def has_api_server(self) -> bool:
        """Whether its scheduler finds an API server."""
        return not self._server.away

    @property
    def shown(self) -> int:
        """The revision whose manifest lies there; -1: none."""
        return self.manifest.revision if self.manifest is not None else -1

    # --- the machine ----------------------------------------------------------------------------
    def fail(self) -> None:
        """Power off: nothing is put in order."""
        if not self.up or self.gone:
            return
        self.up = False
        for _, job in self._jobs.values():
            job.close()
        self._jobs.clear()
        self.swapping = False
        self._kill_process(publish=False)
        self.clock.after(1.0, self._report_lost)

    def recover(self) -> None:
        """Power on: the kubelet finds its manifests and the pods that are bound to it."""
        if self.up or self.gone:
            return
        self.up = True
        self._booted, self._boots = self.clock.now, self._boots + 1
        self.looked.clear()
        self._set_node_status(ready=True)
        self._remove_mirror()
        if self.manifest is not None:
            self._start_static_pod(self.manifest)
        self._see_all()

    def look_again(self) -> None:
        """Let guards notice that the disk has changed."""
        self.clock.after(0.1, self._see_all)

    def _see_all(self) -> None:
        for pod in self._server.list(PODS, self._platform.target_namespace):
            self._see_pod(pod)

    def remove(self) -> None:
        """Take the machine out of the cluster for good."""
        self.gone = True
        self.fail()
        self.up = False
        if self._changed in self._server.listeners:
            self._server.listeners.remove(self._changed)
        self._server.finalize("admin", ObjectRef(NODES, None, self.name))
        mirror = self.mirror_ref
        self.clock.after(0.5, lambda: self._collect(mirror))
        for pod in self._server.list(PODS, self._platform.target_namespace):
            if pod["spec"].get("nodeName") == self.name:
                ref = PODS.ref(pod)
                self.clock.after(40.0, partial(self._collect, ref))

    def renew(self, kubeconfig: str) -> None:
        """A user writes another kubeconfig for the scheduler."""
        self.kubeconfig = kubeconfig
        if self.up:
            self._see_all()

    def _collect(self, ref: ObjectRef) -> None:
        """The pod garbage collector: pods of nodes that do not exist any more."""
        pod = self._server.objects.get(ref)
        if pod is None:
            return
        owners = [owner["uid"] for owner in pod["metadata"].get("ownerReferences") or ()]
        node = self._server.find(NODES, self.name)
        if node is None or (
            ref.namespace == self._platform.operand_namespace and self.uid in owners
        ):
            self._server.finalize("podgc", ref)

    def heartbeat(self) -> None:
        if self.up and not self.gone:
            self._set_node_status(ready=True)

    def _report_lost(self) -> None:
        """What the node lifecycle controller does when heartbeats stay away."""
        if self.up or self.gone:
            return
        self._set_node_status(ready=False)
        mirror = self._server.find(PODS, self._mirror_name, self._platform.operand_namespace)
        if mirror is not None:
            status = {**mirror["status"], "conditions": [{"type": "Ready", "status": "False"}]}
            self._server.replace("node-lifecycle", PODS, {**mirror, "status": status})

    def _node_status(self, *, ready: bool) -> Object:
        if ready != self._was_ready:
            self._was_ready, self._turned = ready, self.stamp() if ready else self.clock.stamp()
        status = kubelet.node_status(self.stamp(), self._turned, is_ready=ready)
        return {**status, "nodeInfo": {"bootID": self.boot_id}}

    def _set_node_status(self, *, ready: bool) -> None:
        node = self._server.find(NODES, self.name)
        if node is not None and node["metadata"]["uid"] == self.uid:
            self._server.replace(
                "kubelet", NODES, {**node, "status": self._node_status(ready=ready)}
            )

    # --- the disk -------------------------------------------------------------------------------
    @property
    def active(self) -> int:
        """The revision that was installed last and stayed healthy; 0: none."""
        return self.last_good.revision if self.last_good is not None else 0

    @property
    def newest(self) -> int:
        """The highest number of a directory that is as it was written."""
        edited = {self.active} if self.edited_file else set()
        return max(self.directories.keys() - edited, default=0)

    def report(self) -> DiskReport:
        """What a guard finds on the disk."""
        edits = []
        if self.active and self.journal is None:
            if self.manifest != self.last_good:
                edits.append("/etc/kubernetes/manifests/kube-scheduler.yaml")
            if self.edited_file:
                edits.append("configmaps/config/config.yaml")
        label = 0 if self.manifest is None else _label(self.manifest)
        state = f"{self.manifest} {self.edited_file}" if edits else ""
        if self.work:
            state = f"{self.work} {self.manifest is None}"
        return DiskReport(
            revision=self.active,
            content=self.directories.get(self.active, ""),
            newest=self.newest,
            kubeconfig=self.kubeconfig,
            edits=tuple(edits),
            edit=state,
            labelled=label,
            image=self.stock_image,
            api_server=self.api_server,
            work=self.work,
            read=self.since_boot(),
        )

    @property
    def stock_image(self) -> str:
        """The image in the manifest in place, if kubeadm wrote it; empty otherwise."""
        stock = self.manifest is not None and self.manifest.revision == 0
        return self.manifest.image if self.manifest is not None and stock else ""

    def edit_by_hand(self, text: str, label: int | None = None) -> None:
        """A person edits the manifest in place, and keeps its label unless `label` is given."""
        if self.manifest is not None:
            self.overwrite(replace(self.manifest, edit=text, label=label))
            self._see_all()

    def edit_a_file(self, text: str) -> None:
        """A person edits a file of the revision; the scheduler does not notice."""
        self.edited_file = text
        self._see_all()

    # --- the static pod -------------------------------------------------------------------------
    @property
    def _mirror_name(self) -> str:
        return self._platform.mirror_pod_name(self.name)

    @property
    def mirror_ref(self) -> ObjectRef:
        """The pod as which the API shows the static pod."""
        return ObjectRef(PODS, self._platform.operand_namespace, self._mirror_name)

    def place(self, manifest: Manifest) -> None:
        self.manifest, self.removed = manifest, False
        self.clock.after(0.3, lambda: self._start_static_pod(manifest))

    def withdraw(self) -> None:
        self.manifest = None
        process = self.process
        self.clock.after(0.3, lambda: self._stop_static_pod(process))

    def overwrite(self, manifest: Manifest) -> None:
        """A user replaces the file."""
        self.place(manifest)

    def remove_manifest(self) -> None:
        """A person removes the file."""
        self.withdraw()
        self.removed = True
        self._see_all()

    def _start_static_pod(self, manifest: Manifest) -> None:
        if not self.up or self.manifest is not manifest:
            return
        if self.process is not None:
            self._kill_process()
            self._remove_mirror()
        self.process = Process(manifest)
        self._run(self.process)

    def _stop_static_pod(self, process: Process | None) -> None:
        if not self.up or process is None or self.process is not process:
            return
        self._kill_process(publish=False)
        self._remove_mirror()

    def _kill_process(self, *, publish: bool = False) -> None:
        process, self.process = self.process, None
        if process is not None:
            process.alive, process.ready_since = False, None
            for timer in process.timers:
                timer.cancel()

    def _run(self, process: Process) -> None:
        """Start the container (again)."""
        if self.process is not process:
            return
        behavior = process.manifest.behavior
        process.alive, process.started = True, self.clock.now
        lifetimes = behavior.lifetimes
        lives = lifetimes[min(process.run, len(lifetimes) - 1)] if lifetimes else math.inf
        if self._server.away:
            lives = min(lives, LIVES_ALONE)
        process.timers.clear()
        if behavior.ready_after is not None and behavior.ready_after < lives:
            process.timers.append(
                self.clock.after(behavior.ready_after, lambda: self._turn_ready(process))
            )
        if lives < math.inf:
            process.timers.append(self.clock.after(lives, lambda: self._exit(process)))
        self._publish()

    def lose_api_server(self) -> None:
        """Its scheduler ends by and by; some are lucky."""
        process = self.process
        if process is not None and process.alive and self._rng.random() < 0.8:
            self.clock.after(self._rng.uniform(1.0, 12.0), lambda: self._end_alone(process))

    def _end_alone(self, process: Process) -> None:
        if self._server.away and process.alive:
            for timer in process.timers:
                timer.cancel()
            self._exit(process)

    def _turn_ready(self, process: Process) -> None:
        if self._server.away:
            process.timers.append(self.clock.after(1.0, lambda: self._turn_ready(process)))
        elif self.process is process and process.alive:
            process.ready_since = self.clock.now
            self._publish()

    def break_scheduler(self) -> None:
        """Its scheduler runs, and is not Ready any more."""
        if self.process is not None:
            self.process.ready_since = None
            self._publish()

    def mend_scheduler(self) -> None:
        if self.process is not None:
            self._turn_ready(self.process)

    def _exit(self, process: Process) -> None:
        if self.process is not process:
            return
        process.alive, process.ready_since, process.ended = False, None, self.clock.now
        process.run += 1
        wait = back_off(process.run)
        process.timers.append(self.clock.after(wait, lambda: self._run(process)))
        self._publish()

    def _publish(self) -> None:
        """Show the static pod in the API as a mirror pod."""
        process = self.process
        if process is None or not self.up or self.gone:
            return
        manifest = process.manifest
        log = 'E1121 10:03:00.0 1 run.go:72] "command failed" err="boom"'
        ended = kubelet.terminated(1, log, self.stamp(process.ended))
        if process.alive:
            state = kubelet.running(self.stamp(process.started))
        elif process.run > 1:
            state = kubelet.waiting("CrashLoopBackOff", "back-off restarting")
        else:
            state = ended
        is_ready = process.ready_since is not None
        since = {"lastTransitionTime": self.stamp(process.ready_since)} if is_ready else {}
        container = kubelet.container_status(
            names.OPERAND,
            state,
            is_ready=is_ready,
            restarts=process.run,
            last_state=ended if process.run else None,
        )
        status = {
            "phase": "Running",
            "conditions": [ready_condition(is_ready, **since)],
            "containerStatuses": [container],
        }
        ref = self.mirror_ref
        existing = self._server.objects.get(ref)
        if existing is not None and existing["metadata"]["annotations"][_CONFIG_HASH] != str(
            id(process)
        ):
            self._server.finalize("kubelet", ref)
            existing = None
        if existing is not None:
            self._server.replace("kubelet", PODS, {**existing, "status": status})
            return
        labels = dict(self._platform.static_pod_labels)
        annotations = {_CONFIG_HASH: str(id(process))}
        if manifest.revision:
            labels[names.REVISION_LABEL] = str(_label(manifest))
            annotations[names.CONTENT_HASH_ANNOTATION] = manifest.hash
            annotations[names.KUBECONFIG_ANNOTATION] = manifest.kubeconfig
        container = {
            "image": manifest.image,
            "command": ["kube-scheduler"],
            "args": list(manifest.arguments),
            "readinessProbe": {"httpGet": self.probe},
            **json.loads(manifest.container),
        }
        pod = kubelet.mirror_pod(
            self.name,
            self._platform.operand_namespace,
            container,
            labels=labels,
            annotations=annotations,
            node_uid=self.uid,
        )
        self._server.create("kubelet", PODS, {**pod, "status": status})

    def _remove_mirror(self) -> None:
        self._server.finalize("kubelet", self.mirror_ref)

    # --- installer pods -------------------------------------------------------------------------
    def _changed(self, change: Any) -> None:
        if self.up and change.ref.resource == PODS and change.kind != "DELETED":
            if change.ref.namespace == self._platform.target_namespace:
                self.clock.after(0.05, lambda: self._see(change.ref))
            elif (
                change.ref.name == self._mirror_name
                and "deletionTimestamp" in change.new["metadata"]
            ):
                self.clock.after(0.2, self._restore_mirror)

    def find_other_objects(self) -> None:
        """The API has another state than before: end what is not there, and report again."""
        known = {pod["metadata"]["uid"] for pod in self._server.list(PODS)}
        for uid in set(self._jobs) - known:
            self._jobs.pop(uid)[1].close()
        if self.up:
            self.heartbeat()
            self._publish()
            self._see_all()

    def _restore_mirror(self) -> None:
        """A user deleted the mirror pod; the kubelet creates it again."""
        self._remove_mirror()
        self._publish()

    def _see(self, ref: ObjectRef) -> None:
        pod = self._server.objects.get(ref)
        if pod is not None:
            self._see_pod(pod)

    def _see_pod(self, pod: Object) -> None:
        if not self.up or pod["spec"].get("nodeName") != self.name:
            return
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        former = [each for each, (known, _) in self._jobs.items() if known == name and each != uid]
        for each in former:  # deleted and created again before this machine saw either
            self._jobs.pop(each)[1].close()
        running = uid in self._jobs
        if "deletionTimestamp" in pod["metadata"]:
            if running:
                self._jobs.pop(uid)[1].close()
            ref = PODS.ref(pod)
            self.clock.after(0.3, lambda: self._server.finalize("kubelet", ref))
        elif not running and pod["status"].get("phase") not in ("Succeeded", "Failed"):
            labels = pod["metadata"]["labels"]
            if labels["app"] == names.GUARD:
                job = guard.run(self, pod)
            elif labels["app"] == names.CONFIG_READER:
                job = self._config_reader_pod(pod)
            elif names.INSTALLER_REVISION_LABEL in labels:
                job = self._installer_pod(pod)
            else:
                job = self._restore_pod(pod)
            self._jobs[uid] = (name, job)
            self._go_on(uid, job)

    def _go_on(self, uid: str, job: Step) -> None:
        if not self.up or self._jobs.get(uid, ("", None))[1] is not job:
            return
        try:
            delay = next(job)
        except StopIteration:
            self._jobs.pop(uid, None)
            return
        self.clock.after(delay, lambda: self._go_on(uid, job))

    def _set_pod(
        self,
        pod: Object,
        phase: str,
        preflight: Object | None = None,
        installer: Object | None = None,
        reader: Object | None = None,
        **status: Any,
    ) -> None:
        live = self.pod(pod)
        if live is None:
            return
        waiting = {"state": {"waiting": {"reason": "ContainerCreating"}}}
        states = {
            names.PREFLIGHT: preflight,
            names.INSTALLER: installer,
            names.CONFIG_READER: reader,
        }
        status |= {
            "phase": phase,
            "containerStatuses": [
                {"name": container["name"], **(states[container["name"]] or waiting)}
                for container in pod["spec"]["containers"]
            ],
        }
        self.write_status(live, status)

    def pod(self, pod: Object) -> Object | None:
        """The current pod, if it still is the same one."""
        live = self._server.objects.get(PODS.ref(pod))
        if live is None or live["metadata"]["uid"] != pod["metadata"]["uid"]:
            return None
        return live

    def write_status(self, pod: Object, status: Object) -> None:
        """Say how a pod is."""
        self._server.replace("kubelet", PODS, {**pod, "status": status})

    def _terminated(self, code: int, message: str) -> Object:
        return kubelet.terminated(code, message, self.stamp())

    def _installer_pod(self, pod: Object) -> Step:
        """What the kubelet does with an installer pod, from image pull to result."""
        arguments = _flags(pod)
        revision, retry = int(arguments["revision"]), int(arguments["retry"])
        while self.refuses_pods:
            self._set_pod(pod, "Pending", message="no room")
            yield 2.0
        config, template = yield from self._mounted(pod, revision)
        behavior = self._behavior_of(config, template)
        yield behavior.pending_for
        if behavior.evictions > self.evicted.get(revision, 0):
            self.evicted[revision] = self.evicted.get(revision, 0) + 1
            self._set_pod(pod, "Failed", reason="Evicted", message="The node was low on resource")
            return
        yield from self._pull(pod, behavior)
        running = yield from self._preflight(pod, behavior)
        # The installer goes on at once. The API learns of the check's end a moment later, and an
        # operator that knows of no swap may take the pod away meanwhile.
        passed = {"state": self._terminated(0, "")}
        uid = pod["metadata"]["uid"]
        self.clock.after(1.0, lambda: self._relist(uid, pod, passed, running))
        yield self._rng.choice((0.05, 0.05, 3.0))
        if (
            self.directories.setdefault(revision, arguments["content-hash"])
            != (arguments["content-hash"])
        ):
            reason = f"the node has revision {revision} with other content"
            taken = self._superseded(revision, retry, reason)
            self._set_pod(pod, "Succeeded", passed, {"state": self._terminated(0, taken)})
            return
        self.staged.add(revision)
        if self.manifest is None and not self.swapping and self.last_good is not None:
            self.place(self.last_good)  # a swap that lost its power may have left none
        started = {**running, "started": True}
        self.clock.after(1.0, lambda: self._relist(uid, pod, passed, started))
        while not self._is_permitted(pod):
            yield 0.2
        spec = json.loads(template["data"][names.POD_KEY])["spec"]["containers"][0]
        target = Manifest(
            revision,
            arguments["content-hash"],
            spec["image"],
            tuple(spec["args"]),
            behavior,
            self.kubeconfig,
            container=json.dumps({key: spec[key] for key in ("env", "resources") if key in spec}),
        )
        patience, follows = float(arguments["health-timeout"]), "follow-kubeadm" in arguments
        result = yield from Swap(self, target, retry, patience, follows=follows).run()
        installed = {"state": self._terminated(0, result.serialise())}
        self._set_pod(pod, "Succeeded", passed, installed)

    def _mounted(self, pod: Object, revision: int) -> Generator[float, None, tuple[Object, Object]]:
        """Wait for the ConfigMaps of a revision: its configuration and its static Pod."""
        namespace = self._platform.target_namespace
        while True:
            config = self._server.find(CONFIG_MAPS, f"{names.CONFIG}-{revision}", namespace)
            template = self._server.find(CONFIG_MAPS, f"{names.POD}-{revision}", namespace)
            if config is not None and template is not None:
                return config, template
            self._set_pod(pod, "Pending", message=f"configmap of revision {revision} not found")
            yield 2.0

    def _pull(self, pod: Object, behavior: Behavior) -> Step:
        """Pull the image of an installer pod."""
        patience = self.clock.now + behavior.pull_error_for
        while self.clock.now < patience:
            for reason in ("ErrImagePull", "ImagePullBackOff"):
                waiting = {"state": kubelet.waiting(reason, "no such image")}
                self._set_pod(pod, "Pending", waiting)
                yield 5.0

    def _preflight(self, pod: Object, behavior: Behavior) -> Generator[float, None, Object]:
        """Run the check of an installer pod until it passes; the state of its installer."""
        restarts, last = 0, dict[str, Any]()
        while True:
            running = {"state": kubelet.running(self.stamp())}
            preflight = {**running, "lastState": last, "restartCount": restarts}
            self._set_pod(pod, "Running", preflight, running)
            yield behavior.preflight_for
            if not behavior.refused:
                return running
            last = self._terminated(1, behavior.refused)
            restarts += 1
            preflight = {
                "state": kubelet.waiting("CrashLoopBackOff", "back-off"),
                "lastState": last,
                "restartCount": restarts,
            }
            self._set_pod(pod, "Running", preflight, running)
            yield min(10.0 * 2 ** (restarts - 1), 300.0)

    def _superseded(self, revision: int, retry: int, reason: str) -> str:
        """The termination message of an installer that changed nothing."""
        outcome = InstallerOutcome.SUPERSEDED
        result = Result(
            outcome,
            revision,
            self.name,
            self.active,
            retry,
            reason,
            newest=self.newest,
            read=self.since_boot(),
        )
        return result.serialise()

    def _is_permitted(self, pod: Object) -> bool:
        if self._server.away:
            return False
        live = self._server.objects.get(PODS.ref(pod)) or {"metadata": {}}
        annotations = live["metadata"].get("annotations") or {}
        return bool(annotations.get(names.PERMISSION_ANNOTATION) == names.PERMISSION_GRANTED)

    def _restore_pod(self, pod: Object) -> Step:
        """What the kubelet does with a restore pod."""
        arguments = _flags(pod)
        yield 0.5
        running = {"state": kubelet.running(self.stamp())}
        self._set_pod(pod, "Running", installer=running)
        patience = float(arguments["health-timeout"])
        result = yield from Restore(self, int(arguments["retry"]), patience).run()
        self._set_pod(
            pod, "Succeeded", installer={"state": self._terminated(0, result.serialise())}
        )

    def _config_reader_pod(self, pod: Object) -> Step:
        """What the kubelet does with the Pod that reads the scheduler's file."""
        yield 0.5
        message = ConfigReport(json.loads(self.config_file)).serialise()
        self._set_pod(pod, "Succeeded", reader={"state": self._terminated(0, message)})

    def _relist(self, uid: str, pod: Object, preflight: Object, installer: Object) -> None:
        """Report what the kubelet noticed late; a Pod that has ended never runs again."""
        live = self.pod(pod) or {}
        ended = (live.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if self.up and uid in self._jobs and not ended:
            self._set_pod(pod, "Running", preflight, installer)

    def _behavior_of(self, config_map: Object, template: Object) -> Behavior:
        config = json.loads(config_map["data"][names.CONFIG_KEY])
        pod = json.loads(template["data"][names.POD_KEY])
        image = pod["spec"]["containers"][0]["image"]
        if image in self.of_image:
            return self.of_image[image]
        return self._script.get(config.get("percentageOfNodesToScore", -1), GOOD)


def _label(manifest: Manifest) -> int:
    return manifest.revision if manifest.label is None else manifest.label


def _flags(pod: Object) -> dict[str, str]:
    containers = {container["name"]: container for container in pod["spec"]["containers"]}
    arguments = containers[names.INSTALLER]["args"]
    pairs = (argument.lstrip("-").partition("=") for argument in arguments)
    return {name: value for name, _, value in pairs}
