"""The commands that read files, run in this process on damaged files."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import yaml

from kube_scheduler_operator import __main__
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.commands import diff
from kube_scheduler_operator.cli.console.errors import CommandError, error_message
from kube_scheduler_operator.kube.api import ListResult
from kube_scheduler_operator.kube.errors import ApiRequest, KubeError, NotFound
from kube_scheduler_operator.kube.resource import (
    CONFIG_MAPS,
    KUBE_SCHEDULERS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    ObjectRef,
    Resource,
)
from kube_scheduler_operator.scheduling.annotator import program as annotator
from kube_scheduler_operator.scheduling.extender import program as extender
from kube_scheduler_operator.scheduling.load.policy_files import read_policy

from ...builders import CRANE_POLICY, crane_configuration
from ...configurations.damage import DIRECTORY, MISSING, DamagedFile
from ...configurations.seeds import seeds
from ..config.migrate.conversion_cases import CASES
from ..config.migrate.conversions import AGENT_SCHEDULER, AGENTS, CLASSIC
from .conftest import content, objects

SECONDS = 20.0
"""Processor time that one command may need for one file, on any machine."""

_VERSIONS = ("1.29", "1.33", "1.34", "1.35", "1.36", "1.37")
_TRACE = re.compile(r"Traceback|File \"[^\"]*\.py\"|Error\(|<[\w.]+ object at 0x")
_OWN = "kube-scheduler-operator.dev/v1alpha1"


def _own(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": _OWN, "kind": kind, "metadata": {"name": name}, "spec": spec}


_PROFILE = _own(
    "SchedulerProfile",
    "batch",
    base="HighNodeUtilization",
    plugins={"score": {"enabled": [{"name": "ImageLocality", "weight": 5}]}},
    pluginConfig=[{"name": "NodeResourcesFit", "args": {"ignoredResources": ["example.com/a"]}}],
)
_URL_EXTENDER = _own(
    "SchedulerExtender",
    "gpu",
    url="https://10.0.0.7:8443/scheduler",
    verbs={"filter": "filter", "prioritize": "prioritize"},
    weight=3,
    timeout="1s",
    managedResources=[{"name": "example.com/gpu", "ignoredByScheduler": True}],
    tls={"serverName": "gpu.example.com", "caFile": "/etc/ca.crt"},
)
_AGENT = _own(
    "SchedulerExtender",
    "load",
    agent={
        "policies": [
            {"name": "load-aware", "weight": 1, "arguments": {"priorities": []}},
            {"name": "safe-overload", "arguments": {"annotations": "safe"}},
        ],
        "loadPolicy": "default",
        "schedulerNames": ["batch"],
    },
    weight=2,
)
_SECONDARY = _own(
    "SecondaryScheduler",
    "mine",
    namespace="kube-scheduler-operator",
    replicas=2,
    config={"parallelism": 4, "leaderElection": {"leaseDuration": "30s"}},
    profiles=[{"schedulerName": "mine", "plugins": {"score": {"disabled": [{"name": "*"}]}}}],
)
_LOAD = _own(
    "LoadPolicy",
    "default",
    source={"type": "Prometheus", "prometheus": {"url": "http://prometheus:9090"}},
    sync=[{"name": "cpu_usage_avg_5m", "period": "3m"}],
    predicates=[{"name": "cpu_usage_avg_5m", "maxLimit": "65%"}],
    priorities=[{"name": "cpu_usage_avg_5m", "weight": 0.2}],
    hotValues=[{"timeRange": "5m", "count": 5}],
)
_DYNAMIC = crane_configuration(
    "crane-scheduler",
    extenders=[{"urlPrefix": "http://a.example/x", "filterVerb": "f", "httpTimeout": "1s"}],
)
_SCHEDULER = {
    "apiVersion": "config.openshift.io/v1",
    "kind": "Scheduler",
    "metadata": {"name": "cluster"},
    "spec": {"profile": "NoScoring", "mastersSchedulable": True},
}
_KUBE_SCHEDULER = {
    "apiVersion": "operator.openshift.io/v1",
    "kind": "KubeScheduler",
    "metadata": {"name": "cluster"},
    "spec": {
        "managementState": "Managed",
        "logLevel": "Debug",
        "featureGates": {"enabled": [], "disabled": []},
        "unsupportedConfigOverrides": {"parallelism": 4, "extenders": [CRANE_POLICY]},
    },
}
_AGENTS = [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "my-scheduler-policy", "namespace": "kube-system"},
        "data": {"policy.cfg": yaml.safe_dump(AGENTS)},
    },
    AGENT_SCHEDULER,
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {
                            "image": "kube-sched-ext-safe:0",
                            "ports": [{"containerPort": 80}],
                            "env": [
                                {"name": "HTTP_PORT", "value": "5401"},
                                {"name": "LOG_LEVEL", "value": "DEBUG"},
                                {"name": "SAFE_PERCENTILE", "value": "95"},
                            ],
                        }
                    ]
                }
            }
        },
    },
]
_EXTENDER_CONFIG = {
    "listen": {"address": "0.0.0.0", "port": 6000, "health": {"port": 6001}},
    "policies": [{"policy": "foo", "arguments": {"value": 3}, "failurePolicy": "Fail"}],
    "agents": [{"name": "d", "policies": [{"name": "safe-overload", "weight": 1}]}],
    "podSelector": {"schedulerNames": ["mine"], "matchLabels": {"app": "web"}},
    "logLevel": "TRACE", "watch": False, "decisions": 7,
}  # fmt: skip
_MANIFEST = [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "mine", "namespace": "kube-system"},
        "data": {"config.yaml": yaml.safe_dump(seeds(35)["profiles"])},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "mine", "namespace": "kube-system"},
        "spec": {
            "template": {
                "spec": {
                    "containers": [
                        {"name": "s", "image": "registry.k8s.io/kube-scheduler:v1.34.4"}
                    ],
                    "volumes": [{"name": "config", "configMap": {"name": "mine"}}],
                }
            }
        },
    },
]
_POLICY_FILE = read_policy(yaml.safe_dump(CRANE_POLICY)).policy.document()


def corpus() -> list[tuple[str, Sequence[Any]]]:
    """(name, documents) of undamaged files."""
    found: list[tuple[str, Sequence[Any]]] = [
        (f"v1 {name}", [document]) for name, document in seeds(35).items()
    ]
    for name, case in CASES.items():
        documents = [case.document] if case.policy is None else [case.policy, case.document]
        found.append((name, documents))
    own: list[tuple[str, Sequence[Any]]] = [
        ("Policy", [CLASSIC]),
        ("agents", _AGENTS),
        ("crane", [CRANE_POLICY, _DYNAMIC]),
        ("DynamicSchedulerPolicy", [CRANE_POLICY]),
        ("LoadPolicy", [_LOAD]),
        ("objects", [_SCHEDULER, _KUBE_SCHEDULER, _PROFILE, _URL_EXTENDER, _AGENT]),
        ("KubeScheduler", [_KUBE_SCHEDULER]),
        ("SchedulerExtender", [_AGENT]),
        ("SecondaryScheduler", [_SECONDARY, {**_PROFILE, "spec": {"scheduler": "mine"}}]),
        ("extender", [_EXTENDER_CONFIG]),
        ("policy.json", [_POLICY_FILE]),
        ("manifest", _MANIFEST),
    ]
    return [*found, *own * 4]  # as many as there are old configurations


# --- commands ---------------------------------------------------------------------------------


class _MemoryApi:
    """A cluster whose nodes run revision 1."""

    def __init__(self) -> None:
        statuses = [{"nodeName": "a", "currentRevision": 1}]
        status = {"latestAvailableRevision": 1, "nodeStatuses": statuses, "conditions": []}
        made = content(logLevel="Debug")
        self._lists: dict[Resource, Mapping[str, Any]] = {
            CONFIG_MAPS: objects(1, made),
            KUBE_SCHEDULERS: {names.CLUSTER: {**_KUBE_SCHEDULER, "spec": {}, "status": status}},
            SCHEDULERS: {names.CLUSTER: {**_SCHEDULER, "spec": {}}},
            SCHEDULER_PROFILES: {},
            SCHEDULER_EXTENDERS: {},
        }

    async def get(self, ref: ObjectRef) -> Any:
        found = self._lists.get(ref.resource, {}).get(ref.name)
        if found is None:
            raise NotFound(ApiRequest("get", str(ref)), status=404)
        return found

    async def list(self, resource: Resource, *_: Any, **__: Any) -> ListResult:
        return ListResult(list(self._lists.get(resource, {}).values()))


_API = _MemoryApi()


def _connected(work: Any, *, failure: int = 1) -> Callable[[argparse.Namespace], int]:
    def run(args: argparse.Namespace) -> int:
        try:
            return int(asyncio.run(work(_API, KUBEADM, args)))
        except (KubeError, CommandError) as error:
            print(f"error: {error_message(error)}", file=sys.stderr)
            return failure

    return run


def _validate(rng: Random, file: str, folder: Path) -> list[str]:
    output = rng.choice(("text", "json", "github", "gitlab", "junit", "sarif"))
    strict = rng.choice(((), ("--strict",), ("--severity", "SameNodes=off")))
    version = rng.choice(_VERSIONS)
    return ["validate", "-f", file, "-o", output, "--kubernetes-version", version, *strict]


def _convert(rng: Random, file: str, folder: Path) -> list[str]:
    flags = rng.choice(
        (
            (), (), ("--to", "second"), ("--to", "control-plane"), ("--profiles",), ("--quiet",),
            ("--custom-image",), ("--to", "second", "--name", "s", "--custom-image"),
            ("--policy", file), ("--load-policy", file), ("--prometheus", "http://p"),
        )
    )  # fmt: skip
    version = rng.choice(_VERSIONS)
    output = rng.choice(("yaml", "json"))
    return ["convert", "-f", file, "-o", output, "--kubernetes-version", version, *flags]


def _compose(rng: Random, file: str, folder: Path) -> list[str]:
    platform = rng.choice(("kubeadm", "openshift"))
    return ["compose", "-f", file, "--platform", platform, "-o", rng.choice(("yaml", "json"))]


def _plugins(rng: Random, file: str, folder: Path) -> list[str]:
    return ["plugins", "-f", file, "-o", rng.choice(("table", "json"))]


def _diff(rng: Random, file: str, folder: Path) -> list[str]:
    return ["diff", "-f", file, "-o", rng.choice(("both", "words", "lines"))]


def _render(rng: Random, file: str, folder: Path) -> list[str]:
    flag = rng.choice(("--config-override-files", "--rendered-manifest-files"))
    return [
        "render", f"--asset-input-dir={folder}/tls", f"--asset-output-dir={folder}/out",
        f"--config-output-file={folder}/out/config.yaml", f"{flag}={file}",
    ]  # fmt: skip


def _extender(rng: Random, file: str, folder: Path) -> list[str]:
    return ["extender", "--config", file, "--no-watch"]


def _annotator(rng: Random, file: str, folder: Path) -> list[str]:
    return ["annotator", "--config", file, "--namespace", "n"]


COMMANDS: dict[str, Callable[[Random, str, Path], list[str]]] = {
    "validate": _validate,
    "convert": _convert,
    "compose": _compose,
    "plugins": _plugins,
    "diff": _diff,
    "render": _render,
    "extender": _extender,
    "annotator": _annotator,
}
"""Command -> its arguments for a file, with random options."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a command ended."""

    argv: Sequence[str]  # its arguments
    code: int  # exit code, or -1 after an exception
    out: str  # standard output
    err: str  # standard error
    seconds: float  # processor time
    exception: BaseException | None = None  # the exception, if one escaped

    @property
    def problem(self) -> str:
        """What is wrong with how it ended; empty: nothing."""
        if self.exception is not None:
            return f"{type(self.exception).__name__}: {str(self.exception)[:200]}"
        if self.code not in (0, 1, 2):
            return f"exit code {self.code}"
        if self.err.startswith("usage:"):
            return "arguments that the command does not have"
        if found := _TRACE.search(self.err):
            return f"{found[0]} in standard error"
        if self.code and not (self.err or self.out):
            return f"exit code {self.code} without a message"
        if self.seconds > SECONDS:
            return f"{self.seconds:.1f} s"
        return ""


