"""Which binaries of the machine will do, and where those that were made for a version are kept."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import pytest

from cluster import binaries, packages, paths, releases
from cluster.console import SandboxError

OLD, NEW = releases.PINNED[34], releases.PINNED[max(releases.PINNED)]
PRE = releases.PRE_RELEASES[38]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache on a machine that has no binaries and no way to get any."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("KUBE_SCHEDULER_OPERATOR_CACHE", str(cache))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)

    def unreachable(url: str) -> bytes:
        raise OSError("no network")

    monkeypatch.setattr(binaries, "fetch", unreachable)
    monkeypatch.setattr(packages, "available", lambda: False)
    return cache


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the Go sources that a test may change."""
    copy = tmp_path / "controlplane"
    shutil.copytree(binaries.SOURCE, copy)
    monkeypatch.setattr(binaries, "SOURCE", copy)
    return copy


def program(folder: Path, name: str, output: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{output}'\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("component", "output", "version", "fits"),
    [
        ("kubelet", "Kubernetes v1.35.4", "v1.35.4", True),
        ("kubelet", "Kubernetes v1.35.1", "v1.35.4", True),  # the pinned one: any patch will do
        ("kubelet", "Kubernetes v1.34.4", "v1.35.4", False),
        ("kubelet", "Kubernetes v1.34.2+vendor.1", "v1.34.2", True),
        ("kubelet", "Kubernetes v1.34.20", "v1.34.2", False),
        ("kubelet", "Kubernetes v1.34.4", "v1.34.2", False),  # another patch was asked for
        ("kubectl", "Client Version: v1.35.4", "v1.34.2", True),
        ("kubectl", "Client Version: v1.34.0", "v1.36.3", False),
        ("kubelet", "command not found", "v1.35.4", False),
        ("kube-scheduler", f"Kubernetes {PRE}", PRE, True),
        ("kube-scheduler", "Kubernetes v1.38.0", PRE, False),
    ],
)
def test_a_binary_of_the_machine_is_of_the_right_version(
    component: str, output: str, version: str, fits: bool
) -> None:
    assert binaries.version_fits(component, output, version) is fits


def test_a_fitting_binary_on_path_is_taken_and_another_is_not(tmp_path: Path) -> None:
    kubelet = program(tmp_path / "bin", "kubelet", f"Kubernetes {OLD}")
    own = program(binaries.release_folder(NEW), "kubelet", f"Kubernetes {NEW}")
    assert binaries.provide(["kubelet"], OLD) == {"kubelet": kubelet}
    assert binaries.provide(["kubelet"], NEW) == {"kubelet": own}


def test_every_version_has_folders_of_its_own(cache: Path) -> None:
    versions = [*releases.PINNED.values(), "v1.34.2"]
    folders = [binaries.release_folder(version) for version in versions]
    folders += [binaries.build_folder(version) for version in releases.PINNED.values()]
    assert len(set(folders)) == len(folders)
    assert all(folder.is_relative_to(cache) for folder in folders)
    assert binaries.build_folder(OLD).name.startswith(f"{OLD}-")


def test_versions_are_built_from_separate_modules(sources: Path) -> None:
    before = {version: binaries.build_folder(version) for version in releases.PINNED.values()}
    (sources / "v1.34.sum").write_text("changed")
    (sources / "v1.99.mod").write_text("new")
    after = {version: binaries.build_folder(version) for version in releases.PINNED.values()}
    assert {version for version in before if before[version] != after[version]} == {OLD}
    (sources / "main.go").write_text("changed")
    assert binaries.build_folder(NEW) != after[NEW]


def test_the_error_for_an_unpinned_patch_names_those_that_can_be_built() -> None:
    with pytest.raises(SandboxError, match=rf"kubelet v1\.34\.2\. .*only {OLD}.*Ask for 1\.34"):
        binaries.provide(["kubelet"], "v1.34.2")


@pytest.mark.parametrize(("version", "go"), [(OLD, "1.24"), (NEW, "1.26")])
def test_without_go_the_error_names_the_one_that_this_version_needs(version: str, go: str) -> None:
    with pytest.raises(SandboxError, match=rf"{version}\. .*Install Go {go} or newer"):
        binaries.provide(["kubelet"], version)


