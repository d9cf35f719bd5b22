"""Every command, in every format, prints visible characters and no line of a stranger.

The world is hostile: an API server that stores what Kubernetes stores, an API server that refuses
everything with such a message, and files as a pull request may have them.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import itertools
import json
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from kube_scheduler_operator import __main__ as program
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.foreign_text import one_line
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.cli.commands import uninstall
from kube_scheduler_operator.cli.commands.completion import Completions
from kube_scheduler_operator.cli.console.output import format_table, print_now
from kube_scheduler_operator.cli.console.parser import CommandParser
from kube_scheduler_operator.cli.console.visible_stream import VisibleStream
from kube_scheduler_operator.cli.rollout import follow_rollout
from kube_scheduler_operator.kube.resource import (
    CLUSTER_OPERATORS,
    CONFIG_MAPS,
    CUSTOM_RESOURCE_DEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    LOAD_POLICIES,
    NAMESPACES,
    NODES,
    OPERATOR_SETTINGS,
    PODS,
    SCHEDULER_EXTENDERS,
    SCHEDULER_PROFILES,
    SCHEDULERS,
    SECONDARY_SCHEDULERS,
)

from ... import builders
from ...customised import customised
from ...hostile import FORGED, HOSTILE, STORED, TEXTS, expect_harmless, poisoned
from .conftest import Cluster, content, objects, scheduler_pod

MIRROR_POD = Path(__file__).parents[1] / "operator/controlplane/adoption/kubeadm-mirror-pod.json"
KUBE_SCHEDULER = "--kube-scheduler"
UPGRADE = "--upgrade"
FROM = ("--kubernetes-version", "1.34")
IDENTITY = (
    "apiVersion", "kind", "name", "namespace", "uid", "creationTimestamp", "nodeName", "labels",
    "type", "status", "resourceVersion", "startedAt", "lastTransitionTime", "observedGeneration",
)  # fmt: skip
"""What the API server validates, or what makes an object be what it is."""


# --- the commands ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """How a command is run."""

    # arguments with a hostile cluster; None: it reads no cluster
    cluster: tuple[str, ...] | None = None
    # arguments with hostile files, `FILES/NAME` for one of them; None: it reads none
    files: tuple[str, ...] | None = None


ROWS = {
    "check": Row((), (UPGRADE, "1.35", "--from-files", "FILES/world.json", *FROM)),
    "status": Row(("--verbose",)),
    "console": Row(("--port", "65536")),  # it would not end; tests/unit/cli/web has its pages
    "report": Row(()),
    "history": Row(()),
    "diff": Row(("1", "2")),
    "plugins": Row((), ("-f", "FILES/mild.yaml", "--custom-image")),
    "why": Row(("-n", "default", "lonely"), ("--from-files", "FILES/world.json", "waiting")),
    "pending": Row((), ("--from-files", "FILES/world.json")),
    "nodes": Row((), ("--from-files", "FILES/world.json")),
    "simulate": Row(
        ("-f", "FILES/workload.yaml", "--repeat", "1"),
        ("--from-files", "FILES/world.json", "-f", "FILES/workload.yaml", "--repeat", "1"),
    ),
    "rollout watch": Row(("--timeout", "2")),
    "rollout status": Row(("--timeout", "2")),
    "rollout undo": Row(("--dry-run",)),
    "rollout approve": Row(("--dry-run",)),
    "pprof": Row(("heap", "-o", "FILES/heap")),
    "dump-cache": Row(()),
    "must-gather": Row(("--dest", "FILES/must-gather")),
    "compose": Row(None, ("-f", "FILES/objects.yaml")),
    "validate": Row(None, ("FILES",)),
    "schema": Row(None, (f"Kube{FORGED[0]}\n{FORGED[1]}",)),
    "convert": Row(None, ("-f", "FILES/convert")),
    "adopt": Row(("--dry-run",), ("--dry-run", "--platform", "kubeadm", "-f", "FILES/adopt")),
    "version": Row(()),
    "completion": Row(None, ("bash",)),
    "render": Row(None, (
        "--asset-input-dir", "FILES/tls", "--asset-output-dir", "FILES/out", "--manifest-image",
        "i:v1", "--config-output-file", "FILES/out/c",
        "--rendered-manifest-files", "FILES/render",
    )),
    "uninstall": Row(("--timeout", "0.3")),
}  # fmt: skip
"""By the words of the command; the programs of Pods print log lines only (see test_klog)."""

OWN_LINES = {("status", "text"), ("history", "text"), ("rollout watch", ""), ("rollout status", "")}
"""What has lines of the operator's own messages."""

