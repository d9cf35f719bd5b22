"""The files of a release are the same twice, and do what they are for."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import binaries, emulation, helm, releases
from releasing import debian, signatures
from releasing.provenance import digest
from releasing.source import Source

from .conftest import REPOSITORY

CHROOT = shutil.which("chroot") or "/usr/sbin/chroot"
CONFIGURATION = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def test_a_second_build_needs_no_network_and_has_the_same_bytes(
    dist: Path, origin: Source, tmp_path: Path
) -> None:
    build: list[str | Path] = [
        REPOSITORY / "hack/release",
        "build",
        "--dirty",
        "--version",
        origin.version,
    ]
    subprocess.run(["unshare", "--net", *build, "--directory", tmp_path / "dist"], check=True)
    first = {file.name: digest(file) for file in dist.iterdir()}
    second = {file.name: digest(file) for file in (tmp_path / "dist").iterdir()}
    assert second == first
    assert len(first) == 13


def test_checksums_are_signed_and_verified_without_a_network(
    dist: Path, cosign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        command = ["unshare", "--net", cosign, *words]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    monkeypatch.setenv("COSIGN_PASSWORD", "")
    monkeypatch.setenv("COSIGN_KEY", str(tmp_path / "cosign.key"))
    monkeypatch.setenv("PATH", str(cosign.parent), prepend=os.pathsep)
    assert run("generate-key-pair").returncode == 0
    sums = shutil.copy(dist / signatures.SUMS, tmp_path)
    (bundle,) = signatures.sign([Path(sums)])
    verify: list[str | Path] = [
        "verify-blob",
        "--key",
        "cosign.pub",
        "--insecure-ignore-tlog",
        "--bundle",
        bundle,
    ]
    assert "Verified OK" in run(*verify, sums).stderr
    Path(sums).write_text("changed\n")
    assert run(*verify, sums).returncode != 0


def test_the_workflow_is_valid(actionlint: Path) -> None:
    done = subprocess.run(
        [actionlint, *(REPOSITORY / ".github" / "workflows").glob("*.yml")],
        capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


# --- the archive that needs no Python ---------------------------------------------------------
@pytest.fixture(scope="module")
def installed(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root directory with the C library and the plugin as krew installs it, and nothing else."""
    root = tmp_path_factory.mktemp("root")
    root.chmod(0o755)
    manifest = yaml.safe_load((dist / "scheduler.yaml").read_text())
    (platform,) = manifest["spec"]["platforms"]
    archive = dist / platform["uri"].rpartition("/")[2]
    assert digest(archive) == platform["sha256"]
    store = root / "krew/store/scheduler/v"
    unpacked = root / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-xzf", archive, "-C", unpacked], check=True)
    (rule,) = platform["files"]
    shutil.copytree((unpacked / rule["from"]).parent, store, symlinks=True)
    (root / "krew/bin").mkdir()
    (root / "krew/bin/kubectl-scheduler").symlink_to(f"../store/scheduler/v/{platform['bin']}")
    program = store / platform["bin"]
    printed = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    modules = ("libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1")
    libraries = set(re.findall(r"(/\S*lib\S+) ", printed))
    libraries |= {str(Path("/lib/x86_64-linux-gnu", one)) for one in modules}
    for library in libraries:
        target = root / library.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, target)
    (root / "tmp").mkdir()
    return root


def _run(root: Path, *command: str, text: str = "") -> subprocess.CompletedProcess[str]:
    line: list[str | Path] = [CHROOT, "--userspec=65534:65534", root, *command]
    return subprocess.run(
        line, input=text, capture_output=True, text=True, env={"HOME": "/tmp", "PATH": "/krew/bin"}
    )


def test_the_archive_validates_where_no_python_is(installed: Path) -> None:
    assert not list(installed.rglob("python3"))
    wrong = CONFIGURATION + "profiles: [{plugins: {score: {enabled: [{name: ImageLocalty}]}}}]\n"
    done = _run(installed, "/krew/bin/kubectl-scheduler", "validate", "-f", "-", text=wrong)
    assert done.returncode == 1, done.stderr
    assert 'did you mean "ImageLocality"?' in done.stdout


@pytest.mark.parametrize(
    "command", ["status", "why", "simulate", "pending", "must-gather", "adopt"]
)
def test_the_archive_has_what_commands_of_clusters_import(installed: Path, command: str) -> None:
    (installed / "tmp/config").write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c, user: u}}]\nusers: [{name: u, user: {}}]\n"
    )
    words = {"why": ["default/a"], "simulate": ["--image", "x"]}.get(command, [])
    done = _run(
        installed, "/krew/bin/kubectl-scheduler", command, *words, "--kubeconfig", "/tmp/config"
    )
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert "pip install" not in done.stderr


def test_kubectl_finds_the_plugin(installed: Path) -> None:
    kubectl = binaries.provide(("kubectl",), releases.DEFAULT)["kubectl"]
    environment = {"PATH": str(installed / "krew/bin"), "HOME": str(installed / "tmp")}
    done = subprocess.run(
        [kubectl, "scheduler", "version", "--client", "-o", "json"],
        capture_output=True, text=True, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stdout)) == {"client"}


