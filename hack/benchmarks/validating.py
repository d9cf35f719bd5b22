"""`validate`: how long a file of 300 lines takes, start included, and the check itself."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from benchmarks.checking import forget
from benchmarks.table import REPOSITORY, Row
from kube_scheduler_operator.base.source.reader import read
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.validate import validate

LINES = 300
MOST_SECONDS = 0.4
MOST_MILLISECONDS = 5.0
_PROFILES = 12


def configuration() -> str:
    """A KubeSchedulerConfiguration of at least 300 lines in which nothing is wrong."""
    profiles = []
    for number in range(_PROFILES):
        ratio = {"shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]}
        strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": ratio}
        spread = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
        profiles.append(
            {
                "schedulerName": "default-scheduler" if not number else f"scheduler-{number}",
                "plugins": {
                    "score": {"enabled": [{"name": "ImageLocality", "weight": number + 1}]},
                    "filter": {"disabled": [{"name": "VolumeZone"}]},
                },
                "pluginConfig": [
                    {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}},
                    {
                        "name": "PodTopologySpread",
                        "args": {"defaultingType": "List", "defaultConstraints": [spread]},
                    },
                ],
            }
        )
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": profiles,
    }
    text = str(yaml.safe_dump(document, sort_keys=False))
    assert text.count("\n") >= LINES
    return text


def kubescheduler() -> str:
    """The same as overrides of a KubeScheduler."""
    document = yaml.safe_load(configuration())
    spec = {"unsupportedConfigOverrides": {"profiles": document["profiles"]}}
    object_ = {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeScheduler",
        "metadata": {"name": "cluster"},
        "spec": spec,
    }
    return str(yaml.safe_dump(object_, sort_keys=False))


def measure(repeat: int) -> Iterator[Row]:
    """All figures, as they come."""
    setting = CheckOptions(Gates(Version(1, 35)))
    for name, text in (
        ("KubeSchedulerConfiguration", configuration()),
        ("KubeScheduler", kubescheduler()),
    ):
        found = validate([("file", text)], setting)
        assert found.starts, found.findings
        starts = list(_starts(text, repeat))
        name_of_row = f"validate {text.count(chr(10))} lines of {name}"
        yield Row(name_of_row, [elapsed for elapsed, _ in starts], "s", MOST_SECONDS)
        yield Row("  of which its own work", [cpu for _, cpu in starts], "s of CPU", None)
    text = configuration()
    ((document,), _) = read(text)
    yield Row("reading it", _timed(lambda: read(text), repeat), "ms of CPU", None)
    yield Row("checking it", _timed(_check(document.value, setting), repeat), "ms of CPU",
              MOST_MILLISECONDS)  # fmt: skip
    yield Row("its warnings", _timed(_warn(document.value, setting), repeat), "ms of CPU", None)


def _check(value: object, setting: CheckOptions) -> Callable[[], object]:
    from kube_scheduler_operator.config.language.validation.configuration import validate_config

    return lambda: validate_config(value, setting.target)  # type: ignore[arg-type]  # it is a map


def _warn(value: object, setting: CheckOptions) -> Callable[[], object]:
    from kube_scheduler_operator.config.language.warnings.configuration import config_warnings

    return lambda: config_warnings(value, setting.target)  # type: ignore[arg-type]  # it is a map


def _timed(work: Callable[[], object], repeat: int) -> list[float]:
    """Milliseconds of CPU, each the median of ten: others on the machine should not count."""
    values = []
    for _ in range(repeat):
        ten = []
        for _ in range(10):
            forget()
            begun = time.process_time()
            work()
            ten.append(1000 * (time.process_time() - begun))
        values.append(statistics.median(ten))
    return values


def _starts(text: str, repeat: int) -> Iterator[tuple[float, float]]:
    """(seconds from start to end, seconds of CPU); the first start, which compiles, is left out."""
    environment = dict(os.environ, PYTHONPATH=str(REPOSITORY / "operator"))
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "file.yaml"
        file.write_text(text)
        command = [sys.executable, "-m", "kube_scheduler_operator", "validate", "-f", str(file)]
        for number in range(repeat + 1):
            before = _work_of_children()
            begun = time.monotonic()
            subprocess.run(command, capture_output=True, check=True, env=environment)
            if number:
                yield time.monotonic() - begun, _work_of_children() - before


def _work_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
