"""The choice of a Kubernetes version, and the errors for unavailable ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cluster import binaries, cli, lifecycle, releases
from cluster.console import SandboxError
from cluster.model import Sandbox

SPAN = r"Kubernetes 1\.34 to 1\.37"


@pytest.fixture(autouse=True)
def _nothing_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(releases.VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        (None, releases.DEFAULT),
        ("", releases.DEFAULT),
        ("1.34", releases.PINNED[34]),
        ("v1.36", releases.PINNED[36]),
        ("1.35", releases.DEFAULT),
        ("1.34.2", "v1.34.2"),
        ("v1.36.0", "v1.36.0"),
        (releases.PINNED[34], releases.PINNED[34]),
    ],
)
def test_a_minor_version_is_its_pinned_release_and_a_patch_is_itself(
    asked: str | None, meant: str
) -> None:
    assert releases.choose(asked) == meant


def test_the_environment_variable_is_the_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(releases.VARIABLE, "1.36")
    assert releases.choose() == releases.PINNED[36]
    assert releases.choose("1.34") == releases.PINNED[34]


@pytest.mark.parametrize("asked", ["1.33", "v1.33.9", "1.99.0", "1.0"])
def test_the_error_for_an_unsupported_version_lists_the_supported_ones(asked: str) -> None:
    expected = rf"'{re.escape(asked)}' cannot run here: .* {SPAN}.*1\.34, 1\.35, 1"
    with pytest.raises(SandboxError, match=expected):
        releases.choose(asked)


@pytest.mark.parametrize(
    "asked", ["newest", "2.0", "1", "1.", "v1.35.", "1.35.4-rc.1", "1.035", "1.35.04", "1.35/../x"]
)
def test_text_that_is_not_a_version_is_rejected(asked: str) -> None:
    with pytest.raises(SandboxError, match=rf"is not a Kubernetes version: .* {SPAN}"):
        releases.choose(asked)


def test_the_error_names_the_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(releases.VARIABLE, "1.12")
    with pytest.raises(SandboxError, match=rf"\(from \${releases.VARIABLE}\) cannot run here"):
        releases.choose()


def test_the_table_is_in_order() -> None:
    assert releases.PINNED[releases.minor(releases.DEFAULT)] == releases.DEFAULT
    for minor, version in releases.PINNED.items():
        assert re.fullmatch(rf"v1\.{minor}\.\d+", version)
    assert releases.others() == [v for v in releases.PINNED.values() if v != releases.DEFAULT]


def test_the_command_line_has_the_version_and_its_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[str | None] = []
    monkeypatch.setattr(lifecycle, "up", lambda *_, kubernetes, **__: asked.append(kubernetes))
    assert cli.main(["up", "--kubernetes-version", "1.34"]) == 0
    assert cli.main(["up"]) == 0
    assert asked == ["1.34", None]
    assert cli.main(["setup", "--kubernetes-version", "1.20"]) == 1
    assert "a sandbox runs Kubernetes 1.34 to 1.37" in capsys.readouterr().err


def test_every_pinned_release_has_its_modules_and_checksums_on_record() -> None:
    for version in releases.PINNED.values():
        modules = binaries.modules_file(version)
        text = modules.read_text()
        staged = version.replace("v1.", "v0.")
        assert re.search(rf"^\tk8s.io/kubernetes {re.escape(version)}$", text, re.MULTILINE)
        replaced = set(re.findall(r"^\tk8s.io/\S+ => k8s.io/\S+ (\S+)$", text, re.MULTILINE))
        assert replaced == {staged}, modules
        assert f"k8s.io/kubernetes {version} h1:" in modules.with_suffix(".sum").read_text()


def test_every_pre_release_has_the_modules_of_its_scheduler_on_record() -> None:
    for minor, version in releases.PRE_RELEASES.items():
        assert minor not in releases.PINNED
        assert releases.is_pinned(version)
        modules = binaries.modules_file(version)
        assert re.search(rf"^\tk8s.io/kubernetes {re.escape(version)}$", modules.read_text(), re.M)
        assert f"k8s.io/kubernetes {version} h1:" in modules.with_suffix(".sum").read_text()
        with pytest.raises(SandboxError, match="cannot run here"):
            releases.choose(version.partition("-")[0])


def test_a_sandbox_of_another_version_is_not_touched(
    state_root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Sandbox("dev", 0, (), kubernetes="v1.34.2").save()
    monkeypatch.setattr(lifecycle, "check_machine", lambda _: None)
    monkeypatch.setattr(lifecycle, "setup", lambda **_: {})
    with pytest.raises(SandboxError, match=r"dev exists with Kubernetes v1\.34\.2.*take it down"):
        lifecycle.up("dev", 0, 0, with_operator=False)
