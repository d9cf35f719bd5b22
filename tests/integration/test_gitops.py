"""What tools for GitOps see: apply, refuse, mend, wait and drift on a real API server; kstatus.

The cluster is that of test_managed.py, where every kind can come into use without control-plane
nodes. The annotator's report is played.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster import go_programs
from cluster.api import ApiError
from kube_scheduler_operator.kube.resource import KUBE_SCHEDULERS

from ..conftest import Golden
from ..expect import condition_of
from ..unit.gitops import argo_cd, states, test_flux
from . import test_managed
from .conftest import REPOSITORY
from .harness import NAMESPACE, now
from .played_cluster import CORE, GROUP, brought_up

pytestmark = pytest.mark.timeout(600, func_only=True)

PAGE = REPOSITORY / "docs" / "gitops.md"
BEGIN, END = (
    "<!-- states: written by tests/integration/test_gitops.py -->",
    "<!-- end of states -->",
)
FIRST = {"name": "ImageLocality", "weight": 2}
SPECS: dict[str, dict[str, Any]] = {
    "secondaryschedulers/batch": {"namespace": NAMESPACE, "replicas": 1},
    "schedulerprofiles/team": {"scheduler": "batch", "plugins": {"score": {"enabled": [FIRST]}}},
    "schedulerprofiles/everyone": {"percentageOfNodesToScore": 50},
    "schedulerextenders/external": {
        "scheduler": "batch", "url": "http://10.0.0.1/x", "verbs": {"filter": "filter"},
    },
    "schedulerextenders/safe": {
        "scheduler": "batch",
        "agent": {"policies": [{"name": "safe-overload", "arguments": {"utilization": 80}}]},
    },
    "loadpolicies/default": {"source": {"type": "MetricsServer"}},
    "operatorsettings/cluster": {"pods": {"resources": {"requests": {"cpu": "20m"}}}},
}  # fmt: skip
"""Valid objects of every kind, as they are in Git, by resource and name."""
BAD: dict[str, tuple[dict[str, Any], str]] = {
    "secondaryschedulers/batch": (
        {"profiles": [{"schedulerName": "batch", "plugins": {"score": {"enabled": [
            {"name": "ImageLocalty"}]}}}]},
        "spec.profiles[0].plugins.score.enabled[0].name: ",
    ),
    "schedulerprofiles/team": (
        {"plugins": {"score": {"enabled": [{"name": "ImageLocalty"}]}}},
        "spec.plugins.score.enabled[0].name: ",
    ),
    "schedulerextenders/safe": (
        {"agent": {"policies": [{"name": "safe-overlord"}]}}, "spec.agent.policies[0].name: ",
    ),
    "loadpolicies/default": ({"craneTimeZone": "Mars/Olympus"}, "spec.craneTimeZone: "),
    "operatorsettings/cluster": (
        {"pods": {"resources": {"requests": {"cpu": "many"}}}},
        "spec.pods.resources.requests.cpu: ",
    ),
}  # fmt: skip
"""Fields with an error, and what the message has."""


class World(test_managed.World):
    """Every pod becomes Ready, those of the annotator as well."""

    def pods(self, name: str = "") -> list[dict[str, Any]]:
        return super().pods(name) if name else self.listed(f"{CORE}/pods")

    def kubectl(self, *arguments: str, text: str = "", code: int = 0) -> str:
        """Run kubectl; returns what it printed.

        Raises:
            AssertionError: it did not end with `code`.
        """
        program = [
            str(self.sandbox.state / "bin/kubectl"),
            f"--kubeconfig={self.sandbox.kubeconfig}",
        ]
        done = subprocess.run(
            [*program, *arguments], input=text, capture_output=True, text=True, timeout=120,
            check=False,
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def apply(self, *objects: dict[str, Any]) -> str:
        """As a tool that applies what is in Git."""
        return self.kubectl(
            "apply", "--server-side", "--field-manager=git", "-f", "-", text=_documents(objects)
        )

    def of(self, path: str) -> dict[str, Any]:
        return self.get(f"{GROUP}/{path}")

    def wait_ready(self, *paths: str) -> None:
        """By kubectl, as a script would; the annotator reports a cycle meanwhile."""
        for path in paths:
            if path.startswith("loadpolicies"):
                self.cycle(path.rpartition("/")[2])
            resource = path.replace("/", f".{GROUP.split('/')[2]}/")
            self.kubectl("wait", "--for=condition=Ready", "--timeout=60s", resource)

    def cycle(self, name: str) -> None:
        """Write the annotator's report of a cycle with the current policy."""

        def written() -> bool:
            try:
                text = self.get(f"{CORE}/configmaps/load-policy-{name}")["data"]["policy.json"]
                state = {
                    "at": now(), "nodes": 3, "known": 3, "staleCount": 0, "missingCount": 0,
                    "policy": hashlib.sha256(text.encode()).hexdigest()[:10],
                }  # fmt: skip
                data = {"data": {"state.json": json.dumps(state)}}
                self.api.request("PATCH", f"{CORE}/configmaps/load-state", data)
            except ApiError:
                return False
            return condition_of(self.of(f"loadpolicies/{name}"), "Ready")[0] == "True"

        self.wait(written, 60, lambda: self.of(f"loadpolicies/{name}"))


