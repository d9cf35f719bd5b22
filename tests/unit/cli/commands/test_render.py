"""`render`: the flags of OpenShift's, files on the disk, and clear words when that cannot be."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import assets
from kube_scheduler_operator.cli.commands import render as command


class Bootstrap:
    """Inputs that are all right, and a place for outputs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.out = folder / "out"
        self.config = folder / "new" / "config.yaml"
        self.write("auth/kubeconfig", "clusters: [{name: bootstrap}]\n")
        (folder / "tls").mkdir()

    def write(self, name: str, text: str) -> str:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return str(path)

    def run(self, **flags: str | list[str]) -> int:
        given = {
            "asset-input-dir": str(self.folder / "tls"),
            "asset-output-dir": str(self.out),
            "config-output-file": str(self.config),
            **{name.replace("_", "-"): value for name, value in flags.items()},
        }
        words = [
            f"--{name}={value}"
            for name, values in given.items()
            for value in ([values] if isinstance(values, str) else values)
        ]
        parser = argparse.ArgumentParser()
        command.add_parser(parser.add_subparsers())
        args = parser.parse_args(["render", *words])
        code: int = args.run(args)
        return code

    def written(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.folder)): path.read_text()
            for place in (self.out, self.config.parent)
            for path in place.rglob("*")
            if path.is_file()
        }


@pytest.fixture
def bootstrap(tmp_path: Path) -> Bootstrap:
    return Bootstrap(tmp_path)


def test_what_is_written(bootstrap: Bootstrap, golden: Any, capsys: Any) -> None:
    assert bootstrap.run(manifest_image="registry.example/hyperkube:v1") == 0
    assert capsys.readouterr() == ("", "")
    written = bootstrap.written()
    assert set(written) == {
        "out/bootstrap-manifests/kube-scheduler-pod.yaml",
        "out/manifests/00_openshift-kube-scheduler-ns.yaml",
        "new/config.yaml",
    }
    for name, text in written.items():
        golden(f"render-{Path(name).name}", text)


def test_the_same_inputs_give_the_same_bytes(bootstrap: Bootstrap) -> None:
    assert bootstrap.run() == 0
    before = bootstrap.written()
    assert bootstrap.run() == 0
    assert bootstrap.written() == before


def test_output_is_world_readable_with_any_umask(bootstrap: Bootstrap) -> None:
    before = os.umask(0o077)
    try:
        assert bootstrap.run() == 0
    finally:
        os.umask(before)
    for place in (bootstrap.out, bootstrap.config.parent):
        assert place.stat().st_mode & 0o777 == 0o755
        for path in place.rglob("*"):
            assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o644)


def test_directories_that_are_there_stay_as_they_are(bootstrap: Bootstrap) -> None:
    bootstrap.out.mkdir(mode=0o700)
    bootstrap.out.chmod(0o700)
    assert bootstrap.run() == 0
    assert bootstrap.out.stat().st_mode & 0o777 == 0o700


def test_every_flag_that_callers_of_openshifts_pass_is_taken(bootstrap: Bootstrap) -> None:
    code = bootstrap.run(
        manifest_namespace="openshift-kube-scheduler",
        manifest_image="hyperkube",
        manifest_operator_image="operator",
        manifest_image_pull_policy="Always",
        manifest_config_host_path="/c/",
        manifest_config_file_name="f.yaml",
        manifest_secrets_host_path="/s",
        manifest_cloud_provider_host_path="/cloud",
        config_override_files="",
        rendered_manifest_files="",
        payload_version="5.0.0",
        templates_input_dir=str(assets.directory("templates") / "bootkube"),
    )
    assert code == 0
    pod = yaml.safe_load(bootstrap.written()["out/bootstrap-manifests/kube-scheduler-pod.yaml"])
    paths = [v["hostPath"]["path"] for v in pod["spec"]["volumes"] if "hostPath" in v]
    assert paths == ["/s", "/c/f.yaml"]
    assert pod["spec"]["containers"][0]["imagePullPolicy"] == "Always"


def test_override_files_are_merged_in_the_order_of_the_command_line(bootstrap: Bootstrap) -> None:
    files = [
        bootstrap.write(name, yaml.safe_dump(content))
        for name, content in {
            "z.yaml": {"parallelism": 1, "podInitialBackoffSeconds": 2},
            "m.yaml": {"parallelism": 3},
            "a.yaml": {"parallelism": 5},
        }.items()
    ]
    assert bootstrap.run(config_override_files=[",".join(files[:2]), files[2]]) == 0
    config = yaml.safe_load(bootstrap.config.read_text())
    assert (config["parallelism"], config["podInitialBackoffSeconds"]) == (5, 2)


TEMPLATE = "kind: X\nmetadata:\n  name: a\n  annotations: {release.openshift.io/feature-set: %s}\n"
GATE = "apiVersion: config.openshift.io/v1\nkind: FeatureGate\nmetadata: {name: cluster}\n"


def own_templates(bootstrap: Bootstrap) -> str:
    bootstrap.write("t/bootstrap-manifests/pod.yaml", "kind: {{ image | tojson }}\n")
    bootstrap.write("t/bootstrap-manifests/notes.txt", "{{ not a template")
    bootstrap.write("t/manifests/default.yml", TEMPLATE % "Default")
    bootstrap.write("t/manifests/preview.yaml.j2", TEMPLATE % "TechPreviewNoUpgrade")
    bootstrap.write("t/config/bootstrap-config-overrides.yaml", "parallelism: 2\n")
    return str(bootstrap.folder / "t")