# --- the image --------------------------------------------------------------------------------
@pytest.mark.parametrize("architecture", debian.ARCHITECTURES)
def test_the_image_runs_without_root(
    dist: Path, origin: Source, tmp_path: Path, architecture: str
) -> None:
    (layout,) = dist.glob(f"*-{architecture}.oci.tar")
    root = tmp_path / "root"
    root.mkdir()
    with tarfile.open(layout) as tar:

        def read(name: str) -> Any:
            content = tar.extractfile(name)
            assert content is not None
            return content

        (entry,) = json.load(read("index.json"))["manifests"]
        manifest = json.load(read(_blob(entry)))
        config = json.load(read(_blob(manifest["config"])))
        for layer in manifest["layers"]:
            command: list[str | Path] = ["tar", "-xz", "-C", root]
            subprocess.run(command, input=read(_blob(layer)).read(), check=True)
    assert config["architecture"] == architecture
    assert config["config"]["User"] == "65532:65532"
    assert config["config"]["Labels"]["org.opencontainers.image.revision"] == origin.commit
    (program,) = config["config"]["Entrypoint"]
    line: list[str | Path] = [CHROOT, f"--userspec={config['config']['User']}", root, program]
    environment = {"HOME": "/", "PATH": "/usr/local/bin:/usr/bin:/bin"}

    def run(*words: str, text: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*line, *words], input=text, capture_output=True, text=True, env=environment
        )

    with emulation.running(architecture):
        shown, missing = run("--version"), run("operator")
        checked = run("validate", "-f", "-", text=CONFIGURATION)
    assert shown.stdout.split()[-1] == origin.version
    assert (missing.returncode, checked.returncode) == (1, 0), (missing.stderr, checked.stderr)
    assert "set --kubeconfig" in missing.stderr, "the operator has all that it imports"


def _blob(descriptor: dict[str, str]) -> str:
    return f"blobs/{descriptor['digest'].replace(':', '/')}"


def test_the_bill_of_the_image_lists_debian_and_python_packages(dist: Path) -> None:
    (file,) = dist.glob("*-amd64.oci.tar.spdx.json")
    purls = {
        one["externalRefs"][0]["referenceLocator"].partition("@")[0]
        for one in json.loads(file.read_text())["packages"]
    }
    assert {"pkg:pypi/kopf", "pkg:pypi/aiohttp", "pkg:deb/debian/libc6"} <= purls


def test_the_bill_of_the_archive_lists_what_is_in_it(dist: Path) -> None:
    (file,) = dist.glob("kubectl-scheduler-*.spdx.json")
    names = {one["name"].lower() for one in json.loads(file.read_text())["packages"]}
    assert {"pyyaml", "aiohttp", "kubernetes", "numpy", "orjson"} <= names
    assert not {"kopf", "pytest", "ruff", "mypy"} & names


# --- the chart --------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of Helm and kubectl for an API server without nodes."""
    name = f"rel-{os.getpid()}"
    sandbox = [str(REPOSITORY / "hack/sandbox")]
    home = tmp_path_factory.mktemp("home")
    with _up(sandbox, name):
        printed = subprocess.run(
            [*sandbox, "env", "--name", name], check=True, capture_output=True, text=True
        ).stdout
        found = dict(re.findall(r"^export (\w+)=(\S+)$", printed, re.MULTILINE))
        yield {**os.environ, "HOME": str(home), "KUBECONFIG": found["KUBECONFIG"].strip("'\"")}


@contextmanager
def _up(sandbox: list[str], name: str) -> Iterator[None]:
    up = [*sandbox, "up", "--nodes", "0", "--no-operator", "--name", name]
    done = subprocess.run(up, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    try:
        yield
    finally:
        subprocess.run([*sandbox, "down", "--name", name], check=True, capture_output=True)


def test_the_chart_is_pushed_to_a_registry_and_installed_from_it(
    dist: Path, origin: Source, registry: str, api: dict[str, str]
) -> None:
    program = str(helm.provide())

    def run(*words: str) -> str:
        done = subprocess.run([program, *words], capture_output=True, text=True, env=api)
        assert done.returncode == 0, done.stderr
        return done.stdout

    chart = f"oci://{registry}/charts/kube-scheduler-operator"
    run("push", str(dist / f"kube-scheduler-operator-{origin.version}.tgz"), "--plain-http",
        chart.rpartition("/")[0])  # fmt: skip
    version = ("--version", origin.version, "--plain-http")
    metadata = yaml.safe_load(run("show", "chart", chart, *version))
    assert metadata["annotations"]["artifacthub.io/operator"] == "true"
    run("install", "kso", chart, *version, "--namespace", "kube-system")
    manifest = run("get", "manifest", "kso", "--namespace", "kube-system")
    images = {
        container["image"]
        for one in yaml.safe_load_all(manifest)
        if one and one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    }
    assert f"{origin.repository}:{origin.tag}" in images
    run("uninstall", "kso", "--namespace", "kube-system", "--no-hooks")
