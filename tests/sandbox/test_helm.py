"""Which Helm will do, and that what is downloaded and what is built are the same one."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import helm


@pytest.mark.parametrize(
    ("output", "fits"),
    [
        ("v3.20.2", True),
        ("v3.18.0+gcc58e3f", True),
        ("v3.17.3+ge4da497", False),
        ("v4.0.1+g12345", False),
        ("v13.20.0", False),
        ("", False),
    ],
)
def test_which_versions_of_helm_fit(output: str, fits: bool) -> None:
    assert helm.version_fits(output) is fits


def test_one_version_however_it_comes() -> None:
    module = (Path(helm.__file__).parents[1] / "helm" / "go.mod").read_text()
    assert f"require helm.sh/helm/v3 {helm.VERSION} " in module
    assert helm.version_fits(helm.VERSION)
