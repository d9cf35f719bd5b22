"""What the policies of deploy/admission refuse on a real API server, and that they refuse no more.

Expressions that fail would be let through by the policies as they are; here they count as refusals,
so every test sees as well that none fails and that none is too expensive.
"""

from __future__ import annotations

import copy
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base.platform import PLATFORMS
from kube_scheduler_operator.config.effective.control_plane.compose import compose
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.merging.presets import (
    PRESETS,
    PROFILES,
    profile_fragment,
)
from kube_scheduler_operator.config.language.plugins.in_tree_plugins import default_plugins, plugins
from kube_scheduler_operator.config.language.versions import Version

from ..configurations.by_hand import BAD, GOOD, extenders, fit, profile
from ..configurations.by_hand import args as arguments
from ..configurations.by_hand import plugins as listed
from ..control_plane_inputs import inputs_of
from .conftest import ApiServer, RefusedError
from .policies import SETTLED_SECONDS, Guarded, installed, versions_of

ROOT = Path(__file__).resolve().parents[2]
SHARE = 0.85
MUTATIONS = 300
LONG = pytest.mark.timeout(600, func_only=True)
OVERRIDES = "spec.unsupportedConfigOverrides"


@pytest.fixture(scope="module")
def version(api_server: ApiServer) -> Version:
    return versions_of(api_server)


@pytest.fixture(scope="module")
def guarded(api_server: ApiServer, version: Version) -> Iterator[Guarded]:
    with installed(api_server, str(version)) as one:
        yield one


def accepted(config: Any, version: Version) -> bool:
    """Whether the operator accepts overrides for any profile of any platform."""
    kube_scheduler = {"spec": {"unsupportedConfigOverrides": config}}
    return any(
        not compose(
            inputs_of(platform, version, {"spec": {"profile": name}}, kube_scheduler)
        ).blocking
        for platform in PLATFORMS.values()
        for name in PROFILES
    )


# --- what is refused --------------------------------------------------------------------------

