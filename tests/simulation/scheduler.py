"""kube-scheduler as a static pod: what it is made of, and how a configuration makes it behave."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..imitation.clock import Timer

REFUSAL = (
    "I1121 10:02:02.900000       1 serving.go:386] Generated self-signed cert in-memory\n"
    'E1121 10:02:03.000000       1 run.go:72] "command failed" err="initializing profiles: '
    'creating profile for scheduler name default-scheduler: ScorePlugin \\"Nope\\" does not '
    'exist"\n'
)
SENTENCE = (
    "initializing profiles: creating profile for scheduler name default-scheduler: "
    'ScorePlugin "Nope" does not exist'
)


@dataclass(frozen=True, slots=True)
class Behavior:
    """What a configuration does to kube-scheduler."""

    refused: str = ""  # what the preflight logs when it refuses; empty: it accepts
    ready_after: float | None = 1.5  # seconds from start to Ready; None: never
    # how long each run lasts, the last one for all later runs; empty: indefinitely
    lifetimes: tuple[float, ...] = ()
    pull_error_for: float = 0.0  # how long the image cannot be pulled
    pending_for: float = 0.4  # how long the installer pod takes to start
    preflight_for: float = 0.6  # how long the check takes
    evictions: int = 0  # how many installer pods are evicted

    @property
    def is_harmless(self) -> bool:
        """Whether a scheduler works with it, given time."""
        return not self.refused and not self.lifetimes and self.ready_after is not None


GOOD = Behavior()


@dataclass(frozen=True, slots=True)
class Manifest:
    """A static pod's file: revision 0 is the stock one."""

    revision: int
    hash: str
    image: str
    arguments: tuple[str, ...]
    behavior: Behavior
    kubeconfig: str = ""  # what the node's kubeconfig was when the installer wrote it
    edit: str = ""  # what a person changed in the file by hand
    label: int | None = None  # the revision in its label, if a person changed it
    container: str = "{}"  # other fields of its container, as JSON


STOCK_ARGUMENTS = (
    "--authentication-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--authorization-kubeconfig=/etc/kubernetes/scheduler.conf",
    "--bind-address=127.0.0.1",
    "--kubeconfig=/etc/kubernetes/scheduler.conf",
    "--leader-elect=true",
)
IMAGE = "registry.k8s.io/kube-scheduler:v1.35.4"
STOCK = Manifest(0, "", IMAGE, STOCK_ARGUMENTS, GOOD)


def back_off(runs: int) -> float:
    """Seconds that the kubelet waits before it restarts a container again."""
    return 0.2 if runs <= 1 else min(10.0 * 2 ** (runs - 2), 300.0)


@dataclass(slots=True)
class Process:
    """The static pod's container: its runs, and whether it is Ready."""

    manifest: Manifest
    run: int = 0
    started: float = 0.0
    ended: float = 0.0
    alive: bool = False
    ready_since: float | None = None
    timers: list[Timer] = field(default_factory=list)