QUOTED = "forged"
"""A part of the texts that shows whether a command has met them."""

UNQUOTED = {"completion", "console", "adopt", "must-gather", "uninstall"}
"""What meets none of the cluster, or only in files that it writes; refusals have such texts."""


def leaves(parser: Any, words: tuple[str, ...]) -> Iterator[tuple[str, CommandParser]]:
    below = parser.subcommands()
    if not below:
        yield " ".join(words), parser
    for name, one in below.items():
        yield from leaves(one, (*words, name))


def commands() -> dict[str, CommandParser]:
    """Every command that is not a program of Pods, with its parser."""
    found: dict[str, CommandParser] = {}
    for command in program.COMMANDS:
        if not command.program:
            parser = program._parser("p", "", program.COMMANDS, [command.name])
            found |= leaves(parser.subcommands()[command.name], (command.name,))
    return found


PARSERS = commands()


def formats(command: str) -> tuple[str, ...]:
    options = PARSERS[command].options()
    action: argparse.Action | None = options.get("-o") or options.get("--output")
    return tuple(action.choices or ()) if action is not None else ()


def cases(kind: str) -> list[Any]:
    return [
        pytest.param(command, form, id=f"{command} {form}".strip())
        for command, row in ROWS.items()
        if getattr(row, kind) is not None and command in PARSERS
        for form in formats(command) or ("",)
    ]


def test_every_command_has_a_row() -> None:
    assert set(ROWS) == set(PARSERS)
    assert all(row.cluster is not None or row.files is not None for row in ROWS.values())


# --- what is printed ------------------------------------------------------------------------------


def expect_document(form: str, text: str) -> None:
    """A format that programs read is still one."""
    if not text.strip():
        return
    if form in ("json", "sarif", "gitlab"):
        json.loads(text)
    elif form == "yaml":
        list(yaml.safe_load_all(text))
    elif form == "junit":
        ET.fromstring(text)
    elif form == "github":
        assert all(line.startswith(("::error ", "::warning ")) for line in text.splitlines())


def run(
    command: str,
    form: str,
    arguments: tuple[str, ...],
    files: Path,
    capsys: pytest.CaptureFixture[str],
) -> tuple[int, str, str]:
    words = [word.replace("FILES", str(files)) for word in arguments]
    output = ["-o", form] if form else []
    if KUBE_SCHEDULER in PARSERS[command].options() and (command != "check" or UPGRADE in words):
        words += [KUBE_SCHEDULER, str(files.parent / "kube-scheduler")]
    own = command.split()[0] in {one.name for one in program.PLUGIN_COMMANDS}
    entry = program.kubectl_plugin if own else program.main
    try:
        code = entry([*command.split(), *words, *output])
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    # In YAML, an indented line continues a text; status and history indent the lines of the
    # operator's own messages.
    indented = form != "yaml" and (command, form) not in OWN_LINES
    expect_harmless(printed.out, indented=indented)
    expect_harmless(printed.err)
    expect_document(form, printed.out)
    return code, printed.out, printed.err


def stored(text: str) -> str:
    """JSON as the API server has it: without halves of surrogate pairs."""
    return text.replace("\\ud800", "\\ufffd")


# --- files ----------------------------------------------------------------------------------------


def waiting(name: str, **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "image": HOSTILE, "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "annotations": {"a": HOSTILE, HOSTILE: "b"},
            "creationTimestamp": "2026-01-01T00:00:00Z",
        },
        "spec": {"containers": [container], **spec},
        "status": {"phase": "Pending"},
    }


