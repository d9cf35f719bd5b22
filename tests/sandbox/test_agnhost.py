"""The image of agnhost: what it is made of, and what a machine without Go gets instead."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cluster import agnhost, binaries, images, operator_image, paths, releases
from cluster.archive import Layer
from cluster.console import SandboxError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "cache_dir", lambda: tmp_path)
    base = Layer(tmp_path / "base", "0" * 64)
    monkeypatch.setattr(operator_image, "base", lambda: base)
    return tmp_path


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The packages that are built with it."""
    built: list[str] = []

    def build(_go: str, _source: Path, package: str, _link: str, target: Path) -> None:
        built.append(package)
        target.parent.mkdir(parents=True)
        target.write_text("program")

    monkeypatch.setattr(shutil, "which", lambda _: "/usr/bin/go")
    monkeypatch.setattr(binaries, "go_build", build)
    return built


def test_its_module_is_that_of_the_default_kubernetes() -> None:
    """So most of its packages have been compiled for the control plane."""
    module = (Path(agnhost.__file__).parents[1] / "agnhost/go.mod").read_text()
    assert f"k8s.io/kubernetes {releases.DEFAULT} " in module
    staged = releases.DEFAULT.replace("v1.", "v0.")
    assert f"k8s.io/client-go => k8s.io/client-go {staged}" in module


def test_its_program_lies_on_a_layer_that_every_node_has(go: list[str], cache: Path) -> None:
    image = agnhost.build()
    assert go == ["k8s.io/kubernetes/test/images/agnhost"]
    assert image.layers[0].path == cache / "base"
    assert image.layers[1].path.parent == images.folder()
    assert (image.entrypoint, image.arguments) == (("/agnhost",), ("pause",))
    assert agnhost.build() == image
    assert len(go) == 1, "built once"


def test_a_machine_without_go_does_without_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert agnhost.build_with_go() is None
    assert "no agnhost: hack/agnhost is a program in Go" in capsys.readouterr().err


def test_a_failed_build_is_an_error(monkeypatch: pytest.MonkeyPatch, go: list[str]) -> None:
    def fail(*_: object) -> None:
        raise SandboxError("go build failed")

    monkeypatch.setattr(binaries, "go_build", fail)
    with pytest.raises(SandboxError, match="go build failed"):
        agnhost.build_with_go()