def prepare(folder: Path) -> None:
    """Write the undamaged inputs that commands need as well."""
    (folder / "auth").mkdir()
    (folder / "tls").mkdir()
    (folder / "auth" / "kubeconfig").write_text("clusters: [{name: bootstrap}]\n")
    (folder / "directory").mkdir()


def place(file: DamagedFile, folder: Path) -> str:
    """Write a file; returns its path, which may also be a directory or missing."""
    if file.data is DIRECTORY:
        return str(folder / "directory")
    path = folder / "file.yaml"
    path.unlink(missing_ok=True)
    if file.data is not MISSING:
        path.write_bytes(file.data)
    return str(path)


def run(argv: Sequence[str]) -> Outcome:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    began = time.process_time()
    code, exception = -1, None
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(diff, "connected", _connected),
        patch.object(extender, "run", _served),
        patch.object(annotator, "run", _annotated),
    ):
        try:
            args = _parser_of(argv[0]).parse_args(argv)
            code = int(args.run(args))
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else -1
        except BaseException as error:  # also RecursionError and MemoryError
            exception = error
    took = time.process_time() - began
    return Outcome(argv, code, out.getvalue(), err.getvalue(), took, exception)


@cache
def _parser_of(command: str) -> argparse.ArgumentParser:
    """The parser of a command; building one takes as long as many commands."""
    return __main__._parser(names.PROGRAM, "", __main__.COMMANDS, [command])


def _served(options: Any) -> int:
    return 0


def _annotated(options: Any) -> int:
    annotator.AnnotatorProgram(options)
    return 0
