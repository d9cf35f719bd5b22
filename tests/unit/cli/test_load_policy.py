"""LoadPolicies in `compose`."""

from __future__ import annotations

from typing import Any

from kube_scheduler_operator.load.policy import LoadPolicy

from .conftest import OnFile


def policy(**fields: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kube-scheduler-operator.dev/v1alpha1",
        "kind": "LoadPolicy",
        "metadata": {"name": "default"},
        "spec": {},
        **fields,
    }


def test_the_file_that_programs_read(composed: OnFile) -> None:
    code, shown, _ = composed(policy())
    assert code == 0
    assert shown == {"loadPolicies": [{"name": "default", "policy": LoadPolicy().document()}]}


def test_beside_the_control_plane(composed: OnFile) -> None:
    scheduler = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "spec": {}}
    code, shown, _ = composed(scheduler, policy())
    assert code == 0
    assert {"config", "args", "loadPolicies"} <= set(shown)


def test_what_is_wrong(composed: OnFile) -> None:
    limit = {"predicates": [{"name": "cpu_usage_avg_5m", "maxLimit": 65}]}
    code, _, said = composed(policy(spec=limit))
    assert code == 2
    assert 'error: LoadPolicy "default": spec.predicates[0].maxLimit: 65 is not a fraction' in said
    bare = policy()
    del bare["spec"]
    code, _, said = composed(bare)
    assert code == 2
    assert "LoadPolicy without spec; write spec: {} for the policy that crane ships" in said
