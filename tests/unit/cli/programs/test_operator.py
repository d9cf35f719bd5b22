"""What the flags of `kube-scheduler-operator operator` lead to before anything is started."""

from __future__ import annotations

import json
import logging

import pytest

from kube_scheduler_operator.__main__ import main
from kube_scheduler_operator.cli.programs.operator import _namespaces


@pytest.mark.parametrize("form", ["text", "json", None])
def test_logs_have_the_selected_format(
    form: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", root.level)
    flags = [f"--logging-format={form}"] if form else []
    assert main(["operator", "--platform=none", *flags]) == 2, "it ends before it starts"
    capsys.readouterr()
    (handler,) = root.handlers
    record = root.makeRecord("x", logging.INFO, "file.py", 1, "Did it", (), None)
    line = handler.format(record)
    if form == "json":
        assert json.loads(line)["msg"] == "Did it"
    else:
        assert line.startswith("I")
        assert line.endswith('file.py:1] "Did it"')


@pytest.mark.parametrize(
    ("text", "namespaces"),
    [("", None), ("-", ()), ("a", ("a",)), ("a, b,a,", ("a", "b")), (",", None)],
)
def test_secondary_namespaces(text: str, namespaces: tuple[str, ...] | None) -> None:
    assert _namespaces(text) == namespaces


@pytest.mark.parametrize("repository", ["mirror.example:5000/x:v1", "mirror.example/x@sha256:00"])
def test_a_mirror_is_a_repository_without_a_tag(
    repository: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["operator", "--platform=kubeadm", f"--operand-repository={repository}"]) == 2
    assert "has a tag or digest; remove it" in capsys.readouterr().err
