"""The JSON Schemas in yaml-language-server, the server behind most editors' support for YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin

from .language_server import language_server

pytestmark = pytest.mark.timeout(300)  # the first time, npm installs the server

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
LINE = "# yaml-language-server: $schema=schemas/kubeschedulerconfiguration-1.35.json\n"
"""The first line that docs/validating.md recommends."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    assert kubectl_plugin(["schema", "--write", str(tmp_path / "schemas")]) == 0
    return tmp_path


def written(folder: Path, text: str, name: str = "config.yaml") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_an_editor_completes_fields_plugins_and_arguments(folder: Path) -> None:
    lines = [
        LINE.strip(), *HEAD.splitlines(),
        "par",
        "profiles:",
        "- plugins:",
        "    score:",
        "      enabled:",
        "      - name: ",
        "  pluginConfig:",
        "  - name: InterPodAffinity",
        "    args:",
        "      h",
    ]  # fmt: skip
    file = written(folder, "\n".join(lines) + "\n")
    with language_server(folder) as server:
        uri = server.open(file)
        fields = server.completions(uri, 3, 3)
        plugins = server.completions(uri, 8, len(lines[8]))
        arguments = server.completions(uri, 12, len(lines[12]))
    assert "parallelism" in fields
    assert "Number of goroutines" in str(fields["parallelism"])
    assert "16" in fields["parallelism"]["insertText"]  # the default
    assert {"ImageLocality", "NodeResourcesFit"} <= set(plugins)
    assert "NodePorts" not in plugins  # it does not score
    assert "hardPodAffinityWeight" in arguments


@pytest.mark.parametrize(
    ("body", "line", "message"),
    [
        ("leaderElect: false\n", 3, "leaderElect"),
        ("parallelism: 0\n", 3, "1"),
        ('parallelism: "16"\n', 3, "integer"),
        ("leaderElection: {leaseDuration: 15 seconds}\n", 3, "pattern"),
    ],
)
def test_an_editor_shows_what_kube_scheduler_would_refuse(
    folder: Path, body: str, line: int, message: str
) -> None:
    file = written(folder, LINE + HEAD + body)
    with language_server(folder) as server:
        (diagnostic,) = server.diagnostics(server.open(file))
    assert diagnostic["range"]["start"]["line"] == line
    assert message in diagnostic["message"]


def test_a_valid_file_with_a_custom_plugin_has_no_diagnostic(folder: Path) -> None:
    body = (
        "profiles:\n- schedulerName: mine\n  plugins: {score: {enabled: [{name: Mine}]}}\n"
        "  pluginConfig: [{name: Mine, args: {anything: 1}}]\n"
    )
    file = written(folder, LINE + HEAD + body)
    with language_server(folder) as server:
        assert server.diagnostics(server.open(file)) == []


def test_files_are_matched_by_name_as_in_the_catalogue(folder: Path) -> None:
    file = written(folder, f"{HEAD}leaderElect: false\n", "kube-scheduler-config.yaml")
    schema = (folder / "schemas" / "kubeschedulerconfiguration-1.37.json").as_uri()
    with language_server(folder, schemas={schema: ["kube-scheduler-config.yaml"]}) as server:
        (diagnostic,) = server.diagnostics(server.open(file))
    assert "leaderElect" in diagnostic["message"]


def test_an_object_of_the_operator_is_checked_by_its_own_schema(folder: Path) -> None:
    line = "# yaml-language-server: $schema=schemas/loadpolicy.json\n"
    text = (
        "apiVersion: kube-scheduler-operator.dev/v1alpha1\nkind: LoadPolicy\n"
        "metadata: {name: mine}\nspec: {sorce: {}}\n"
    )
    with language_server(folder) as server:
        (diagnostic,) = server.diagnostics(server.open(written(folder, line + text)))
    assert "sorce" in diagnostic["message"]
