"""Worlds from the output of kubectl."""

from __future__ import annotations

import copy
import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.simulate.kinds import NAMES_ITS_NODE, NAMESPACES, NODES, PODS
from kube_scheduler_operator.simulate.read_files import (
    WorldFileError,
    documents,
    read_files,
    without_unused,
)

from ..unreadable import refusing

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "a", "labels": {"zone": "x"}}}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "n", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "containers": [
            {
                "args": ["--x"],
                "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "items:\n- x"}],
                "image": "i",
                "name": "c",
                "resources": {"requests": {"cpu": "1"}},
            }
        ]
    },
}


def _list(*items: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(items), "kind": "List", "metadata": {}, **fields}


def _bare(obj: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


FORMATS: dict[str, str] = {
    "kubectl get -o json": json.dumps(_list(NODE, POD), indent=4),
    "kubectl get -o yaml": yaml.safe_dump(_list(NODE, POD)),
    "compact": json.dumps(_list(NODE, POD)),
    "all lines without indentation": json.dumps(_list(NODE, POD), indent=0),
    "items in lines of their own": "\n".join(
        (
            '{"kind": "List", "apiVersion": "v1", "items": [',
            f"{json.dumps(NODE)},",
            json.dumps(POD, indent=1),
            "]}",
        )
    ),
    "items with an alias": yaml.safe_dump(_list(POD, POD)),
    "one document each": yaml.safe_dump_all([NODE, POD]),
    "documents with comments": f"# nodes\n---\n{yaml.safe_dump(NODE)}---\n{yaml.safe_dump(POD)}",
    "JSON documents": json.dumps(NODE) + "\n" + json.dumps(POD),
    "JSON documents and separators": f"{json.dumps(NODE)}\n---\n---\n{json.dumps(POD)}\n---\n",
    "JSON before YAML": f"{json.dumps(NODE)}\n--- # c\n{yaml.safe_dump(POD)}---\n",
    "JSON after YAML": f"{yaml.safe_dump(NODE)}---\r\n{json.dumps(POD)}\n---",
    "YAML in braces": f"{yaml.safe_dump(NODE, default_flow_style=True)}---\n{json.dumps(POD)}",
    "JSON before YAML in braces": json.dumps(_list(NODE))
    + f"\n---\n---\n# c\n{yaml.safe_dump(POD, default_flow_style=True)}",
    "kubectl get --raw": json.dumps({
        "kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"},
        "items": [_bare(POD)],
    }) + json.dumps(NODE)[:0],
    "a list that names its kind last": json.dumps({
        "apiVersion": "v1", "items": [_bare(POD)], "kind": "PodList",
    }),
    "a YAML list of one kind": yaml.safe_dump({
        "apiVersion": "v1", "kind": "PodList", "items": [_bare(POD) | {"kind": "Pod",
        "apiVersion": "v1"}],
    }),
    "a YAML list whose items have no kind": yaml.safe_dump({
        "apiVersion": "v1", "kind": "PodList", "items": [_bare(POD)],
    }),
    "one list after another": "\n".join(json.dumps({
        "kind": f"{obj['kind']}List", "apiVersion": "v1", "metadata": {}, "items": [_bare(obj)],
    }, indent=indent) for obj, indent in ((NODE, None), (POD, 2))),
    "lists with their kind last": json.dumps(_list(NODE)) + json.dumps(_list(POD), indent=4) + "\n",
}  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_what_kubectl_prints_is_read(name: str, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(FORMATS[name])
    world = read_files([file]).world
    assert list(world.objects[PODS]) == [("n", "p")]
    (pod,) = world.all(PODS)
    assert pod["spec"]["containers"] == [
        {"image": "i", "name": "c", "resources": {"requests": {"cpu": "1"}}}
    ]
    assert pod["metadata"]["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert ("", "n") in world.objects[NAMESPACES]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("name", ["kubectl get -o json", "kubectl get -o yaml"])
def test_what_powershell_writes_is_read(name: str, encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_bytes(FORMATS[name].replace("\n", "\r\n").encode(encoding))
    world = read_files([file]).world
    assert list(world.objects[PODS]) == [("n", "p")]
    assert list(world.objects[NODES]) == [("", "a")]


def test_a_compressed_file_is_recognized(tmp_path: Path) -> None:
    file = tmp_path / "nodes.json.gz"
    file.write_bytes(gzip.compress(json.dumps(NODE).encode()))
    with pytest.raises(WorldFileError, match=r"nodes\.json\.gz: .* gunzip "):
        read_files([file])


@pytest.mark.parametrize(
    ("container", "where"),
    [
        ({"resources": {"requests": {"cpu": "100 m"}}}, "requests.cpu"),
        ({"resources": {"limits": {"memory": "1GB"}}}, "limits.memory"),
        ({"resources": {"requests": {"cpu": "1_000"}}}, "requests.cpu"),
    ],
)
def test_a_request_that_is_not_a_quantity_is_named(
    container: dict[str, Any], where: str, tmp_path: Path
) -> None:
    pod = {**POD, "spec": {"containers": [{"name": "a"}, {"name": "b", **container}]}}
    file = tmp_path / "pod.yaml"
    file.write_text(yaml.safe_dump(pod))
    path = rf"Pod p: spec\.containers\[1\]\.resources\.{where}: "
    with pytest.raises(WorldFileError, match=path):
        read_files([file])


def test_an_allocatable_that_is_not_a_quantity_is_named(tmp_path: Path) -> None:
    file = tmp_path / "node.yaml"
    file.write_text(yaml.safe_dump({**NODE, "status": {"allocatable": {"memory": "lots"}}}))
    with pytest.raises(WorldFileError, match=r"Node a: status\.allocatable\.memory: "):
        read_files([file])


def test_directories_are_read_with_all_that_is_below(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "nodes.json").write_text(json.dumps(NODE))
    (tmp_path / "pods.yml").write_text(yaml.safe_dump(POD))
    (tmp_path / "notes.txt").write_text("{")
    (tmp_path / "health.json").write_text('[{"endpoint": "a", "health": true}]')
    (tmp_path / "rules.json").write_text('{"status": "success"}')
    (tmp_path / "empty.yaml").write_text("")
    world = read_files([tmp_path]).world
    assert len(world.objects[NODES]) == len(world.objects[PODS]) == 1


def test_objects_have_the_order_of_an_api_server_whatever_that_of_the_files_is(
    tmp_path: Path,
) -> None:
    names = ["b", "c", "a"]
    for number, name in enumerate(names):
        of_node = {**NODE, "metadata": {"name": name}}
        of_pod = {**POD, "metadata": {"name": name, "namespace": f"n{number}"}}
        (tmp_path / f"{number}.json").write_text(json.dumps(_list(of_pod, of_node)))
    world = read_files([tmp_path]).world
    assert [name for _, name in world.objects[NODES]] == ["a", "b", "c"]
    assert [*world.objects[PODS]] == [("n0", "b"), ("n1", "c"), ("n2", "a")]


def test_other_kinds_are_counted_and_finished_pods_left_out(tmp_path: Path) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "b"}}
    done = {**POD, "status": {"phase": "Succeeded"}}
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file = tmp_path / "all.yaml"
    file.write_text(yaml.safe_dump_all([secret, done, config]))
    found = read_files([file])
    assert found.ignored == {"Secret": 1, "Pod": 1}
    assert found.configurations == [(str(file), config)]
    assert not found.world.objects[PODS]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "the file is cut off"),
        ('{"apiVersion": "v1", "items": [{"kind": "Pod", "apiVersion": "x/v1"}', "is cut off"),
        ('{"apiVersion": "v1", "items": [{"kind": "Po', "the file is cut off"),
        ("a: [", "the file is cut off"),
        ("a: [\nb: 1\nc: 2\n", "this is neither JSON nor YAML"),
        ("kind: Pod\nmetadata: {name: p}", "Pod p has no apiVersion"),
        ("NAME READY STATUS\np 0/1 Pending", "kubectl get -o yaml"),
        ("- 1\n- 2", "not an object"),
        ("x: 1", "not an object"),
        ("apiVersion: v1\nkind: Pod\nmetadata: {}", "no metadata.name"),
        ("apiVersion: v1\nkind: Pod\nmetadata: []", "neither JSON"),
        ("[" * 5000 + "\n", "values are nested in more than 1000 levels"),
    ],
)
def test_a_damaged_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "file.yaml"
    file.write_text(text)
    if message == "neither JSON":
        message = "no metadata.name"
    with pytest.raises(WorldFileError, match=message) as error:
        read_files([file])
    assert str(file) in str(error.value)


