"""A version of Kubernetes as Go modules: its sources, and the modules that the sandbox builds."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from cluster import golang, releases
from cluster.console import SandboxError
from cluster.paths import REPOSITORY

MODULES = REPOSITORY / "hack/controlplane"
DIRECT = ("github.com/spf13/cobra", "go.etcd.io/etcd/server/v3")
"""Modules of the sandbox's program besides Kubernetes; the release decides their versions."""
KUBEADM = "k8s.io/kubernetes/cmd/kubeadm"
SCHEDULER = ("k8s.io/kubernetes/cmd/kube-scheduler", "./configurations")
"""The programs of a pre-release: those with which the rules are compared."""
GATES = (
    "apiextensions-apiserver", "apiserver", "client-go", "component-base", "controller-manager",
)  # fmt: skip
"""Modules that hack/feature-gates reads besides Kubernetes."""


_NEEDS = re.compile(r"requires go \S+ (1\.\d+)")


def go(*arguments: str, cwd: Path = MODULES, **environment: str) -> str:
    """The output of a `go` command; of a newer Go, if a module requires one.

    Raises:
        SandboxError: it failed, or Go is not installed.
    """
    needed = "1"
    while True:
        program = golang.provide(needed)
        if program is None:
            raise SandboxError("Go is not installed; install it (https://go.dev/dl)")
        done = subprocess.run(
            [program, *arguments], cwd=cwd, env={**os.environ, "GOWORK": "off", **environment},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not done.returncode:
            return done.stdout
        newer = _NEEDS.search(done.stderr + done.stdout)
        if newer is None or newer[1] == needed:
            raise SandboxError(f"go {' '.join(arguments)}: {done.stderr.strip()[-2000:]}")
        needed = newer[1]


def staging(version: str) -> str:
    """The version of the k8s.io modules of a release: v0.37.2 for v1.37.2."""
    return version.replace("v1.", "v0.", 1)


def source(module: str, version: str) -> Path:
    """The folder of a module's sources, downloading it first."""
    return Path(json.loads(go("mod", "download", "-json", f"{module}@{version}"))["Dir"])


def write_modules(version: str, replaced: Mapping[str, str]) -> Path:
    """Write the Go modules of a version as the version itself has them; return its sources.

    Of a release these are those of the sandbox's program, and those of kubeadm, which needs others;
    of a pre-release those of kube-scheduler.

    Args:
        version: a release or a pre-release.
        replaced: the versions of modules that cannot be had in the version that it requires.
    """
    kubernetes = source("k8s.io/kubernetes", version)
    theirs = json.loads(go("mod", "edit", "-json", str(kubernetes / "go.mod")))
    required = {each["Path"]: each["Version"] for each in theirs["Require"]}
    staged = [each["Old"]["Path"] for each in theirs["Replace"]
              if each["New"]["Path"].startswith("./staging/")]  # fmt: skip
    instead = dict.fromkeys(staged, staging(version)) | dict(replaced)
    path = MODULES / f"v1.{releases.minor(version)}.mod"
    only = {"k8s.io/kubernetes": version}
    if releases.PRE_RELEASE.fullmatch(version):
        path.write_text(_module_file(theirs["Go"], only, instead))
        path.with_suffix(".sum").write_text("")
        # Unlike `go mod tidy`, this leaves out the modules of tests and of other programs.
        go("list", "-deps", "-modfile", path.name, *SCHEDULER, GOFLAGS="-mod=mod")
        return kubernetes
    direct = {
        **{module: required[module] for module in DIRECT},
        "k8s.io/component-base": staging(version),
        "k8s.io/kubectl": "v0.0.0",
        **only,
    }
    path.write_text(_module_file(theirs["Go"], direct, instead))
    path.with_suffix(".sum").write_text("")
    go("mod", "tidy", "-modfile", path.name, GOFLAGS="-mod=mod")
    with tempfile.TemporaryDirectory() as folder:
        kubeadm = Path(folder, "go.mod")
        kubeadm.write_text(_module_file(theirs["Go"], only, instead))
        # A file with this tag is not compiled, but decides which modules are needed.
        text = f'//go:build tools\n\npackage tools\n\nimport _ "{KUBEADM}"\n'
        kubeadm.with_name("tools.go").write_text(text)
        go("mod", "tidy", cwd=kubeadm.parent, GOFLAGS="-mod=mod")
        for each in (kubeadm, kubeadm.with_suffix(".sum")):
            shutil.copy(each, MODULES / "kubeadm" / f"{path.stem}{each.suffix}")
    return kubernetes


def _module_file(language: str, direct: Mapping[str, str], instead: Mapping[str, str]) -> str:
    """A go.mod with these requirements, and modules of which another version is used."""
    lines = [
        "module kube-scheduler-operator.dev/hack/controlplane", "", f"go {language}", "",
        "require (", *(f"\t{module} {wanted}" for module, wanted in direct.items()), ")", "",
        "replace (", *(f"\t{module} => {module} {used}" for module, used in instead.items()), ")",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def record_gates(kubernetes: Path, version: str) -> None:
    """Write the feature gates of a release to the record."""
    for module in GATES:
        source(f"k8s.io/{module}", staging(version))
    subprocess.run([REPOSITORY / "hack/feature-gates", kubernetes], check=True)
