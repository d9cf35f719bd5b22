"""deploy/ as kubectl reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import PLATFORMS

from ..unit.deploy.overlays import DEPLOY, build

pytestmark = pytest.mark.presubmit

if TYPE_CHECKING:
    from .conftest import ApiServer


MONITORING = (
    "monitoring", "monitoring/dashboards", "monitoring/eks", "monitoring/load",
    "monitoring/openshift", "monitoring/schedulers",
)  # fmt: skip


@pytest.mark.parametrize("folder", [*PLATFORMS, *MONITORING, "admission", "openshift/crds"])
def test_kustomize_makes_of_an_overlay_what_the_unit_tests_look_at(
    folder: str, api_server: ApiServer
) -> None:
    rendered = api_server.kubectl("kustomize", str(DEPLOY / folder))
    read = build(DEPLOY / folder)
    assert by_key(yaml.safe_load_all(rendered)) == by_key(read)
    assert len(list(yaml.safe_load_all(rendered))) == len(read)


def by_key(objects: Any) -> Any:
    return {
        (obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"]): obj
        for obj in objects
    }
