"""A release of Kubernetes as Go modules: its sources, and the modules that the sandbox builds."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from cluster import releases
from cluster.console import SandboxError
from cluster.paths import REPOSITORY

MODULES = REPOSITORY / "hack/controlplane"
DIRECT = ("github.com/spf13/cobra", "go.etcd.io/etcd/server/v3")
"""Modules of the sandbox's program besides Kubernetes; the release decides their versions."""
KUBEADM = "k8s.io/kubernetes/cmd/kubeadm"
GATES = (
    "apiextensions-apiserver", "apiserver", "client-go", "component-base", "controller-manager",
)  # fmt: skip
"""Modules that hack/feature-gates reads besides Kubernetes."""


def go(*arguments: str, cwd: Path = MODULES, **environment: str) -> str:
    """The output of a `go` command.

    Raises:
        SandboxError: it failed, or Go is not installed.
    """
    program = shutil.which("go")
    if program is None:
        raise SandboxError("Go is not installed; install it (https://go.dev/dl)")
    done = subprocess.run(
        [program, *arguments], cwd=cwd, env={**os.environ, "GOWORK": "off", **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SandboxError(f"go {' '.join(arguments)}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def staging(version: str) -> str:
    """The version of the k8s.io modules of a release: v0.37.2 for v1.37.2."""
    return version.replace("v1.", "v0.", 1)


def source(module: str, version: str) -> Path:
    """The folder of a module's sources, downloading it first."""
    return Path(json.loads(go("mod", "download", "-json", f"{module}@{version}"))["Dir"])


def write_modules(version: str) -> Path:
    """Write the Go modules of a release as the release itself has them; return its sources.

    Those of the sandbox's program, and those of kubeadm, which needs others.
    """
    kubernetes = source("k8s.io/kubernetes", version)
    theirs = json.loads(go("mod", "edit", "-json", str(kubernetes / "go.mod")))
    required = {each["Path"]: each["Version"] for each in theirs["Require"]}
    staged = [each["Old"]["Path"] for each in theirs["Replace"]
              if each["New"]["Path"].startswith("./staging/")]  # fmt: skip
    name = f"v1.{releases.minor(version)}.mod"
    direct = {
        **{module: required[module] for module in DIRECT},
        "k8s.io/component-base": staging(version),
        "k8s.io/kubectl": "v0.0.0",
        "k8s.io/kubernetes": version,
    }
    path = MODULES / name
    path.write_text(_module_file(theirs["Go"], direct, staged, version))
    path.with_suffix(".sum").write_text("")
    go("mod", "tidy", "-modfile", name, GOFLAGS="-mod=mod")
    with tempfile.TemporaryDirectory() as folder:
        kubeadm = Path(folder, "go.mod")
        text = _module_file(theirs["Go"], {"k8s.io/kubernetes": version}, staged, version)
        kubeadm.write_text(text)
        # A file with this tag is not compiled, but decides which modules are needed.
        text = f'//go:build tools\n\npackage tools\n\nimport _ "{KUBEADM}"\n'
        kubeadm.with_name("tools.go").write_text(text)
        go("mod", "tidy", cwd=kubeadm.parent, GOFLAGS="-mod=mod")
        for each in (kubeadm, kubeadm.with_suffix(".sum")):
            shutil.copy(each, MODULES / "kubeadm" / f"{path.stem}{each.suffix}")
    return kubernetes


def _module_file(
    language: str, direct: Mapping[str, str], staged: Iterable[str], version: str
) -> str:
    """A go.mod with these requirements, and the staged modules of a release."""
    lines = [
        "module kube-scheduler-operator.dev/hack/controlplane", "", f"go {language}", "",
        "require (", *(f"\t{module} {wanted}" for module, wanted in direct.items()), ")", "",
        "replace (", *(f"\t{module} => {module} {staging(version)}" for module in staged), ")",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def record_gates(kubernetes: Path, version: str) -> None:
    """Write the feature gates of a release to the record."""
    for module in GATES:
        source(f"k8s.io/{module}", staging(version))
    subprocess.run([REPOSITORY / "hack/feature-gates", kubernetes], check=True)
