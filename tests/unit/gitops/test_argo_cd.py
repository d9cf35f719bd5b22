"""Argo CD's health checks, run by Lua over objects in every state, and its rules for differences.

The folder has the form of resource_customizations in Argo CD's own repository, so that its tests
run there as well: GROUP/KIND/health.lua, health_test.yaml and testdata.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS, Resource

from ...conftest import Golden
from . import argo_cd, states

REPOSITORY = Path(__file__).parents[3]
PROGRESSING = {
    "agents-starting", "being-deleted", "edited", "rolling-out", "scheduler-not-available",
    "simulating", "starting", "unseen",
}  # fmt: skip
SUSPENDED = {"held", "removed", "unmanaged"}


def expected(state: str) -> str:
    if state.startswith(("ready", "healthy")):
        return "Healthy"
    if state in SUSPENDED:
        return "Suspended"
    return "Progressing" if state in PROGRESSING else "Degraded"


def dumped(document: Any) -> str:
    return yaml.safe_dump(document, sort_keys=False, width=100)


@pytest.mark.parametrize("resource", states.KINDS, ids=lambda resource: resource.kind)
def test_the_fixtures_are_what_the_operator_reports(resource: Resource, golden: Golden) -> None:
    folder = argo_cd.folder(resource)
    made = states.states(resource)
    for state, obj in made.items():
        golden(folder / "testdata" / f"{state}.yaml", dumped(obj))
    assert {path.stem for path in (folder / "testdata").iterdir()} == set(made)


@pytest.mark.parametrize("resource", states.KINDS, ids=lambda resource: resource.kind)
def test_what_argo_cd_shows(resource: Resource, golden: Golden) -> None:
    """The file with the tests has each state once, in Argo CD's form, and they pass."""
    tests = []
    for state, obj in sorted(argo_cd.fixtures(resource).items()):
        health = argo_cd.health(obj)
        assert health["status"] == expected(state), state
        tests.append({"healthStatus": health, "inputPath": f"testdata/{state}.yaml"})
    golden(argo_cd.folder(resource) / "health_test.yaml", dumped({"tests": tests}))


def test_all_kinds_of_the_group_have_the_same_check() -> None:
    texts = {argo_cd.script(resource) for resource in states.OWN}
    assert len(texts) == 1
    assert {path.name for path in argo_cd.folder(states.OWN[0]).parent.iterdir()} == {
        resource.kind for resource in states.OWN
    }


def test_the_patch_of_argocd_cm_has_the_same_checks(golden: Golden) -> None:
    prefix = "resource.customizations"
    checks = {
        f"{prefix}.health.{resource.group}_{resource.kind}": argo_cd.script(resource)
        for resource in sorted(states.KINDS, key=lambda resource: resource.name)
    }
    key = f"{prefix}.ignoreDifferences.{KUBE_SCHEDULERS.group}_{KUBE_SCHEDULERS.kind}"
    ignored = {key: dumped({"jsonPointers": ["/spec/observedConfig"]})}
    patch = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "argocd-cm", "namespace": "argocd"},
        "data": {**checks, **ignored},
    }
    text = yaml.dump(patch, Dumper=_Literal, sort_keys=False, width=100)
    golden(argo_cd.FOLDER / "argocd-cm.yaml", f"# From the checks beside it.\n{text}")


def test_openshift_gitops_has_the_same_checks(golden: Golden) -> None:
    """Its operator writes argocd-cm from the ArgoCD object, and undoes edits of it."""
    checks = [
        {"group": resource.group, "kind": resource.kind, "check": argo_cd.script(resource)}
        for resource in sorted(states.KINDS, key=lambda resource: resource.name)
    ]
    ignored = {
        "group": KUBE_SCHEDULERS.group,
        "kind": KUBE_SCHEDULERS.kind,
        "customization": {"jsonPointers": ["/spec/observedConfig"]},
    }
    patch = {
        "apiVersion": "argoproj.io/v1beta1",
        "kind": "ArgoCD",
        "metadata": {"name": "openshift-gitops", "namespace": "openshift-gitops"},
        "spec": {
            "resourceHealthChecks": checks,
            "resourceIgnoreDifferences": {"resourceIdentifiers": [ignored]},
        },
    }
    text = yaml.dump(patch, Dumper=_Literal, sort_keys=False, width=100)
    head = "# From the checks beside it, for the ArgoCD object of OpenShift GitOps.\n"
    golden(argo_cd.FOLDER / "openshift-gitops.yaml", head + text)


