"""Manifests as kubeadm writes them."""

from __future__ import annotations

from pathlib import Path

TEMPLATES = Path(__file__).parents[4] / "hack/cluster/templates"
MANIFEST = (TEMPLATES / "kube-scheduler.yaml").read_text()
NEW = "registry.k8s.io/kube-scheduler:v1.36.3"
SERVER = "registry.k8s.io/kube-apiserver:v1.36.3"


def stock(image: str = NEW) -> bytes:
    """The scheduler's manifest."""
    return MANIFEST.replace("${image}", image).encode()


def server(image: str = SERVER) -> bytes:
    """The manifest of the API server beside it."""
    text = MANIFEST.replace("${image}", image)
    return text.replace("name: kube-scheduler", "name: kube-apiserver").encode()