def _object(path: str, **fields: Any) -> dict[str, Any]:
    resource, name = path.split("/")
    kind = next(one.kind for one in states.OWN if one.plural == resource)
    version = GROUP.removeprefix("/apis/")
    spec = {**SPECS[path], **fields}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _documents(objects: tuple[dict[str, Any], ...]) -> str:
    return yaml.safe_dump_all(objects, sort_keys=False)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with brought_up(World, "go", tmp_path_factory.mktemp("operator")) as found:
        found.start()
        yield found


@pytest.fixture
def applied(world: World) -> World:
    """The cluster, with what is in Git; every object is Ready."""
    world.start()
    world.apply(*map(_object, SPECS))
    world.wait_ready(*SPECS)
    return world


@pytest.mark.presubmit
def test_every_kind_becomes_ready_and_kubectl_wait_ends(applied: World) -> None:
    listed = applied.kubectl("get", "kube-scheduler", "-o", "name")
    for path in SPECS:
        obj = applied.of(path)
        group = GROUP.split("/")[2]
        assert f"{obj['kind'].lower()}.{group}/{obj['metadata']['name']}" in listed
        assert obj["status"]["observedGeneration"] == obj["metadata"]["generation"]


def test_short_names_columns_and_selectable_fields(applied: World) -> None:
    for short in ("lpol", "opset", "sext", "sprof", "ssched"):
        head, *rows = applied.kubectl("get", short).splitlines()
        assert ("READY" in head, "REASON" in head) == (True, True)
        assert rows
        assert all("True" in row and "AsExpected" in row for row in rows)
    for field, expected in (("scheduler=batch", {"team"}), ("scheduler=", {"everyone"})):
        found = applied.kubectl("get", "sprof", f"--field-selector=spec.{field}", "-o", "name")
        assert {line.rpartition("/")[2] for line in found.split()} == expected


@pytest.mark.parametrize("path", BAD)
def test_a_refused_object_is_stalled_with_its_field_and_a_mended_one_is_ready(
    applied: World, path: str
) -> None:
    fields, message = BAD[path]
    applied.apply(_object(path, **fields))
    applied.kubectl("wait", "--for=condition=Stalled", "--timeout=60s", f"{path}")
    obj = applied.of(path)
    assert message in condition_of(obj, "Stalled")[2]
    assert condition_of(obj, "Ready")[0] == "False"
    assert condition_of(obj, "Reconciling")[0] == "False"
    assert obj["status"]["observedGeneration"] == obj["metadata"]["generation"]
    applied.apply(_object(path))
    applied.wait_ready(path)
    assert condition_of(applied.of(path), "Stalled")[0] == "False"