def test_a_directory_that_cannot_be_read_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "dump" / "nodes"
    inside.mkdir(parents=True)
    (tmp_path / "dump" / "pods.json").write_text(json.dumps(POD))
    monkeypatch.setattr(os, "scandir", refusing(str(inside)))
    with pytest.raises(WorldFileError, match=r"dump/nodes: Permission denied"):
        read_files([tmp_path / "dump"])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(WorldFileError, match=r"nothing\.yaml: No such file"):
        read_files([tmp_path / "nothing.yaml"])


def test_values_that_no_world_has_are_not_parsed() -> None:
    text = yaml.safe_dump(_list(NODE, POD, copy.deepcopy(POD)))
    short = without_unused(text)
    assert "value: '1'" not in short
    assert "--x" not in short
    for before, after in zip(documents(text), yaml.safe_load(short)["items"], strict=True):
        for obj in (before, after):
            for container in obj.get("spec", {}).get("containers", ()):
                container.pop("env", None)
                container.pop("args", None)
        assert before == after


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
@pytest.mark.parametrize(
    ("fields", "kept"),
    [
        ({"f:spec": {"f:nodeName": {}}}, NAMES_ITS_NODE),
        ({"f:metadata": {"f:labels": {"f:nodeName": {}}}}, None),
        ({"f:spec": {}}, None),
    ],
)
def test_files_with_managed_fields_show_who_chose_the_node(
    write: Callable[[Any], str], fields: dict[str, Any], kept: Any, tmp_path: Path
) -> None:
    pod = copy.deepcopy(POD)
    pod["metadata"]["managedFields"] = [
        {"manager": "kubelet", "fieldsV1": {"f:status": {"f:phase": {}}}},
        {"manager": "x", "fieldsV1": fields},
    ]
    file = tmp_path / "file"
    file.write_text(write(_list(NODE, pod)))
    (read,) = read_files([file]).world.all(PODS)
    assert read["metadata"].get("managedFields") == kept
    assert read["spec"]["containers"]