def test_templates_of_a_directory_are_used_instead(bootstrap: Bootstrap) -> None:
    assert bootstrap.run(templates_input_dir=own_templates(bootstrap), manifest_image="i") == 0
    written = bootstrap.written()
    assert written["out/bootstrap-manifests/pod.yaml"] == "kind: i\n"
    assert set(written) == {
        "out/bootstrap-manifests/pod.yaml", "out/manifests/default.yml", "new/config.yaml",
    }  # fmt: skip
    assert yaml.safe_load(written["new/config.yaml"])["parallelism"] == 2


def test_a_feature_gate_somewhere_below_a_directory_decides_which(bootstrap: Bootstrap) -> None:
    bootstrap.write("m/deep/gate.yml", GATE + "spec: {featureSet: TechPreviewNoUpgrade}\n")
    bootstrap.write("m/README", "no manifest: [")
    code = bootstrap.run(
        templates_input_dir=own_templates(bootstrap),
        rendered_manifest_files=str(bootstrap.folder / "m"),
    )
    assert code == 0
    assert "out/manifests/preview.yaml" in bootstrap.written()
    assert "out/manifests/default.yml" not in bootstrap.written()


def test_manifests_that_contradict_each_other(bootstrap: Bootstrap, capsys: Any) -> None:
    listed = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": [yaml.safe_load(GATE)]})
    same = bootstrap.write("same.yaml", listed)
    one = bootstrap.write("1.yaml", GATE)
    other = bootstrap.write("2.json", json.dumps({**yaml.safe_load(GATE), "spec": {}}))
    assert bootstrap.run(rendered_manifest_files=[same, one]) == 0
    assert bootstrap.run(rendered_manifest_files=[one, other]) == 2
    assert capsys.readouterr().err == (
        f"kube-scheduler-operator render: --rendered-manifest-files: {other} and {one} define "
        "FeatureGate cluster differently; keep one of them\n"
    )


@pytest.mark.parametrize(
    ("flags", "output"),
    [
        ({"manifest_image": ""}, "--manifest-image is empty"),
        ({"manifest_namespace": ""}, "--manifest-namespace is empty"),
        ({"asset_output_dir": ""}, "--asset-output-dir is empty"),
        ({"config_output_file": ""}, "--config-output-file is empty"),
        ({"asset_input_dir": ""}, "--asset-input-dir '' must be a directory"),
        ({"asset_input_dir": "/none"}, "--asset-input-dir '/none' must be a directory"),
        ({"manifest_image_pull_policy": "Maybe"}, "use Always, IfNotPresent, Never"),
        ({"manifest_config_host_path": "c"}, "--manifest-config-host-path 'c' must be an absolute"),
        ({"manifest_secrets_host_path": ""}, "--manifest-secrets-host-path '' must be an absolute"),
        ({"manifest_config_file_name": "a/b"}, "--manifest-config-file-name 'a/b' must be a file"),
        ({"manifest_config_file_name": ".."}, "--manifest-config-file-name '..' must be a file"),
        ({"templates_input_dir": "/none"}, "omit it to use the built-in templates"),
        ({"templates_input_dir": "{}/tls"}, "has no config/bootstrap-config-overrides.yaml"),
        ({"config_override_files": "/none"}, "--config-override-files: /none: No such file"),
        ({"config_override_files": "{}/bad"}, "--config-override-files: {}/bad:1:5: expected"),
        ({"config_override_files": "{}/text"}, "contains a str instead of an object"),
        ({"config_override_files": "{}/zero"}, "config.parallelism: "),
        ({"rendered_manifest_files": "/none"}, "--rendered-manifest-files: /none: No such file"),
        ({"rendered_manifest_files": "{}/zero"}, "without apiVersion or kind"),
    ],
    ids=lambda value: "" if isinstance(value, str) else "-".join(value),
)
def test_wrong_inputs_are_named_and_nothing_is_written(
    flags: Any, output: str, bootstrap: Bootstrap, capsys: Any
) -> None:
    bootstrap.write("bad", "a: [")
    bootstrap.write("text", "hello")
    bootstrap.write("zero", "parallelism: 0")
    (bootstrap.folder / "tls" / "config").mkdir()
    flags = {name: value.format(bootstrap.folder) for name, value in flags.items()}
    assert bootstrap.run(**flags) == 2
    shown = capsys.readouterr().err
    assert output.format(bootstrap.folder) in shown
    assert all(line.startswith("kube-scheduler-operator render: ") for line in shown.splitlines())
    assert bootstrap.written() == {}


def test_all_wrong_flags_are_named_at_once(bootstrap: Bootstrap, capsys: Any) -> None:
    assert bootstrap.run(manifest_image="", manifest_config_host_path="c") == 2
    assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize(
    ("content", "output"),
    [
        (None, "No such file"),
        ("a: [", "/kubeconfig:1:5: expected"),
        ("a: b", "has no clusters"),
    ],
)
def test_without_a_kubeconfig_the_bootstrap_scheduler_could_not_start(
    content: str | None, output: str, bootstrap: Bootstrap, capsys: Any
) -> None:
    (bootstrap.folder / "auth" / "kubeconfig").unlink()
    if content is not None:
        bootstrap.write("auth/kubeconfig", content)
    assert bootstrap.run() == 2
    assert output in capsys.readouterr().err
    assert bootstrap.written() == {}


def test_what_cannot_be_written(bootstrap: Bootstrap, capsys: Any) -> None:
    bootstrap.write("out", "a file where a directory belongs")
    assert bootstrap.run() == 1
    assert "--asset-output-dir and --config-output-file must be writable" in capsys.readouterr().err


def test_help_loads_no_template_engine() -> None:
    code = (
        "import sys; from kube_scheduler_operator.__main__ import main\n"
        "try: main(['render', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'jinja2', 'yaml', 'jsonmerge', 'kopf'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