def world() -> dict[str, Any]:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "a", "uid": "a", "labels": {"kubernetes.io/hostname": "a"}},
        "spec": {"taints": [{"key": "own", "value": HOSTILE, "effect": "PreferNoSchedule"}]},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}},
    }
    pods = [waiting(f"waiting-{at}", schedulerName=text) for at, text in enumerate(TEXTS.values())]
    pods.append(waiting("waiting", schedulerName=HOSTILE))
    pods.append(waiting("gated", schedulingGates=[{"name": HOSTILE}]))
    failed = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "w"},
        "spec": {"replicas": 2, "template": {"spec": {}}},
        "status": {
            "conditions": [{"type": "ReplicaFailure", "status": "True", "message": HOSTILE}]
        },
    }
    return {"apiVersion": "v1", "kind": "List", "items": [node, *pods, failed]}


def configuration(**fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        **fields,
    }


HOSTILE_PROFILE = {
    "schedulerName": "a" + HOSTILE,
    "plugins": {"score": {"enabled": [{"name": "Own" + HOSTILE, "weight": 2}]}},
    "pluginConfig": [{"name": "Own" + HOSTILE, "args": {HOSTILE: HOSTILE}}],
}
STUB = f"""#!{sys.executable}
import sys
if "--version" in sys.argv:
    print("Kubernetes v1.35.4")
else:
    sys.stderr.buffer.write({("E0101 " + HOSTILE).encode("utf-8", "surrogatepass")!r} + b"\\n")
    sys.exit(1)
"""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files of a stranger, and a kube-scheduler that logs his texts and ends."""
    stub = tmp_path / "kube-scheduler"
    stub.write_text(STUB)
    stub.chmod(0o755)
    folder = tmp_path / "files"
    for name in ("", "convert", "adopt", "render", "tls", "auth"):
        (folder / name).mkdir()
    (folder / "auth" / "kubeconfig").write_text("clusters: [{name: bootstrap}]\n")
    (folder / "world.json").write_text(stored(json.dumps(world())))
    config = json.dumps(configuration(profiles=[HOSTILE_PROFILE], **{HOSTILE: 1}))
    (folder / "config.yaml").write_text(config)
    mild = json.loads(
        re.sub("[\x7f-\x84\x86-\x9f]", "", json.dumps(json.loads(config), ensure_ascii=False))
    )
    (folder / "mild.yaml").write_text(stored(json.dumps(mild)))
    (folder / "workload.yaml").write_text(json.dumps(waiting("new", schedulerName=HOSTILE)))
    (folder / "broken.yaml").write_bytes(b"a: [\x1b]0;\x07\nerror: forged\n")
    (folder / f"x{FORGED[0]}\n{FORGED[0]}\u202e.yaml").write_text(config)
    (folder / "render" / f"x\n{FORGED[0]}\u202e.yaml").write_text("a: [")
    own = [
        builders.profile("first", schedulerName=HOSTILE, plugins=HOSTILE_PROFILE["plugins"]),
        builders.kubescheduler(unsupportedConfigOverrides={"profiles": [HOSTILE_PROFILE]}),
    ]
    listed = {"apiVersion": "v1", "kind": "List", "items": own}
    (folder / "objects.yaml").write_text(stored(json.dumps(listed)))
    wrapped = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "m" + HOSTILE},
        "data": {"k" + HOSTILE: json.dumps(configuration(apiVersion=HOSTILE)), "config": config},
    }
    (folder / "convert" / "map.yaml").write_text(json.dumps(wrapped))
    (folder / "convert" / "old.yaml").write_text(
        json.dumps(configuration(apiVersion="kubescheduler.config.k8s.io/v1beta3", **{HOSTILE: 1}))
    )
    manifest = customised(json.loads(MIRROR_POD.read_text()))
    del manifest["spec"]["nodeName"]
    container = manifest["spec"]["containers"][0]
    container["command"].append(f"--vmodule={HOSTILE}")
    container["env"] = [{"name": "A", "value": HOSTILE}, {"name": HOSTILE, "value": "b"}]
    (folder / "adopt" / "kube-scheduler.yaml").write_text(json.dumps(manifest))
    return folder


@pytest.mark.parametrize(("command", "form"), cases("files"))
def test_files_of_strangers(
    command: str, form: str, files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ROWS[command].files
    assert arguments is not None
    _code, out, err = run(command, form, arguments, files, capsys)
    assert (QUOTED in out + err) == (command != "completion"), out + err


# --- clusters -------------------------------------------------------------------------------------


def hostile(obj: Any, *kept: str) -> Any:
    """The object as the API server stores it: without halves of surrogate pairs."""
    return json.loads(stored(json.dumps(poisoned(obj, *IDENTITY, *kept))))


@pytest.fixture
def hostile_cluster(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """Every field that Kubernetes does not validate has the texts of a stranger."""
    monkeypatch.setattr(uninstall, "INTERVAL", 0.05)
    monkeypatch.setattr(follow_rollout, "INTERVAL", 0.05)

    async def version(_: web.Request) -> web.StreamResponse:
        return web.json_response({"gitVersion": "v1.35.4"})

    cluster.api.routes["/version"] = version
    cluster.api.served |= {
        CUSTOM_RESOURCE_DEFINITIONS, DEPLOYMENTS, EVENTS, LEASES, LOAD_POLICIES, NAMESPACES, NODES,
        OPERATOR_SETTINGS, SCHEDULER_EXTENDERS, SCHEDULER_PROFILES, SECONDARY_SCHEDULERS,
    }  # fmt: skip
    bad = [
        {"type": type_, "status": "True", "reason": "R", "message": "m"}
        for type_ in ("Available", "Degraded", "Progressing", "Upgradeable", "Accepted",
                      names.NODE_INSTALLER_DEGRADED, names.NODE_INSTALLER_PROGRESSING,
                      names.WARNINGS)
    ]  # fmt: skip
    for number, made in enumerate((content(), content("HighNodeUtilization")), start=1):
        for obj in objects(number, made, message="m", reason="r").values():
            if obj["metadata"]["name"].startswith("revision-status"):
                notes = hostile(obj["metadata"]["annotations"], names.REVISION_READY_ANNOTATION,
                                names.OUTCOME_ANNOTATION)  # fmt: skip
                obj["metadata"]["annotations"] = notes
                obj["data"]["reason"] += STORED
            if number == 2 and obj["metadata"]["name"] == "config-2":
                name = json.dumps(f"a{STORED}")[1:-1]
                obj["data"] = {
                    key: text.replace("default-scheduler", name)
                    for key, text in obj["data"].items()
                }
            cluster.put(CONFIG_MAPS, obj)
    cluster.kubescheduler({"a": 2}, status={"conditions": hostile(bad)})
    cluster.put(SCHEDULERS, {"metadata": {"name": "cluster"}, "spec": {"profile": ""}})
    reported = hostile({"conditions": bad, "versions": [{"name": "operator", "version": "v1"}]})
    operator = {"metadata": {"name": names.CLUSTEROPERATOR}, "status": reported}
    cluster.put(CLUSTER_OPERATORS, operator)
    lease = {"name": KUBEADM.operand_lease_name, "namespace": KUBEADM.operand_lease_namespace}
    cluster.put(LEASES, {"metadata": lease, "spec": {"holderIdentity": f"a_{STORED}"}})
    ended = {"terminated": {"exitCode": 1, "message": "first", "reason": "Error"}}
    status = {"name": names.OPERAND, "restartCount": 2, "imageID": "i", "lastState": ended,
              "state": {"waiting": {"reason": "CrashLoop", "message": "m"}}}  # fmt: skip
    pod = scheduler_pod("a", 2)
    pod["status"]["containerStatuses"] = [hostile(status)]
    pod["spec"]["containers"][0] |= hostile({"image": "i:v1.35.4", "args": ["--v=2"]})
    pod["metadata"]["annotations"] = hostile(pod["metadata"]["annotations"])
    cluster.put(PODS, pod)
    for other in world()["items"][1:-1]:
        cluster.put(PODS, json.loads(stored(json.dumps(other))))
    cluster.put(PODS, hostile(waiting("lonely", schedulerName="none")))
    node = json.loads(stored(json.dumps(world()["items"][0])))
    node["status"]["conditions"] = [{"type": "Ready", "status": "False", "message": STORED}]
    cluster.put(NODES, node)
    accepted = {"conditions": bad, "image": "i:v1.35.4", "endpoint": "e"}
    for resource, own in (
        (SCHEDULER_PROFILES, builders.profile("p")),
        (SCHEDULER_EXTENDERS, builders.extender("e")),
        (SECONDARY_SCHEDULERS, builders.secondary("s")),
        (LOAD_POLICIES, builders.load_policy()),
    ):
        cluster.put(resource, {**own, "status": hostile(accepted)})
    event = {"metadata": {"name": "e", "namespace": "default"}, "reason": "r", "message": "m",
             "reportingComponent": "c", "involvedObject": {"kind": "Pod"}}  # fmt: skip
    cluster.put(EVENTS, hostile(event))
    held = {"configuration": "c", "result": "Worse", "state": "Held", "effect": STORED}
    cluster.put(OPERATOR_SETTINGS, {
        "metadata": {"name": "cluster"}, "spec": {"placementCheck": {"mode": "Gate"}},
        "status": {"placementCheck": held, "conditions": hostile(bad)},
    })  # fmt: skip
    for name in ("kube-system", KUBEADM.operator_namespace, "default"):
        cluster.put(NAMESPACES, {"metadata": {"name": name}})
    return cluster


async def run_in(cluster: Cluster, command: str, form: str, files: Path) -> tuple[int, str, str]:
    arguments = ROWS[command].cluster
    assert arguments is not None
    given = (*arguments, "--kubeconfig", str(cluster.kubeconfig), "--platform", "kubeadm")
    return await asyncio.to_thread(run, command, form, given, files, cluster.capsys)


@pytest.mark.parametrize(("command", "form"), cases("cluster"))
async def test_a_cluster_of_strangers(
    command: str, form: str, hostile_cluster: Cluster, files: Path
) -> None:
    _code, out, err = await run_in(hostile_cluster, command, form, files)
    assert (QUOTED in out + err) == (command not in UNQUOTED), out + err


@pytest.mark.parametrize(("command", "form"), cases("cluster"))
async def test_refusals_with_the_text_of_a_webhook(
    command: str, form: str, hostile_cluster: Cluster, files: Path
) -> None:
    hostile_cluster.api.fail(403, times=None, reason=f"R{STORED}", message=f"denied: {STORED}")
    code, out, err = await run_in(hostile_cluster, command, form, files)
    assert code != 0
    assert one_line(STORED)[:20] in (out + err).replace("\\\\", "\\") or "permission" in err


# --- the last defence -----------------------------------------------------------------------------


def test_streams_write_out_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    assert program.main(["validate", f"missing{HOSTILE}.yaml"]) == 2
    assert isinstance(sys.stdout, VisibleStream)
    assert isinstance(sys.stderr, VisibleStream)
    print("\x1b[31m\tä", file=sys.stdout)
    sys.stderr.writelines(["\u202e\n", "\r"])
    printed = capsys.readouterr()
    assert printed.out == "\\u001b[31m\\tä\n"
    assert printed.err.endswith("\\u202e\n\\r")


def test_python_does_not_colour_a_guarded_stream() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

        def fileno(self) -> int:
            return 1

    stream = VisibleStream(Terminal())
    assert not stream.isatty()
    with pytest.raises(io.UnsupportedOperation):
        stream.fileno()


def test_a_choice_of_a_completion_is_one_line() -> None:
    lines = Completions(((f"x{HOSTILE}", f"y{HOSTILE}"),)).lines()
    expect_harmless("\n".join(lines).replace("\t", " "))
    assert [line.count("\t") for line in lines] == [1, 0]


def test_a_second_command_of_a_process_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert program.main(["completion", "bash"]) == 0
    assert not isinstance(getattr(sys.stdout, "stream", None), VisibleStream)


def test_a_row_of_a_table_is_one_line() -> None:
    rows = format_table([("A", "B"), (f"x\n{FORGED[2]}", "y")])
    assert len({line.index(cell) for line, cell in zip(rows, ("B", "y"), strict=True)}) == 1
    expect_harmless("\n".join(rows))


def test_lines_of_a_message_stay_below_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    print_now("first\nsecond")
    first, second = capsys.readouterr().out.splitlines()
    assert second == " " * first.index("first") + "second"


def test_formats_of_all_commands_are_covered() -> None:
    run_with = {(case.values[0], case.values[1]) for kind in ("cluster", "files")
                for case in cases(kind)}  # fmt: skip
    every = itertools.chain.from_iterable(
        ((command, form) for form in formats(command) or ("",)) for command in PARSERS
    )
    assert run_with == set(every)
