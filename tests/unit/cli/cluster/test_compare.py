"""What changed between two revisions: in words, by meaning; and line by line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.cli.cluster.compare import changes, parse_revision, unified
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent

from ..conftest import IMAGE, content

LOW, HIGH, NONE = "LowNodeUtilization", "HighNodeUtilization", "NoScoring"


def overridden(**overrides: Any) -> RevisionContent:
    return content(unsupportedConfigOverrides=overrides)


def profile(**fields: Any) -> RevisionContent:
    return overridden(profiles=[{"schedulerName": "default-scheduler", **fields}])


def plugins(**points: Any) -> RevisionContent:
    return profile(plugins=points)


def extended(*urls: str, **fields: Any) -> RevisionContent:
    return overridden(extenders=[{"urlPrefix": url, **fields} for url in urls])


FIT = {"scoringStrategy": {"type": "MostAllocated"}}


@pytest.mark.parametrize(
    ("before", "after", "output"),
    [
        (content(), content(), []),
        (content(), content(LOW), []),
        (content(logLevel="Normal"), content(logLevel="Debug"), ["-v: 2 → 4"]),
        (
            content(),
            content(image=IMAGE.replace("35.4", "35.5")),
            [f"image: {IMAGE} → {IMAGE.replace('35.4', '35.5')}"],
        ),
        (
            content(),
            overridden(arguments={"kube-api-qps": 5, "leader-elect-retry-period": "3s"}),
            ["--kube-api-qps=5 added", "--leader-elect-retry-period=3s added"],
        ),
        (overridden(arguments={"vmodule": "a=5"}), content(), ["--vmodule=a=5 removed"]),
        (overridden(parallelism=8), overridden(parallelism=9), ["parallelism: 8 → 9"]),
        (content(), overridden(enableProfiling=True), ["enableProfiling: false → true"]),
        (
            content(forceRedeploymentReason="a"),
            content(forceRedeploymentReason="b"),
            ['forceRedeploymentReason: "b"'],
        ),
        (
            content(LOW),
            content(HIGH),
            [
                "profile default-scheduler: NodeResourcesBalancedAllocation off at score",
                "profile default-scheduler: weight of NodeResourcesFit at score: 1 → 5",
                "profile default-scheduler: pluginConfig.NodeResourcesFit: "
                '{"scoringStrategy": {"type": "MostAllocated"}} added',
            ],
        ),
        (
            profile(percentageOfNodesToScore=10),
            profile(percentageOfNodesToScore=20),
            ["profile default-scheduler: percentageOfNodesToScore: 10 → 20"],
        ),
        (
            extended("http://a", "https://me:secret@b/x"),
            extended("http://c", "http://a"),
            ["extender https://b/x removed", "extender http://c added"],
        ),
        (
            extended("http://a", "http://b", weight=1),
            extended("http://b", "http://a", weight=2),
            [
                "extender http://a: weight: 1 → 2",
                "extender http://b: weight: 1 → 2",
                "order of extenders: http://b, http://a",
            ],
        ),
        (
            extended("http://a", "http://a"),
            extended("http://a"),
            [
                'extenders: [{"urlPrefix": "http://a"}, {"urlPrefix": "http://a"}] → '
                '[{"urlPrefix": "http://a"}]'
            ],
        ),
        (
            content(),
            overridden(profiles=[{"schedulerName": "second"}]),
            ["profile default-scheduler removed", "profile second added"],
        ),
        (
            plugins(filter={"disabled": [{"name": "TaintToleration"}, {"name": "NodeName"}]}),
            plugins(filter={"disabled": [{"name": "NodeName"}]}),
            ["profile default-scheduler: TaintToleration on at filter"],
        ),
        (
            content(),
            plugins(multiPoint={"enabled": [{"name": "ImageLocality", "weight": 3}]}),
            ["profile default-scheduler: weight of ImageLocality at score: 1 → 3"],
        ),
        (
            plugins(score={"disabled": [{"name": "ImageLocality"}]}),
            plugins(score={"disabled": [{"name": "ImageLocality"}, {"name": "NodePorts"}]}),
            ["profile default-scheduler: plugin lists changed without an effect"],
        ),
        (
            content(),
            plugins(filter={"enabled": [{"name": "NodeAffinity"}, {"name": "NodeName"}]}),
            ["order at filter"],
        ),
    ],
    ids=lambda value: (
        "" if isinstance(value, RevisionContent) else (value[0] if value else "nothing")[:40]
    ),
)
def test_changes_in_words(
    before: RevisionContent, after: RevisionContent, output: list[str]
) -> None:
    found = list(changes(parse_revision(before), parse_revision(after)))
    if output == ["order at filter"]:
        assert len(found) == 1
        assert found[0].startswith(
            "profile default-scheduler: order at filter: NodeAffinity, NodeN"
        )
    else:
        assert found == output


def test_scores_that_are_switched_off_are_named_by_point() -> None:
    found = changes(parse_revision(content(LOW)), parse_revision(content(NONE)))
    assert all(" off at " in line for line in found)
    assert any(line.endswith(" off at preScore, score") for line in found)
    back = changes(parse_revision(content(NONE)), parse_revision(content(LOW)))
    assert [line.replace(" on at ", " off at ") for line in back] == list(found)


@pytest.mark.parametrize("text", ["{", "[]", "", '{"profiles": {"a": 1}}'])
def test_content_that_cannot_be_parsed_is_compared_as_text(text: str) -> None:
    good = content()
    broken = RevisionContent({**good.parts, names.CONFIG: {names.CONFIG_KEY: text}})
    assert changes(parse_revision(good), parse_revision(broken))
    assert unified(parse_revision(good), parse_revision(broken), ("a", "b"))


def test_difference_in_the_pod_alone_is_reported() -> None:
    good = content()
    pod = json.loads(good.parts[names.POD][names.POD_KEY])
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "1"
    data = {**good.parts[names.POD], names.POD_KEY: json.dumps(pod)}
    (output,) = changes(
        parse_revision(good), parse_revision(RevisionContent({**good.parts, names.POD: data}))
    )
    where = "the pod's spec.containers.kube-scheduler.resources.requests.cpu"
    assert output == f'{where}: "100m" → "1"'


def test_the_diff_shows_flags_one_per_line_and_the_configuration_as_yaml() -> None:
    old, new = content(LOW), content(HIGH, logLevel="Debug")
    lines = unified(parse_revision(old), parse_revision(new), ("revision-1", "revision-2"))
    assert "--- revision-1/flags" in lines
    assert "+++ revision-2/config.yaml" in lines
    assert {"--v=2", "+-v=4", "+      - name: NodeResourcesBalancedAllocation"} <= set(lines)
    assert not any(
        line.startswith(("--- revision-1/image", "--- revision-1/pod")) for line in lines
    )


@pytest.mark.parametrize("key", [names.FORCE_REDEPLOYMENT_KEY, names.PREFLIGHT_KUBECONFIG_KEY])
def test_the_diff_is_empty_only_for_the_same_content(key: str) -> None:
    one = parse_revision(content())
    assert unified(one, one, ("a", "b")) == []
    parts = {**content().parts}
    parts[names.POD] = {**parts[names.POD], key: "other"}
    assert unified(one, parse_revision(RevisionContent(parts)), ("a", "b"))
