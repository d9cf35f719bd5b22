"""Pods are found by their cgroups in every cgroup layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kube_scheduler_operator.node.static_pod.host import pods_with_cgroups

STATIC = "0123456789abcdef0123456789abcdef"
OTHER = "11111111-2222-3333-4444-555555555555"
_SLICE = "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"


@pytest.mark.parametrize(
    "paths",
    [
        pytest.param(
            [f"kubepods/burstable/pod{STATIC}/c1", f"kubepods/pod{OTHER}/c2"], id="cgroupfs"
        ),
        pytest.param(
            [f"{_SLICE}{STATIC}.slice/cri-1.scope", f"{_SLICE}{OTHER.replace('-', '_')}.slice"],
            id="systemd",
        ),
        pytest.param(
            [f"a/b/c/kubepods/burstable/pod{STATIC}", f"a/b/c/kubepods/besteffort/pod{OTHER}"],
            id="below a cgroupRoot",
        ),
        pytest.param(
            [
                f"memory/kubepods/burstable/pod{STATIC}",
                f"memory/kubepods/pod{OTHER}",
                "systemd/kubepods/podffffffffffffffffffffffffffffffff",
            ],
            id="version 1: one hierarchy counts",
        ),
    ],
)
def test_finds_pods_in_every_layout(tmp_path: Path, paths: Any) -> None:
    for path in (*paths, "system.slice/kubelet.service/x", "kubepods/burstable/podium"):
        (tmp_path / path).mkdir(parents=True)
    assert pods_with_cgroups(tmp_path) == {STATIC, OTHER}


def test_empty_without_visible_cgroups(tmp_path: Path) -> None:
    assert pods_with_cgroups(tmp_path) == frozenset()
    assert pods_with_cgroups(tmp_path / "missing") == frozenset()
