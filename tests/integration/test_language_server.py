"""The JSON Schemas in yaml-language-server, the server behind most editors' support for YAML."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.__main__ import kubectl_plugin

from .language_server import LanguageServer, language_server

pytestmark = pytest.mark.timeout(300)  # the first time, npm installs the server

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
LINE = "# yaml-language-server: $schema=schemas/kubeschedulerconfiguration-1.35.json\n"
"""The first line that docs/validating.md recommends."""


@pytest.fixture(scope="module")
def editor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LanguageServer, Path]]:
    """A server, and a folder with all schemas in `schemas`."""
    folder = tmp_path_factory.mktemp("editor")
    assert kubectl_plugin(["schema", "--write", str(folder / "schemas")]) == 0
    newest = (folder / "schemas" / "kubeschedulerconfiguration-1.37.json").as_uri()
    with language_server(folder, schemas={newest: ["kube-scheduler-config.yaml"]}) as server:
        yield server, folder


@dataclass(frozen=True)
class Opened:
    """A file that is open in the editor."""

    server: LanguageServer
    uri: str
    lines: list[str]

    def offered(self) -> dict[str, Any]:
        """What is offered at the end of the file."""
        return self.server.completions(self.uri, len(self.lines) - 1, len(self.lines[-1]))

    def diagnostics(self) -> list[dict[str, Any]]:
        return self.server.diagnostics(self.uri)


@pytest.fixture
def opened(
    editor: tuple[LanguageServer, Path], request: pytest.FixtureRequest
) -> Callable[..., Opened]:
    server, folder = editor
    own = folder / request.node.name.replace("[", "-").strip("]")
    own.mkdir()
    (own / "schemas").symlink_to(folder / "schemas")

    def write(text: str, name: str = "config.yaml") -> Opened:
        file = own / name
        file.write_text(text)
        return Opened(server, server.open(file), text.split("\n"))

    return write


@pytest.mark.parametrize(
    ("body", "expected", "not_expected"),
    [
        ("par", "parallelism", "schedulerName"),
        ("profiles:\n- plugins:\n    sc", "score", "placementScore"),
        (
            "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: ",
            "ImageLocality",
            "NodePorts",
        ),
        (
            "profiles:\n- pluginConfig:\n  - name: InterPodAffinity\n    args:\n      h",
            "hardPodAffinityWeight",
            "scoringStrategy",
        ),
    ],
    ids=["field", "extension-point", "plugin", "argument"],
)
def test_an_editor_completes(opened: Any, body: str, expected: str, not_expected: str) -> None:
    offered = opened(LINE + HEAD + body).offered()
    assert expected in offered
    assert not_expected not in offered


def test_completion_shows_the_description_and_the_default(opened: Any) -> None:
    item = opened(f"{LINE}{HEAD}par").offered()["parallelism"]
    assert item["documentation"].startswith("Number of goroutines")
    assert "16" in item["insertText"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("leaderElect: false\n", "leaderElect"),
        ("parallelism: 0\n", "1"),
        ('parallelism: "16"\n', "integer"),
        ("leaderElection: {leaseDuration: 15 seconds}\n", "pattern"),
    ],
    ids=["field", "range", "type", "duration"],
)
def test_an_editor_shows_what_kube_scheduler_would_refuse(
    opened: Any, body: str, message: str
) -> None:
    (diagnostic,) = opened(LINE + HEAD + body).diagnostics()
    assert diagnostic["range"]["start"]["line"] == 3
    assert message in diagnostic["message"]


def test_a_valid_file_with_a_custom_plugin_has_no_diagnostic(opened: Any) -> None:
    body = (
        "profiles:\n- schedulerName: mine\n  plugins: {score: {enabled: [{name: Mine}]}}\n"
        "  pluginConfig: [{name: Mine, args: {anything: 1}}]\n"
    )
    assert opened(LINE + HEAD + body).diagnostics() == []


def test_files_are_matched_by_name_as_in_the_catalogue(opened: Any) -> None:
    file = opened(f"{HEAD}leaderElect: false\n", "kube-scheduler-config.yaml")
    (diagnostic,) = file.diagnostics()
    assert "leaderElect" in diagnostic["message"]


def test_an_object_of_the_operator_is_checked_by_its_own_schema(opened: Any) -> None:
    line = "# yaml-language-server: $schema=schemas/loadpolicy.json\n"
    text = (
        "apiVersion: kube-scheduler-operator.dev/v1alpha1\nkind: LoadPolicy\n"
        "metadata: {name: mine}\nspec: {sorce: {}}\n"
    )
    (diagnostic,) = opened(line + text).diagnostics()
    assert "sorce" in diagnostic["message"]