def _bomb(first: str, levels: int = 9) -> str:
    """A Pod whose affinity has levels of nine aliases each."""
    lines = [f"  a0: &a0 {first}"]
    for level in range(1, levels + 1):
        lines.append(f"  a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 9)}]")
    return "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n" + "\n".join(lines) + "\n"


_MERGED = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  a0: &a0 {k: v}\n" + "".join(
    f"  a{level}: &a{level} {{<<: [{', '.join([f'*a{level - 1}'] * 9)}]}}\n"
    for level in range(1, 10)
)
REPEATED: dict[str, tuple[str, str]] = {
    "aliases": (_bomb("[x]"), "aliases repeat more than 64 MiB"),
    "a long text": (_bomb("x" * 500_000, 3), "aliases repeat more than 64 MiB"),
    "merged maps": (_MERGED, "aliases repeat more than 64 MiB"),
    "many documents": ("---\n".join([_bomb("x" * 300_000, 2)] * 9), "aliases repeat more"),
    "itself": ("a: &a [*a]\n", "an anchor contains itself"),
    "brackets": (f"a: {'[' * 1200}{']' * 1200}\n", "values are nested in more than 1000 levels"),
    "dashes": (f"{'- ' * 1200}x\n", "values are nested in more than 1000 levels"),
    "questions": (f"{'? ' * 1200}x\n", "values are nested in more than 1000 levels"),
}


@pytest.mark.parametrize(("text", "message"), REPEATED.values(), ids=REPEATED)
def test_what_is_larger_than_its_text_is_refused(text: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "world.yaml"
    file.write_text(text)
    with pytest.raises(WorldFileError) as error:
        read_files([file])
    assert str(error.value).startswith(f"{file}: {message}")


def test_many_files_may_not_repeat_more_than_one(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"{number}.yaml").write_text(_bomb("x" * 300_000, 2))
    read_files([tmp_path / "0.yaml"])
    with pytest.raises(WorldFileError, match="aliases repeat more than 64 MiB"):
        read_files([tmp_path])


def test_ordinary_aliases_are_read(tmp_path: Path) -> None:
    file = tmp_path / "world.yaml"
    pods = [{**POD, "metadata": {**POD["metadata"], "name": f"p{at}"}} for at in range(500)]
    file.write_text(yaml.safe_dump(_list(*pods)))
    assert "&" in file.read_text()
    assert len(read_files([file]).world.objects[PODS]) == 500


@pytest.mark.parametrize("options", ["", "      bindMountOptions: [noexec]\n"])
def test_mounts_are_read_only_for_their_options(options: str, tmp_path: Path) -> None:
    text = (
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\nspec:\n  containers:\n  - name: c\n"
        f"    volumeMounts:\n    - name: v\n      mountPath: /secret\n{options}"
    )
    path = tmp_path / "pod.yaml"
    path.write_text(text)
    pod = read_files([path]).world.get(PODS, "p", "default")
    assert pod is not None
    (container,) = pod["spec"]["containers"]
    mounts = [{"name": "v", "bindMountOptions": ["noexec"]}] if options else None
    assert container.get("volumeMounts") == mounts


@pytest.mark.parametrize("inside", [False, True], ids=["a file", "a ConfigMap"])
def test_a_configuration_keeps_the_arguments_of_its_plugins(inside: bool, tmp_path: Path) -> None:
    strategy = {"scoringStrategy": {"type": "MostAllocated"}}
    profile = {"pluginConfig": [{"name": "NodeResourcesFit", "args": strategy}]}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    data = {"config.yaml": yaml.safe_dump(config)}
    metadata = {"name": "c", "namespace": "n"}
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
    text = yaml.safe_dump(config_map, default_style="|") if inside else yaml.safe_dump(config)
    file = tmp_path / "config.yaml"
    file.write_text(text)
    found = read_files([file])
    read = found.mounted["n", "c"] if inside else found.configurations[0][1]
    assert read["profiles"] == [profile]


def test_schedulers_of_files_are_kept_with_their_names_and_configurations(tmp_path: Path) -> None:
    """Arguments are left out of YAML, but those that name who is served."""
    config = "kind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: batch}]\n"
    broken = "kind: KubeSchedulerConfiguration\nprofiles: [1]\n"
    named = copy.deepcopy(POD)
    named["spec"]["containers"][0]["args"] = ["--x", "--scheduler-name=mine"]
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"},
         "data": {"config.yaml": text}}
        for name, text in (("good", config), ("broken", broken))
    ]  # fmt: skip
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all([NODE, named, *maps]))
    found = read_files([file])
    (scheduler,) = found.world.schedulers
    assert "mine" in scheduler.names
    assert list(found.mounted) == [("n", "good")]
