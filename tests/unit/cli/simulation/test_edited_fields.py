"""Below a change stands which fields of which objects it edits."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.cli.simulation.edited_fields import edited_fields
from kube_scheduler_operator.simulate.edits import Edit
from kube_scheduler_operator.simulate.fix import Fix

POD = "Pod shop/web"
WEB = "Deployment shop/web"
CPU = "spec.containers[0].resources.requests.cpu"
TOLERATIONS = "spec.template.spec.tolerations"
AGAIN = " (immutable: create the Pod again)"


def fix(*edits: Edit, text: str = "change it", of: str = "", field: str = "") -> Fix:
    return Fix(text, ("a",), object=of, field=field, patch=edits)


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (fix(of=WEB, field="spec.template.spec.nodeSelector"),
         [f"{WEB}: spec.template.spec.nodeSelector"]),
        (fix(of=POD, field="spec.nodeSelector"), [f"{POD}: spec.nodeSelector{AGAIN}"]),
        (fix(of=POD, field="spec.tolerations"), [f"{POD}: spec.tolerations"]),
        (fix(of=POD, field="metadata.labels"), [f"{POD}: metadata.labels"]),
        (fix(of="ResourceClaim shop/gpu", field="spec.devices"),
         ["ResourceClaim shop/gpu: spec.devices (immutable: create the ResourceClaim again)"]),
        (fix(Edit(POD, CPU, "2", "1")), [f"{POD}: {CPU}: \"1\""]),
        (fix(Edit(POD, CPU, "2", "1"), Edit(POD, "spec.nodeSelector.disk", "ssd"), Edit("Node a")),
         [f"{POD}: {CPU}, spec.nodeSelector.disk{AGAIN}"]),
        (fix(Edit("Node a", "spec.unschedulable", True), text="kubectl uncordon NODE"), []),
        (fix(*(Edit(f"Node {name}", "spec.taints", []) for name in "abcd")),
         [f"Node {name}: spec.taints" for name in "abc"] + ["1 more object"]),
        (fix(Edit(WEB, f"{TOLERATIONS}[2]", None, {"key": "a"}), of=WEB, field=TOLERATIONS),
         [f'{WEB}: {TOLERATIONS}: add {{"key": "a"}}']),
        (fix(Edit(WEB, TOLERATIONS, None, [{"key": "a"}]), of=WEB, field=TOLERATIONS),
         [f'{WEB}: {TOLERATIONS}: [{{"key": "a"}}]']),
        (fix(Edit(WEB, TOLERATIONS, None, ["x" * 119]), of=WEB, field=TOLERATIONS),
         [f"{WEB}: {TOLERATIONS}"]),
        (fix(), []),
    ],
)  # fmt: skip
def test_the_object_and_the_field_stand_below_a_change(change: Fix, lines: list[str]) -> None:
    assert list(edited_fields(change)) == [f"    in {line}" for line in lines]
