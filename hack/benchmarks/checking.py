"""How long the check of a configuration takes; no cluster is needed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.table import REPOSITORY, Row

sys.path.insert(0, str(REPOSITORY / "operator"))

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import NEWEST, OLDEST
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version

LINES = 300
BAD_POINT = {"score": {"enabled": [{"name": "NodeResourceFit"}]}}


def measure(repeat: int) -> Iterator[Row]:
    """Milliseconds for a good and a bad configuration, with the oldest and the newest version."""
    config = configuration()
    assert lines(config) >= LINES
    bad = {**config, "profiles": [{**one, "plugins": BAD_POINT} for one in config["profiles"]]}
    for version in (OLDEST, NEWEST):
        target = Target(Gates(Version(version.major, version.minor)))
        what = f"of {lines(config)} lines, {version.short}"
        for name, given in ((f"check {what}", config), (f"check {what}, bad", bad)):
            yield Row(name, _times(partial(validate_config, given, target), repeat), "ms", 5.0)


def forget() -> None:
    """Let go of what is known of configurations that were seen: the next check is of a new one.

    What a process works out once for all, such as the definitions of arguments, stays; those caches
    have no limit.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("kube_scheduler_operator."):
            for value in list(vars(module).values()):
                parameters = getattr(value, "cache_parameters", None)
                if parameters is not None and parameters()["maxsize"] is not None:
                    value.cache_clear()


def _times(work: Callable[[], object], repeat: int) -> list[float]:
    """Milliseconds of each run but the first, in which the process learns what it always needs."""
    found = []
    for _ in range(repeat + 1):
        forget()
        begun = time.perf_counter()
        work()
        found.append(1000 * (time.perf_counter() - begun))
    return found[1:]


def configuration() -> dict[str, Any]:
    """Five profiles with plugin lists and arguments, and three extenders."""
    ratio = {
        "type": "RequestedToCapacityRatio",
        "resources": [{"name": name, "weight": 2} for name in ("cpu", "memory", "example.com/a")],
        "requestedToCapacityRatio": {
            "shape": [{"utilization": at, "score": at // 10} for at in (0, 20, 40, 100)]
        },
    }
    constraints = [
        {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}
        for skew, key in ((1, "topology.kubernetes.io/zone"), (3, "kubernetes.io/hostname"))
    ]
    requirement = {"key": "example.com/pool", "operator": "In", "values": ["a", "b", "c"]}
    affinity = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [requirement]}]
        }
    }
    profile = {
        "plugins": {
            "score": {
                "enabled": [{"name": "NodeResourcesFit", "weight": 5}, {"name": "ImageLocality"}],
                "disabled": [{"name": "NodeAffinity"}, {"name": "InterPodAffinity"}],
            },
            "postFilter": {"disabled": [{"name": "*"}]},
            "multiPoint": {"disabled": [{"name": "NodePorts"}]},
        },
        "pluginConfig": [
            {"name": "NodeResourcesFit", "args": {"scoringStrategy": ratio}},
            {
                "name": "PodTopologySpread",
                "args": {"defaultingType": "List", "defaultConstraints": constraints},
            },
            {"name": "NodeAffinity", "args": {"addedAffinity": affinity}},
            {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 60}},
        ],
    }
    extender = {"urlPrefix": "http://127.0.0.1:9", "filterVerb": "filter", "httpTimeout": "1s"}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaseDuration": "137s", "renewDeadline": "107s", "retryPeriod": "26s"},
        "profiles": [{"schedulerName": f"scheduler-{number}", **profile} for number in range(5)],
        "extenders": [
            {**extender, "managedResources": [{"name": f"example.com/{name}"}]}
            for name in ("gpu", "nic", "fpga")
        ],
    }


def lines(value: Any) -> int:
    """How many lines the value has as YAML in block style."""
    items = value.values() if isinstance(value, dict) else value
    below = [lines(item) if isinstance(item, dict | list) else 0 for item in items]
    own = len(below) if isinstance(value, dict) else sum(not count for count in below)
    return sum(below) + own
