"""The manifests of docs/examples: each is accepted and works as described."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.crd_schema import validate_object
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.control_plane.compose import (
    Composition,
    compose,
)
from kube_scheduler_operator.config.language.merging.presets import BIN_PACKING, profile_fragment
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.scheduling.load.policy import NODE_METRICS, LoadPolicy
from kube_scheduler_operator.scheduling.load.policy_files import read_spec

from ..control_plane_inputs import inputs_of

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = sorted(
    path
    for path in (DOCS / "examples").glob("*.yaml")
    if "kind: SchedulerProfile\n" in path.read_text()
)


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def composed(*objects: dict[str, Any], minor: int = 35) -> Composition:
    return compose(
        inputs_of(
            platform=KUBEADM,
            default_version=Version(1, minor),
            scheduler={"spec": {}},
            kubescheduler={"spec": {}},
            profiles=objects,
        )
    )


def running(composition: Composition, name: str, point: str) -> list[tuple[str, int]]:
    (result,) = (v for v in composition.results if v.name == name)
    return [(entry.name, entry.weight) for entry in result.points.get(point, ())]


@pytest.mark.parametrize("minor", range(29, 37))
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_every_example_is_accepted_by_every_version(path: Path, minor: int) -> None:
    objects = documents(path)
    composition = composed(*objects, minor=minor)
    assert composition.findings == ()
    assert [v.accepted for v in composition.results] == [True] * len(objects)


def test_all_examples_together_are_one_configuration() -> None:
    composition = composed(*(one for path in EXAMPLES for one in documents(path)))
    assert composition.findings == ()
    assert [p["schedulerName"] for p in (composition.config or {})["profiles"]] == [
        "default-scheduler", "bin-packing", "image-locality-only", "my-scheduler",
        "my-scheduler2", "my-scheduler3",
    ]  # fmt: skip


def test_image_locality_is_the_only_score_and_every_filter_stays() -> None:
    stock = composed({"metadata": {"name": "stock"}, "spec": {}})
    composition = composed(*documents(DOCS / "examples" / "image-locality.yaml"))
    assert running(composition, "default-scheduler", "score") == [("ImageLocality", 10)]
    assert running(composition, "default-scheduler", "preScore") == []
    for point in ("preFilter", "filter", "reserve", "bind"):
        assert running(composition, "default-scheduler", point) == running(stock, "stock", point)


def test_the_demos_profile_runs_only_the_listed_plugins() -> None:
    composition = composed(*documents(DOCS / "examples" / "image-locality-only.yaml"))
    (result,) = composition.results
    names = {point: [e.name for e in entries] for point, entries in result.points.items()}
    del names["preEnqueue"]  # scheduling gates are not part of what the demo disabled
    assert names == {
        "queueSort": ["PrioritySort"],
        "filter": ["TaintToleration"],
        "score": ["ImageLocality"],
        "bind": ["DefaultBinder"],
    }


def test_three_profiles_differ_in_scores_only() -> None:
    composition = composed(*documents(DOCS / "examples" / "three-profiles.yaml"))
    scores = {v.name: dict(running(composition, v.name, "score")) for v in composition.results}
    assert "TaintToleration" not in scores["my-scheduler"]
    assert (
        scores["my-scheduler"]["NodeResourcesFit"],
        scores["my-scheduler"]["ImageLocality"],
    ) == (
        2,
        3,
    )
    assert scores["my-scheduler2"] == {}
    assert scores["my-scheduler3"]["TaintToleration"] == 3
    filters = [running(composition, v.name, "filter") for v in composition.results]
    assert filters[0] == filters[1] == filters[2]


def test_the_page_names_every_example_and_its_own_yaml_is_accepted() -> None:
    page = (DOCS / "profiles.md").read_text()
    assert set(re.findall(r"\(examples/([\w.-]+)\)", page)) == {path.name for path in EXAMPLES}
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert composed(yaml.safe_load(shown)).findings == ()


def test_the_example_that_packs_has_the_profile_of_the_base() -> None:
    (profile,) = of_kind("packed-by-namespace.yaml", "SecondaryScheduler")["spec"]["profiles"]
    (base,) = profile_fragment(BIN_PACKING)["profiles"]
    assert {**profile, "schedulerName": base["schedulerName"]} == base
    assert of_kind("bin-packing.yaml", "SchedulerProfile")["spec"] == {"base": BIN_PACKING}


# --- load-aware scheduling ----------------------------------------------------------------------


LOAD_AWARE = ("load-aware.yaml", "load-aware-cluster.yaml", "load-aware-managed.yaml")
EXTENDERS = tuple(
    path.name
    for path in sorted((DOCS / "examples").glob("*.yaml"))
    if "kind: SchedulerExtender\n" in path.read_text() and path.name not in LOAD_AWARE
)


def of_kind(path: str, kind: str) -> dict[str, Any]:
    (obj,) = (one for one in documents(DOCS / "examples" / path) if one["kind"] == kind)
    return obj


@pytest.mark.parametrize("path", LOAD_AWARE)
def test_the_load_aware_examples_have_cranes_policy(path: str) -> None:
    policy = read_spec(of_kind(path, "LoadPolicy")["spec"]).policy
    assert policy is not None
    assert replace(policy, source=LoadPolicy().source) == LoadPolicy()


def test_the_example_for_managed_control_planes_needs_no_access_to_nodes() -> None:
    """Their namespace enforces Pod Security restricted, which refuses node-metrics."""
    policy = read_spec(of_kind("load-aware-managed.yaml", "LoadPolicy")["spec"]).policy
    assert policy is not None
    assert policy.source.type != NODE_METRICS


@pytest.mark.parametrize("path", [*LOAD_AWARE, *EXTENDERS])
def test_every_object_matches_its_schema(path: str) -> None:
    definitions = {
        "LoadPolicy": names.LOADPOLICIES,
        "SchedulerExtender": names.SCHEDULEREXTENDERS,
        "SecondaryScheduler": names.SECONDARYSCHEDULERS,
    }
    objects = [each for each in documents(DOCS / "examples" / path) if each["kind"] in definitions]
    assert objects
    for obj in objects:
        definition = f"{definitions[obj['kind']]}.yaml"
        assert list(validate_object(obj, definition, "v1alpha1")) == []


@pytest.mark.parametrize("path", LOAD_AWARE)
def test_the_extender_uses_the_load_policy_of_the_example(path: str) -> None:
    extender = of_kind(path, "SchedulerExtender")["spec"]
    assert extender["agent"]["loadPolicy"] == of_kind(path, "LoadPolicy")["metadata"]["name"]
    kinds = [one["kind"] for one in documents(DOCS / "examples" / path)]
    secondary = "SecondaryScheduler" in kinds
    assert ("scheduler" in extender) == secondary
    if secondary:
        second = of_kind(path, "SecondaryScheduler")["metadata"]["name"]
        assert extender["scheduler"] == second
        for pods in ("cpu-stress.yaml", "nginx.yaml"):
            spec = of_kind(pods, "Deployment")["spec"]["template"]["spec"]
            assert spec["schedulerName"] == second


_SERVERS = ("SchedulerProfile", "SecondaryScheduler")
_SHOWN = (*_SERVERS, "SchedulerExtender", "LoadPolicy")
ALTERNATIVES = {"my-scheduler", "my-scheduler2", "my-scheduler3", "crane-scheduler"}
"""schedulerNames of examples that show one scheduler in several ways."""


def shown_objects() -> list[tuple[str, dict[str, Any]]]:
    """What the pages and the examples let readers apply; rules.md has what is refused."""
    pages = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    texts = [
        (page.name, text)
        for page in pages
        if page.name != "rules.md"
        for text in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
        if any(f"kind: {kind}\n" in text for kind in _SHOWN)
    ]
    texts += [(path.name, path.read_text()) for path in sorted((DOCS / "examples").glob("*.yaml"))]
    return [
        (source, obj)
        for source, text in texts
        for obj in yaml.safe_load_all(text)
        if obj and obj.get("kind") in _SHOWN
    ]


def scheduler_names(obj: dict[str, Any]) -> list[str]:
    """The schedulerNames that an object claims."""
    name, spec = obj["metadata"]["name"], obj["spec"]
    if obj["kind"] == "SchedulerProfile":
        return [spec.get("schedulerName", name)]
    return [entry.get("schedulerName", name) for entry in spec.get("profiles", [{}])]


def test_no_two_objects_of_the_pages_claim_one_scheduler_name() -> None:
    """A reader may apply the examples of several pages."""
    claims: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for _, obj in shown_objects():
        for name in scheduler_names(obj) if obj["kind"] in _SERVERS else ():
            claims[name].add((obj["kind"], obj["metadata"]["name"]))
    assert {name for name, owners in claims.items() if len(owners) > 1} <= ALTERNATIVES
    assert {"images-first", "packed", "dense", "packed-on-aks", "bin-packing"} <= claims.keys()


def test_no_object_of_a_page_replaces_one_of_another_page_or_example() -> None:
    sources: dict[tuple[str, str], list[str]] = defaultdict(list)
    for source, obj in shown_objects():
        sources[obj["kind"], obj["metadata"]["name"]].append(source)
    repeated = {
        owner: where
        for owner, where in sources.items()
        if len(where) > 1 and any(source.endswith(".md") for source in where)
    }
    # The page shows a part of the example.
    parts = ["assignment.md", "packed-by-namespace.yaml"]
    assert repeated == {("SecondaryScheduler", "packed"): parts}
