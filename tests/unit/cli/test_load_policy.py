"""LoadPolicies in `compose`."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.scheduling.load.policy import LoadPolicy

from ...builders import load_policy
from .conftest import OnFile


def test_the_file_that_programs_read(composed: OnFile) -> None:
    code, shown, _ = composed(load_policy())
    assert code == 0
    assert shown == {"loadPolicies": [{"name": "default", "policy": LoadPolicy().document()}]}


def test_beside_the_control_plane(composed: OnFile) -> None:
    scheduler = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "spec": {}}
    code, shown, _ = composed(scheduler, load_policy())
    assert code == 0
    assert {"config", "args", "loadPolicies"} <= set(shown)


def test_what_is_wrong(composed: OnFile) -> None:
    limit: dict[str, Any] = {"predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": 65}]}
    code, _, output = composed(load_policy(**limit))
    assert code == 2
    assert (
        'error: LoadPolicy "default": spec.predicates[0].maxLimit: 65 is not a fraction' in output
    )
    bare = load_policy()
    del bare["spec"]
    code, _, output = composed(bare)
    assert code == 2
    assert "LoadPolicy without spec; use spec: {} for crane's default policy" in output