RULES: list[tuple[str, Any, str]] = [
    ("KubeScheduler", {"paralellism": 1}, "has no such field; remove it, or write one of"),
    ("KubeScheduler", {"parallelism": "1"}, "parallelism: must be an integer"),
    ("KubeScheduler", {"parallelism": 0}, "parallelism: must be greater than 0"),
    ("KubeScheduler", {"percentageOfNodesToScore": 101}, "out of range; use 0 to 100"),
    ("KubeScheduler", {"podInitialBackoffSeconds": 11}, "podMaxBackoffSeconds: must not"),
    ("KubeScheduler", {"leaderElection": {"leaderElect": False}}, "leaderElect must stay true"),
    ("KubeScheduler", {"leaderElection": {"leaseDuration": "9s"}}, "greater than renewDeadline"),
    (
        "KubeScheduler",
        {"leaderElection": {"renewDeadline": "10s", "retryPeriod": "9s"}},
        "1.2 times",
    ),
    ("KubeScheduler", {"clientConnection": {"kubeconfig": "/x"}}, "the pod has no other file"),
    ("KubeScheduler", {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"}, "overrides are for"),
    ("KubeScheduler", {"arguments": {"config": "/x"}}, "--config cannot be overridden"),
    ("KubeScheduler", {"arguments": {"--v": 5}}, "is not a flag's name"),
    ("KubeScheduler", {"arguments": {"no-such-flag": 5}}, "has no such flag"),
    ("KubeScheduler", {"arguments": {"v": {}}}, "a flag's value must be"),
    ("KubeScheduler", {"servingInfo": {"bindAddress": "x"}}, "only cipherSuites and minTLS"),
    (
        "KubeScheduler",
        listed("score", "NodeResourceFit"),
        'profiles[0].plugins.score.enabled[0].name: kube-scheduler 1.{minor} has no plugin '
        "NodeResourceFit; did you mean NodeResourcesFit?",
    ),
    *(
        ("KubeScheduler", listed("score", name), f"no plugin {name}; did you mean ImageLocality?")
        for name in (
            "ImageLocalty", "ImageLocalitty", "ImageLokality", "mageLocality", "ImageLocalit",
            "ImageLocalityX", "imagelocality",
        )
    ),
    (
        "KubeScheduler",
        listed("score", "ImagesLocal"),
        "no plugin ImagesLocal; remove it, or see what kubectl scheduler validate FILE suggests",
    ),
    ("KubeScheduler", listed("score", "X"), "no plugin X; remove it"),
    ("KubeScheduler", listed("filter", "ImageLocality"), "not implement filter; list it at score"),
    ("KubeScheduler", listed("multiPoint", "*"), "* is only allowed in disabled"),
    ("KubeScheduler", listed("score", "ImageLocality", "ImageLocality"), "enabled twice"),
    ("KubeScheduler", listed("queueSort", disabled=("*",)), "enable PrioritySort"),
    ("KubeScheduler", listed("bind", disabled=("*",)), "enable DefaultBinder"),
    ("KubeScheduler", {"profiles": [{"schedulerName": "a"}, {}]}, "give every profile a name"),
    ("KubeScheduler", {"profiles": [{"schedulerName": "a"}] * 2}, "name of an earlier profile"),
    ("KubeScheduler", profile(pluginConfig=[{"name": "X"}] * 2), "merge both entries"),
    ("KubeScheduler", arguments("CinderLimits"), "removed in Kubernetes 1.32"),
    ("KubeScheduler", arguments("NodeResourcesFit", strategy=1), "args.strategy: kube-scheduler"),
    ("KubeScheduler", fit(type="Nope"), "use LeastAllocated, MostAllocated or Requested"),
    ("KubeScheduler", extenders({"bindVerb": "b"}, {"bindVerb": "b"}), "and only one can"),
    ("SchedulerProfile", listed("score", "Nope")["profiles"][0],
     "spec.plugins.score.enabled[0].name: kube-scheduler 1.{minor} has no plugin Nope; remove it"),
    ("SchedulerProfile", {"percentageOfNodesToScore": 101}, "percentageOfNodesToScore: is"),
    ("SchedulerProfile", fit(type="Nope")["profiles"][0],
     "spec.pluginConfig[0].args.scoringStrategy.type: is not supported"),
    ("SchedulerProfile", {"scheduler": "other", "plugins": []}, "spec.plugins: must be an"),
    ("SecondaryScheduler", {"config": {"parallelism": 0}}, "spec.config.parallelism: must"),
    ("SecondaryScheduler", listed("score", "Nope"), "spec.profiles[0].plugins.score.enabled[0]"),
    ("SecondaryScheduler", {"profiles": [{}, {}]}, "spec.profiles[1].schedulerName: is requi"),
    (
        "SecondaryScheduler",
        {"image": "registry.example/kube-scheduler:v1.34.2", **listed("filter", "GangScheduling")},
        "kube-scheduler 1.34 has no plugin GangScheduling",
    ),
    ("Scheduler", {"policy": {"name": "old"}},
     "spec.policy.name: the Policy old is not used, because Kubernetes 1.23 removed Policy; "),
]  # fmt: skip


@pytest.mark.presubmit
def test_every_rule_names_the_field_and_the_fix(guarded: Guarded, version: Version) -> None:
    for kind, spec, part in RULES:
        overrides = kind == "KubeScheduler"
        found = guarded.overrides(spec) if overrides else guarded.refusal(kind, spec)
        assert part.format(minor=version.minor) in found, (kind, spec, found)
        assert found.startswith(OVERRIDES if overrides else "spec."), found


def test_several_mistakes_are_reported_together_up_to_a_limit(guarded: Guarded) -> None:
    message = guarded.overrides({"parallelism": 0, "percentageOfNodesToScore": -1})
    assert "parallelism: must" in message
    assert "percentageOfNodesToScore: is out" in message
    many = [f"Nope{number}" for number in range(60)]
    message = guarded.overrides(listed("score", *many))
    assert message.endswith("and more")
    assert "Nope9;" in message
    assert "Nope10;" not in message


# --- what is not ------------------------------------------------------------------------------


def examples() -> Iterator[Any]:
    """Overrides in the documentation, except those that show an error."""
    for page in sorted({*(ROOT / "docs").glob("*.md")} - {ROOT / "docs" / "rules.md"}):
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL):
            for document in yaml.safe_load_all(block):
                spec = (document.get("spec") or {}) if isinstance(document, dict) else {}
                if "unsupportedConfigOverrides" in spec:
                    yield spec["unsupportedConfigOverrides"]


VALID: list[Any] = [
    {},
    {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"},
    {"parallelism": None, "profiles": None, "extenders": None},
    {"parallelism": 5.0},
    {"arguments": {"v": 5, "feature_gates": "AllAlpha=false", "profiling": None}},
    {"arguments": {"tls-cipher-suites": ["TLS_AES_128_GCM_SHA256"]}},
    {"servingInfo": {"minTLSVersion": "VersionTLS12", "cipherSuites": None}},
    {"leaderElection": {"leaseDuration": "60s", "renewDeadline": "40s", "retryPeriod": "5s"}},
    {"leaderElection": {"leaseDuration": None, "resourceLock": ""}},
    {"leaderElection": {"leaseDuration": "1h"}, "arguments": {"leader_elect_renew_deadline": "9s"}},
    fit(resources=[{"name": "cpu", "weight": 3}]),
    profile(plugins={"score": {"disabled": [{"name": "*"}]}, "filter": None}),
    profile(plugins={"bind": {"disabled": [{"name": "*"}]}}),
    *[profile_fragment(name) for name in PRESETS],
    *examples(),
]


@pytest.mark.presubmit
def test_valid_overrides_pass(guarded: Guarded, version: Version) -> None:
    every = [
        listed(point, name)
        for name, plugin in plugins(version).items()
        for point in (*plugin.points_at(version.minor), "multiPoint")
        if point not in ("queueSort", "bind")
    ]
    assert len(list(examples())) > 0
    assert len(every) > 50
    assert {guarded.overrides(config) for config in (*VALID, *every)} == {""}


@pytest.mark.presubmit
def test_profiles_pass_as_objects_of_their_own(guarded: Guarded) -> None:
    for name in PRESETS:
        for one in profile_fragment(name).get("profiles", [{}]):
            spec = {**one, "schedulerName": "team-a", "base": name}
            assert guarded.refusal("SchedulerProfile", spec) == ""
            secondary = {"namespace": "x", "replicas": 2, "profiles": [one]}
            assert guarded.refusal("SecondaryScheduler", secondary) == ""


def test_secondary_schedulers_may_have_other_plugins(guarded: Guarded) -> None:
    unknown = listed("score", "Mine")
    spec = {"scheduler": "mine", **unknown["profiles"][0]}
    assert guarded.refusal("SchedulerProfile", spec) == ""
    image = "registry.example/mine:v1"
    assert guarded.refusal("SecondaryScheduler", {"image": image, **unknown}) == ""


@LONG
def test_no_configuration_that_the_operator_accepts_is_denied(
    guarded: Guarded, version: Version
) -> None:
    refused = {
        name: message
        for name, config in {**GOOD, **BAD}.items()
        if accepted(config, version) and (message := guarded.overrides(config))
    }
    assert refused == {}


@LONG
def test_most_configurations_that_the_operator_rejects_are_denied(
    guarded: Guarded, version: Version
) -> None:
    bad = {name: config for name, config in BAD.items() if not accepted(config, version)}
    missed = [name for name, config in bad.items() if not guarded.overrides(config)]
    assert len(bad) > 70
    assert len(missed) <= (1 - SHARE) * len(bad), missed


VALUES: list[Any] = [
    None, 0, 1, -1, 5.0, 1.5, 101, 2**31, True, "", "x", "5s", "*", "List", "ImageLocality", [], {},
    [{}], [None], {"name": "cpu"}, [{"name": "DefaultBinder"}], "a b",
]  # fmt: skip


def mutated(config: Any, dice: random.Random) -> Any:
    """A copy in which something is another value, is missing, is there twice or has another key."""
    config = copy.deepcopy(config)
    places: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        keys = value.keys() if isinstance(value, dict) else range(len(value))
        for key in keys:
            places.append((value, key))
            if isinstance(value[key], dict | list):
                walk(value[key])

    walk(config)
    if not places:
        return {"parallelism": dice.choice(VALUES)}
    owner, key = dice.choice(places)
    kind = dice.randrange(4)
    if kind == 0:
        del owner[key]
    elif kind == 1 and isinstance(owner, list):
        owner.append(copy.deepcopy(owner[key]))
    elif kind == 2 and isinstance(owner, dict):
        owner[f"{key}X"] = owner.pop(key)
    else:
        owner[key] = dice.choice(VALUES)
    return config


def has_null_entry(value: Any) -> bool:
    """Whether null is an entry of a list somewhere."""
    if isinstance(value, dict):
        return any(map(has_null_entry, value.values()))
    return isinstance(value, list) and (None in value or any(map(has_null_entry, value)))


@LONG
def test_no_mutation_that_the_operator_accepts_is_denied(
    guarded: Guarded, version: Version
) -> None:
    dice = random.Random(6)
    tables = [*GOOD.values(), *BAD.values()]
    refused, wrong = 0, []
    for _ in range(MUTATIONS):
        config = mutated(dice.choice(tables), dice)
        if has_null_entry(config):
            continue  # kube-scheduler decodes it as an empty entry, which is never intended
        message = guarded.overrides(config)
        refused += bool(message)
        if message and accepted(config, version):
            wrong.append((config, message))
    assert wrong == []
    assert refused > MUTATIONS // 3


def test_a_large_configuration_is_not_too_expensive(guarded: Guarded, version: Version) -> None:
    names = [name for name, _ in default_plugins(Gates(version))]
    score = [name for name in names if "score" in plugins(version)[name].points_at(version.minor)]
    one = {
        "plugins": {
            "multiPoint": {"enabled": [{"name": name} for name in names]},
            "score": {"enabled": [{"name": name, "weight": 2} for name in score]},
        },
        "pluginConfig": [
            entry
            for config in (GOOD["most allocated"], GOOD["affinity"], GOOD["default constraints"])
            for entry in config["profiles"][0]["pluginConfig"]
        ],
    }
    many = [{"schedulerName": f"s{number}", **one} for number in range(20)]
    assert guarded.overrides({"profiles": many, **GOOD["extender"]}) == ""


def test_many_misspelt_plugins_are_not_too_expensive(guarded: Guarded) -> None:
    profiles = [
        {"schedulerName": f"s{number}", **listed("score", *["NodeResourcesFt"] * 20)["profiles"][0]}
        for number in range(5)
    ]
    message = guarded.overrides({"profiles": profiles})
    assert "did you mean NodeResourcesFit?" in message or "too many mistakes" in message


# --- versions and repairs ----------------------------------------------------------------------


@pytest.mark.presubmit
@LONG
def test_the_version_is_the_one_that_the_operator_reports(
    guarded: Guarded, version: Version
) -> None:
    newer = listed("placementScore", "NodeResourcesFit")
    try:
        guarded.report("v1.36.0")
        guarded.settle(newer, refused=False)
        guarded.report("v1.34.2")
        guarded.settle(newer, refused=True)
        assert "was added in Kubernetes 1.36" in guarded.overrides(newer)
        # Nothing is known of a newer one, so names and fields pass; types and ranges do not.
        guarded.report("v1.99.0")
        guarded.settle({**listed("score", "NotYet"), "notYet": 1}, refused=False)
        assert guarded.overrides({"parallelism": 0})
        # Before the first rollout is over: what any version on record has.
        guarded.report("")
        guarded.settle(listed("score", "NotYet"), refused=True)
        assert guarded.overrides(newer) == ""
        assert guarded.overrides(listed("filter", "EBSLimits")) == ""
    finally:
        guarded.report(str(version))
        guarded.settle({"notYet": 1}, refused=True)


def test_existing_mistakes_do_not_block_edits(guarded: Guarded) -> None:
    """Other fields can be repaired while the mistake exists."""
    spec = {"unsupportedConfigOverrides": {"parallelism": 0}}
    obj = guarded.object("KubeScheduler", spec)
    path = f"{guarded.path('KubeScheduler')}/{obj['metadata']['name']}"
    labels = obj["metadata"].pop("labels")  # not selected by a policy yet
    guarded.server.request("POST", guarded.path("KubeScheduler"), obj)
    try:
        now = guarded.server.request("GET", path)
        now["metadata"]["labels"] = labels
        now["spec"]["managementState"] = "Unmanaged"
        now = guarded.server.request("PUT", path, now)
        now["status"] = {"latestAvailableRevision": 1}
        now = guarded.server.request("PUT", f"{path}/status", now)
        now["spec"]["unsupportedConfigOverrides"]["parallelism"] = -1
        with pytest.raises(RefusedError, match="parallelism: must be greater than 0"):
            guarded.server.request("PUT", path, now)
        now["spec"]["unsupportedConfigOverrides"] = None
        guarded.server.request("PUT", path, now)
    finally:
        guarded.server.request("DELETE", path)


@LONG
def test_a_policy_that_only_warns_lets_mistakes_pass(
    api_server: ApiServer, version: Version, tmp_path: Path
) -> None:
    with installed(api_server, str(version), actions=("Warn", "Audit")) as warned:
        obj = warned.object("KubeScheduler", {"unsupportedConfigOverrides": {"parallelism": 0}})
        file = tmp_path / "wrong.yaml"
        file.write_text(yaml.safe_dump(obj))
        command = ("create", "--dry-run=server", "-f", str(file))
        end, message = time.monotonic() + SETTLED_SECONDS, ""
        while not message:
            assert time.monotonic() < end, "no warning"
            try:
                api_server.kubectl(*command, "--warnings-as-errors")
            except RefusedError as error:
                message = str(error)
        assert "parallelism: must be greater than 0" in message
        assert "created" in api_server.kubectl(*command)


@LONG
def test_plugins_of_a_custom_image_can_be_listed(api_server: ApiServer, version: Version) -> None:
    with installed(api_server, str(version), extra='["Mine"]') as own:
        assert own.overrides(listed("score", "Mine")) == ""
        assert "has no plugin Yours" in own.overrides(listed("score", "Yours"))