def test_the_application_ignores_what_the_patch_ignores() -> None:
    application = yaml.safe_load((argo_cd.FOLDER / "application.yaml").read_text(encoding="utf-8"))
    (rule,) = application["spec"]["ignoreDifferences"]
    patch = yaml.safe_load((argo_cd.FOLDER / "argocd-cm.yaml").read_text(encoding="utf-8"))["data"]
    key = f"resource.customizations.ignoreDifferences.{rule['group']}_{rule['kind']}"
    assert yaml.safe_load(patch[key])["jsonPointers"] == rule["jsonPointers"]
    assert "RespectIgnoreDifferences=true" in application["spec"]["syncPolicy"]["syncOptions"]


def test_both_tools_try_again_until_the_crds_of_the_operator_are_there() -> None:
    """The order of two Applications is kept by nothing, unless Argo CD was set up for it."""
    application = yaml.safe_load((argo_cd.FOLDER / "application.yaml").read_text(encoding="utf-8"))
    retry = application["spec"]["syncPolicy"]["retry"]
    waits, wait = [], 15
    for _ in range(retry["limit"]):
        waits.append(min(wait, 300))
        wait *= retry["backoff"]["factor"]
    assert retry["backoff"] == {"duration": "15s", "factor": 2, "maxDuration": "5m"}
    assert sum(waits) >= 1800, "an operator with a slow registry"
    flux = argo_cd.FOLDER.parent / "flux" / "scheduling.yaml"
    spec = yaml.safe_load(flux.read_text(encoding="utf-8"))["spec"]
    assert spec["dependsOn"]
    assert spec["retryInterval"] == "1m"


class _Literal(yaml.SafeDumper):
    """Writes texts with several lines as such."""


def _literal(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Literal.add_representer(str, _literal)


@pytest.mark.parametrize("resource", states.OWN, ids=lambda resource: resource.kind)
def test_an_object_of_an_earlier_operator_is_not_healthy(resource: Resource) -> None:
    """It has none of the three conditions: whether it schedules is not known."""
    state = next(iter(argo_cd.fixtures(resource).values()))
    types = (names.READY, names.RECONCILING, names.STALLED)
    conditions = [c for c in state["status"].get("conditions", ()) if c["type"] not in types]
    old = {**state, "status": {**state["status"], "conditions": conditions}}
    assert argo_cd.health(old)["status"] == "Progressing"
    assert argo_cd.health({**old, "status": None})["status"] == "Progressing"


@pytest.mark.parametrize("resource", [*states.OWN, KUBE_SCHEDULERS], ids=lambda one: one.kind)
def test_a_status_that_anybody_may_have_written_has_a_health(resource: Resource) -> None:
    """Only what the CustomResourceDefinition requires is there, and nothing unknown is healthy."""
    for state, found in argo_cd.fixtures(resource).items():
        conditions = found.get("status", {}).get("conditions", [])
        for number, condition in enumerate(conditions):
            least = {k: condition[k] for k in ("type", "status", "lastTransitionTime")}
            others = [*conditions[:number], *conditions[number + 1 :]]
            for changed in (others, [*others, least], [*others, {**least, "status": "Unknown"}]):
                status = {**found["status"], "conditions": changed}
                assert set(argo_cd.health({**found, "status": status})) == {"status", "message"}
        statuses: list[dict[str, Any]] = [
            {},
            {"conditions": []},
            {**found.get("status", {}), "conditions": []},
        ]
        for empty in statuses:
            shown = argo_cd.health({**found, "status": empty})["status"]
            assert shown != "Healthy", state