def test_an_edit_is_not_ready_before_its_pods_run_it(applied: World) -> None:
    """Neither the scheduler nor the profile; another profile of the cluster stays Ready."""
    path, scheduler, hold = "schedulerprofiles/team", "secondaryschedulers/batch", applied.pending

    def state(of: str, type_: str) -> str:
        return condition_of(applied.of(of), type_)[0]

    applied.pending = lambda pod: None  # type: ignore[method-assign]
    try:
        second = {"name": "ImageLocality", "weight": int(time.monotonic()) % 90 + 3}
        applied.apply(_object(path, plugins={"score": {"enabled": [second]}}))
        applied.wait(lambda: state(path, "Reconciling") == "True")
        applied.wait(lambda: state(scheduler, "Reconciling") == "True")
        seen = [state(one, "Ready") for one in (path, "schedulerprofiles/everyone")]
    finally:
        applied.pending = hold  # type: ignore[method-assign]
    applied.wait_ready(path, scheduler)
    assert seen == ["False", "True"]


def test_an_object_that_no_operator_has_seen_is_not_ready(applied: World) -> None:
    applied.operator.kill()
    body = _object("schedulerprofiles/everyone", schedulerName="late")
    body["metadata"] = {"name": "late"}
    applied.apply(body)
    assert applied.of("schedulerprofiles/late")["status"] == {"observedGeneration": -1}
    applied.kubectl(
        "wait", "--for=condition=Ready", "--timeout=1s", "schedulerprofile/late", code=1
    )
    applied.start()
    applied.wait_ready("schedulerprofiles/late")
    applied.kubectl("delete", "schedulerprofile", "late")


# --- kstatus -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kstatus() -> Path:
    return go_programs.provide("kstatus", "do without the status that Flux and Helm compute")


def computed(program: Path, objects: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The status and message of each object by kstatus' own library."""
    done = subprocess.run(
        [program], input=json.dumps(objects), capture_output=True, text=True, check=True, timeout=60
    )
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


def test_what_argo_cd_flux_and_helm_show_of_every_state(kstatus: Path, golden: Golden) -> None:
    """The table of the page; the fixtures are what the operator reports (tests/unit/gitops)."""
    lines = [
        "| Kind | State | Ready | Reconciling | Stalled | Reason | Argo CD | Flux, Helm |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for resource in states.KINDS:
        fixtures = argo_cd.fixtures(resource)
        results = computed(kstatus, list(fixtures.values()))
        for (state, obj), result in zip(fixtures.items(), results, strict=True):
            lines.append(_row(resource.kind, state, obj, result["status"]))
            _agree(resource.kind in {own.kind for own in states.OWN}, obj, result)
    table = "\n".join(lines)
    print(table)
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    golden(PAGE, f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}")


def _row(kind: str, state: str, obj: dict[str, Any], status: str) -> str:
    if kind == KUBE_SCHEDULERS.kind and status != "Terminating":
        status = f"{test_flux.status(obj)} by the expressions for Flux, else {status}"
    ready, reconciling, stalled = (
        condition_of(obj, type_) for type_ in ("Ready", "Reconciling", "Stalled")
    )
    values = [one[0] or "-" for one in (ready, reconciling, stalled)]
    cells = (kind, state, *values, ready[1] or "-", argo_cd.health(obj)["status"], status)
    return f"| {' | '.join(cells)} |"


def _agree(own: bool, obj: dict[str, Any], result: dict[str, str]) -> None:
    """Argo CD and kstatus say the same, in the words that each has."""
    health = argo_cd.health(obj)["status"]
    if own:
        assert (
            health
            in {
                "Current": ("Healthy",),
                "Failed": ("Degraded", "Suspended"),
                "InProgress": ("Progressing", "Suspended"),
                "Terminating": ("Progressing",),
            }[result["status"]]
        )
    stalled = condition_of(obj, "Stalled")
    if result["status"] == "Failed":
        assert result["message"] == stalled[2]
