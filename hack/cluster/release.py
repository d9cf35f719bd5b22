"""The release of an OpenShift sandbox: rendering its manifests, and keeping them applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from cluster import images, openshift, paths, payload
from cluster.console import run
from cluster.version_operator import VersionOperator

if TYPE_CHECKING:
    from cluster.model import Sandbox


def render(sandbox: Sandbox, overlay: str) -> None:
    """Write the release's manifests, from the operator's own kinds and an overlay of deploy/."""
    kubectl = sandbox.state / "bin/kubectl"
    kinds = paths.REPOSITORY / "deploy/openshift/crds"
    texts = [run(kubectl, "kustomize", folder) for folder in (kinds, overlay)]
    manifests = [one for text in texts for one in yaml.safe_load_all(text) if one]
    folder = VersionOperator(sandbox, openshift.VERSION).folder
    payload.write(folder, manifests, contents(sandbox))


def contents(sandbox: Sandbox) -> payload.Release:
    """The versions and images of the release; the operator's image is that of this checkout."""
    built = {
        "cluster-kube-scheduler-operator": images.OPERATOR,
        "hyperkube": images.hyperkube_name(sandbox.kubernetes),
    }
    return payload.Release(openshift.VERSION, sandbox.kubernetes, built)


def keep(sandbox: Sandbox) -> None:
    """Keep them applied until the process is ended."""
    VersionOperator(sandbox, openshift.VERSION).run()