def test_a_release_is_downloaded_into_its_own_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"#!/bin/sh\n"
    wrong = b"0" * 64
    answers = {"kubelet": content, "kubelet.sha256": wrong}
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return answers[url.rpartition("/")[2]]

    monkeypatch.setattr(binaries, "fetch", fetch)
    with pytest.raises(SandboxError, match=r"v1\.34\.2.*does not match its checksum"):
        binaries.provide(["kubelet"], "v1.34.2")
    answers["kubelet.sha256"] = hashlib.sha256(content).hexdigest().encode()
    expected = binaries.release_folder("v1.34.2") / "kubelet"
    assert binaries.provide(["kubelet"], "v1.34.2") == {"kubelet": expected}
    assert all("/v1.34.2/bin/linux/" in url for url in asked)
    assert paths.cache_dir() in expected.parents


GO = """\
#!/bin/sh
PATH=/usr/bin:/bin
echo "$*" >> "$KEPT/calls"
case "$1 $2" in
"mod download")
    for module; do
        case "$module" in k8s.io/*) printf '{\\n\\t"Path": "%s",\\n\\t"Dir": "%s"\\n}\\n' \\
            "$module" "$KEPT/modules/$module" ;; esac
    done ;;
"build "*)
    while [ $# -gt 0 ]; do
        case "$1" in
        -overlay) cp "$2" "$KEPT/overlay" ;;
        -modfile) cp "$2" "${2%.mod}.sum" "$KEPT" ;;
        -o) echo built > "$2" ;;
        esac
        shift
    done ;;
esac
"""


def provide_go(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the compiler of these tests where they look for one; it keeps what it was given."""
    go = folder / "bin" / "go"
    go.parent.mkdir()
    go.write_text(GO)
    go.chmod(0o755)
    monkeypatch.setenv("KEPT", str(folder))


def test_kubernetes_is_built_without_what_only_its_tests_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide_go(tmp_path, monkeypatch)
    found = binaries.provide(["kubelet"], NEW)
    assert found["kubelet"].read_text() == "built\n"
    left_out = json.loads((tmp_path / "overlay").read_text())["Replace"]
    assert set(left_out.values()) == {""}
    helpers = {"apiserver": "policy_test_context.go", "kubernetes": "testing.go"}
    links = {Path(path).name: path for path in left_out}
    assert sorted(links) == sorted(helpers.values())
    calls = (tmp_path / "calls").read_text().splitlines()
    for module, helper in helpers.items():
        link = links[helper].partition(f"/{module}/")[0] + f"/{module}"
        assert any(f"mod edit -replace=k8s.io/{module}={link} " in call for call in calls)
    assert (tmp_path / "go.mod").read_bytes() == binaries.modules_file(NEW).read_bytes()
    assert (tmp_path / "go.sum").exists()


def test_of_a_pre_release_only_kube_scheduler_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provide_go(tmp_path, monkeypatch)
    found = binaries.provide(["kube-scheduler"], PRE)["kube-scheduler"]
    assert found.read_text() == "built\n"
    # Simulations choose among build/v*, and are not to be decided by a pre-release.
    assert found.parent.name.startswith(f"kube-scheduler-{PRE}-")
    call = (tmp_path / "calls").read_text().splitlines()[-1]
    assert "k8s.io/kubernetes/cmd/kube-scheduler" in call
    assert "v1.38.mod" in call
    with pytest.raises(SandboxError, match="only kube-scheduler is built, not kubelet"):
        binaries.provide(["kubelet", "kube-scheduler"], PRE)


def test_the_reader_of_configurations_is_built_from_the_modules_of_its_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SandboxError, match="no Go"):
        binaries.provide_configuration_reader(OLD)
    provide_go(tmp_path, monkeypatch)
    program = binaries.provide_configuration_reader(OLD)
    assert program.read_text() == "built\n"
    assert f"configurations-{OLD}-" in str(program)
    assert (tmp_path / "v1.34.mod").exists()
    calls = (tmp_path / "calls").read_text()
    assert f"gitVersion={OLD} " in calls
    assert "./configurations" in calls
    binaries.provide_configuration_reader(OLD)
    assert (tmp_path / "calls").read_text() == calls
