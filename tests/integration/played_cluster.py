"""A cluster of one's own for the tests of one kind of object, with a kubelet that is played.

The API server and the controllers are real, and the operator is a process with the rights that
deploy/kubeadm grants: what it is not granted it cannot do. What becomes of its pods is up to the
test.
"""

from __future__ import annotations

import contextlib
import hashlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar
from urllib.parse import quote

from cluster import images, lifecycle, teardown
from cluster.api import Api, ApiError
from cluster.console import run
from cluster.model import Sandbox
from cluster.observe import KUBESCHEDULER, until

from ..expect import condition_of
from ..imitation import kubelet
from .conftest import REPOSITORY
from .harness import NAMESPACE, Operator, Proxy, now

GROUP = "/apis/kube-scheduler-operator.dev/v1alpha1"
CORE, APPS = f"/api/v1/namespaces/{NAMESPACE}", f"/apis/apps/v1/namespaces/{NAMESPACE}"
AT_ONCE = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
_OPERATOR = (
    ("Impersonate-User", f"system:serviceaccount:{NAMESPACE}:kube-scheduler-operator"),
    ("Impersonate-Group", "system:authenticated"),
)


class PlayedCluster:
    """The cluster, a simulated kubelet, and the operator; subclasses are about one kind.

    An operator that the test killed stays dead until `start`; one that ended for another reason
    fails the test.
    """

    kind: ClassVar[str]  # of the objects that these tests make
    objects: ClassVar[str]  # their path
    # on everything that is made for one of them; its value is the name of that one
    label: ClassVar[str]
    makes: ClassVar[tuple[str, ...]]  # the paths of what is made for them
    # of the operator, besides the image, which a missing control plane cannot provide
    flags: tuple[str, ...] = ("--platform=kubeadm",)  # as in deploy/kubeadm
    platform: ClassVar[str] = "kubeadm"  # the folder of deploy/ that is applied
    # whether the operator is started with the image of kube-scheduler
    named_image: ClassVar[bool] = True
    # the version of the API server; None: that of the other tests
    kubernetes: ClassVar[str | None] = None

    def __init__(self, sandbox: Sandbox, proxy: Proxy, operator: Operator) -> None:
        self.sandbox = sandbox
        self.api = Api(sandbox)
        self.proxy = proxy
        self.operator = operator
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._play, daemon=True)

    def open(self) -> None:
        """Play the kubelet from now on."""
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(10)

    # --- the kubelet --------------------------------------------------------------------------

    def pending(self, pod: dict[str, Any]) -> None:
        """What becomes of a pod that is Pending; called again for as long as it is."""
        self.becomes_ready(pod)

    def becomes_ready(self, pod: dict[str, Any]) -> None:
        """The pod runs, with all of its containers."""
        self.report(pod, **kubelet.ready_status(pod, now()))

    def report(self, pod: dict[str, Any], **status: Any) -> None:
        """Write a part of the pod's status."""
        path = f"{CORE}/pods/{pod['metadata']['name']}/status"
        self.api.request("PATCH", path, {"status": status})

    def _play(self) -> None:
        while not self._stop.wait(0.1):
            try:
                for pod in self.pods():
                    path = f"{CORE}/pods/{pod['metadata']['name']}"
                    if "deletionTimestamp" in pod["metadata"]:
                        with contextlib.suppress(ApiError):  # where it is gone already
                            self.api.request("DELETE", path, AT_ONCE)
                    elif pod["status"]["phase"] == "Pending":
                        self.pending(pod)
            except ApiError as error:
                print(f"played kubelet: {error}")

    # --- the operator -------------------------------------------------------------------------

    def start(self) -> None:
        """Start it unless it runs.

        Raises:
            AssertionError: it has ended, and was not killed.
        """
        process = self.operator.process
        if process is not None:
            code = process.poll()
            if code is None:
                return
            text = self.operator.latest_text()
            self.operator.process = None  # one failure for one end: the next test has a new one
            assert code == -signal.SIGKILL, f"it ended with {code}: {text[-3000:]}"
        image = f"--operand-image={images.scheduler_name(self.sandbox.kubernetes)}"
        self.operator.start(*([image] if self.named_image else []), *self.flags)

    def wait(
        self,
        condition: Callable[[], object],
        seconds: float = 60,
        otherwise: str | Callable[[], object] = "",
    ) -> None:
        """Wait until something is so; `otherwise` describes the state at the timeout."""

        def failed() -> str:
            text = otherwise if isinstance(otherwise, str) else otherwise()
            return f"{text}\n{self.log()}".lstrip()

        until(condition, seconds, failed)

    def writes_within(self, seconds: float) -> list[str]:
        """What the operator writes from now on, ClusterOperator aside."""
        self.proxy.arm(0, lambda: None, after=False)
        time.sleep(seconds)
        return [write for write in self.proxy.writes if "clusteroperators" not in write]

    def log(self) -> str:
        """How the operator's log ends."""
        return f"the operator's log ends: {self.operator.text()[-3000:]}"

    # --- what is there ------------------------------------------------------------------------

    def get(self, path: str) -> dict[str, Any]:
        return self.api.request("GET", path)

    def exists(self, path: str) -> bool:
        try:
            self.get(path)
        except ApiError as error:
            if error.code != 404:
                raise
            return False
        return True

    def listed(self, path: str, selector: str = "") -> list[dict[str, Any]]:
        query = f"?labelSelector={quote(selector, safe='')}" if selector else ""
        found: list[dict[str, Any]] = self.get(path + query)["items"]
        return found

    def pods(self, name: str = "") -> list[dict[str, Any]]:
        """The pods that were made for an object, or for all."""
        return self.listed(f"{CORE}/pods", self._whose(name))

    def made(self, name: str = "") -> set[str]:
        """Everything that was made for an object, or for all, as `KIND NAME`."""
        return {
            f"{path.rpartition('/')[2]} {obj['metadata']['name']}"
            for path in self.makes
            for obj in self.listed(path, self._whose(name))
        }

    def _whose(self, name: str) -> str:
        return f"{self.label}={name}" if name else self.label

    def message_of(self, type_: str) -> str:
        """The message of a condition of KubeScheduler; empty without one."""
        return condition_of(self.get(KUBESCHEDULER), type_)[2]

    # --- the objects of these tests -----------------------------------------------------------

    def put(self, name: str, **spec: Any) -> None:
        """Create an object, or replace what it asks for."""
        path = f"{self.objects}/{name}"
        while True:
            if not self.exists(path):
                self.api.request("POST", self.objects, self.body(name, spec))
                return
            try:
                self.api.request("PUT", path, {**self.get(path), "spec": spec})
            except ApiError as error:
                if error.code == 409:  # the operator was faster with a status
                    continue
                raise
            return

    def body(self, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        version = GROUP.removeprefix("/apis/")
        return {
            "apiVersion": version, "kind": self.kind, "metadata": {"name": name}, "spec": spec
        }  # fmt: skip

    def delete(self, name: str) -> None:
        self.api.request("DELETE", f"{self.objects}/{name}")

    def status(self, name: str) -> dict[str, Any]:
        """The status of an object; empty until the operator writes it."""
        found: dict[str, Any] = self.get(f"{self.objects}/{name}").get("status", {})
        return found

    def condition(self, name: str, type_: str) -> tuple[str, str, str]:
        """(status, reason, message); empty where there is no such condition."""
        return condition_of(self.get(f"{self.objects}/{name}"), type_)


Played = TypeVar("Played", bound=PlayedCluster)


@contextlib.contextmanager
def brought_up(world: type[Played], prefix: str, folder: Path) -> Iterator[Played]:
    """A sandbox with what deploy/PLATFORM makes; all of it is gone afterwards.

    The operator has yet to be started: what it is to find comes first.

    Args:
        world: what to make of it.
        prefix: of the sandbox's name; files whose prefixes differ can run side by side.
        folder: for the operator's kubeconfig and log.
    """
    # Two checkouts on one machine must not share an API server.
    name = f"{prefix}-{hashlib.sha256(str(REPOSITORY).encode()).hexdigest()[:6]}"
    teardown.down(name)
    sandbox = lifecycle.up(name, 0, 0, with_operator=False, kubernetes=world.kubernetes)
    with contextlib.ExitStack() as undone:
        undone.callback(teardown.down, name)
        kubectl = [str(sandbox.state / "bin/kubectl"), f"--kubeconfig={sandbox.kubeconfig}"]
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "crds")
        run(*kubectl, "wait", "--for=condition=Established", "crd", "--all")
        run(*kubectl, "apply", "--server-side", "-k", REPOSITORY / "deploy" / world.platform)
        proxy = Proxy(sandbox)
        undone.callback(proxy.close)
        proxy.identity = _OPERATOR
        operator = Operator(proxy, folder)
        undone.callback(operator.kill)
        found = world(sandbox, proxy, operator)
        found.open()
        undone.callback(found.close)
        yield found
