"""What of a revision decides placements, and a revision with the rules of another one."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.config.effective.extenders.entry import agent_name
from kube_scheduler_operator.operator.controlplane.placement_rules import (
    AgentSpecs,
    rules_hash,
    rules_of,
    with_rules_of,
)
from kube_scheduler_operator.operator.controlplane.revision.content import RevisionContent
from kube_scheduler_operator.operator.model.plan import PlacementRules

from ...cli.conftest import IMAGE, content

NEWER = IMAGE.replace("1.35.4", "1.36.1")
URL = "https://extender.example/filter"


def rules(made: RevisionContent) -> str:
    found = rules_of(made, AgentSpecs())
    assert found is not None
    return rules_hash(found)


def tuned(**fields: Any) -> RevisionContent:
    return content(unsupportedConfigOverrides=fields)


def entry(server: str = "") -> dict[str, Any]:
    """An extender; `server` stands for what its `tlsConfig` has."""
    tls = {"tlsConfig": {"serverName": server}} if server else {}
    return {"urlPrefix": URL, "filterVerb": "filter", **tls}


def extender(server: str = "") -> RevisionContent:
    return tuned(extenders=[entry(server)])


@pytest.mark.parametrize(
    "edited",
    [
        content("HighNodeUtilization"),
        tuned(percentageOfNodesToScore=7),
        tuned(parallelism=3),
        content(
            unsupportedConfigOverrides={
                "arguments": {"feature-gates": ["SchedulerAsyncPreemption=false"]}
            }
        ),
        extender(),
        content(unsupportedConfigOverrides={"arguments": {"emulated-version": ["1.34"]}}),
    ],
    ids=["profile", "percentage", "parallelism", "feature gates", "extender", "emulation"],
)
def test_an_edit_of_what_decides_placements_has_other_rules(edited: RevisionContent) -> None:
    assert rules(edited) != rules(content())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (content(), content(logLevel="Debug")),
        (content(), content(image=NEWER)),
        (content(), content(forceRedeploymentReason="again")),
        (content(), tuned(podMaxBackoffSeconds=20)),
    ],
    ids=["log level", "version", "redeployment", "back-off"],
)
def test_what_decides_no_placements_has_the_same_rules(
    before: RevisionContent, after: RevisionContent
) -> None:
    assert rules(before) == rules(after)
    assert before.hash != after.hash


def test_with_the_rules_of_another_revision_only_the_rest_is_new() -> None:
    running = content()
    edited = content("HighNodeUtilization", logLevel="Debug", image=NEWER)
    held = with_rules_of(edited, running)
    assert held.hash == content(logLevel="Debug", image=NEWER).hash
    assert (rules(held), held.image, held.inputs) == (rules(running), NEWER, running.inputs)


def test_certificates_and_other_parts_are_those_of_the_edited_content() -> None:
    edited = content("HighNodeUtilization")
    renewed = replace(edited, parts={**edited.parts, "serving-cert": {"tls.crt": "new"}})
    held = with_rules_of(renewed, content())
    assert held.parts == {**content().parts, "serving-cert": {"tls.crt": "new"}}


def test_with_its_own_rules_a_content_is_the_same_byte_for_byte() -> None:
    for made in (content(), extender("aaaa"), gates("A=true"), content("NoScoring")):
        assert with_rules_of(made, made).parts == made.parts


def gates(*values: str, image: str = IMAGE, **spec: Any) -> RevisionContent:
    """A content with these feature gates, in the place in which the operator puts them."""
    made = content(image=image, **spec)
    pod = json.loads(made.parts[names.POD][names.POD_KEY])
    arguments = pod["spec"]["containers"][0]["args"]
    arguments[1:1] = [f"--feature-gates={value}" for value in values]
    text = json.dumps(pod, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    return RevisionContent(
        {**made.parts, names.POD: {**made.parts[names.POD], names.POD_KEY: text}}, made.inputs
    )


@pytest.mark.parametrize(
    ("edited", "running"),
    [(["A=true"], ["B=true"]), (["A=true"], []), ([], ["B=true"]), (["A=true"], ["B=1", "C=1"])],
    ids=str,
)
def test_feature_gates_wait_with_the_rest_of_an_edit(edited: list[str], running: list[str]) -> None:
    assert with_rules_of(gates(*edited), gates(*running)).parts == gates(*running).parts


def test_feature_gates_of_another_version_do_not_wait() -> None:
    held = with_rules_of(gates("New=true", image=NEWER), gates("Old=true"))
    assert held.parts == gates("New=true", image=NEWER).parts


def test_feature_gates_that_were_edited_wait_with_another_version_too() -> None:
    """Those in use stay, except those that the version does not have, or has locked."""
    inputs = content(featureGates={"SchedulerAsyncPreemption": True}).inputs
    edited = replace(gates("SchedulerAsyncPreemption=true", image=NEWER), inputs=inputs)
    kept = "SchedulerAsyncPreemption=false"
    running = gates(f"{kept},Gone=true,MatchLabelKeysInPodAffinity=false")
    assert with_rules_of(edited, running).parts == gates(kept, image=NEWER).parts


def test_how_an_extender_is_trusted_waits() -> None:
    """With another certificate, the calls of an extender that is ignorable have no effect."""
    assert rules(extender("aaaa")) != rules(extender("bbbb"))
    assert with_rules_of(extender("bbbb"), extender("aaaa")).parts == extender("aaaa").parts


def variables(made: RevisionContent, **values: str) -> RevisionContent:
    pod = json.loads(made.parts[names.POD][names.POD_KEY])
    pod["spec"]["containers"][0]["env"] = [
        {"name": name, "value": value} for name, value in values.items()
    ]
    text = json.dumps(pod, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
    own = {**made.parts[names.POD], names.POD_KEY: text}
    return RevisionContent({**made.parts, names.POD: own}, made.inputs)


@pytest.mark.parametrize(
    "name", ["SSL_CERT_FILE", "SSL_CERT_DIR", "REQUEST_METHOD", "GODEBUG", "https_proxy"]
)
def test_a_variable_that_chooses_who_is_trusted_decides(name: str) -> None:
    """An extender that is ignorable has no effect if its certificate is not trusted."""
    running = variables(extender())
    edited = variables(extender(), **{name: "/nowhere"})
    assert rules(edited) != rules(running)
    assert with_rules_of(edited, running) == running
    assert with_rules_of(edited, running).parts == running.parts


def test_a_proxy_decides_who_answers_for_an_extender_elsewhere() -> None:
    running = variables(extender(), GOGC="80", HTTP_PROXY="a", NO_PROXY="b")
    edited = variables(extender(), GOGC="90", http_proxy="c", TZ="UTC")
    assert rules(running) != rules(edited)
    held = with_rules_of(edited, running)
    expected = variables(extender(), GOGC="90", HTTP_PROXY="a", NO_PROXY="b", TZ="UTC")
    assert held.parts == expected.parts
    without = content()
    assert rules(variables(without, HTTP_PROXY="a")) == rules(without)


AGENT = "http://127.0.0.1:5401/safe"
SPECS = AgentSpecs({"safe": {"agent": {"policies": [{"name": "safe-overload"}]}}})


def calling(url: str, specs: AgentSpecs = SPECS) -> tuple[PlacementRules, str]:
    found = rules_of(tuned(extenders=[{"urlPrefix": url, "filterVerb": "filter"}]), specs)
    assert found is not None
    return found, rules_hash(found)


@pytest.mark.parametrize(
    ("url", "is_called", "is_same"),
    [
        (AGENT, True, True),
        ("http://127.0.0.1:5407/safe", True, True),
        ("http://127.0.0.1:5401/safe/", True, True),
        ("http://localhost:5401/safe", True, False),
        ("http://10.0.0.1:5401/safe", True, False),
        ("http://127.0.0.1:5401/other", False, False),
    ],
)
def test_an_agent_may_be_called_by_another_host_which_is_another_configuration(
    url: str, is_called: bool, is_same: bool
) -> None:
    found, identity = calling(url)
    assert ("safe" in found.agents) == is_called
    assert (identity == calling(AGENT)[1]) == is_same
    assert identity != calling(url, AgentSpecs())[1] or not is_called


def test_agents_are_recognized_by_their_urls() -> None:
    urls = {
        AGENT: "safe",
        f"{AGENT}/": "safe",
        "http://127.0.0.1:05401/safe": "",
        "http://127.0.0.1:99999999/safe": "",
        f"http://127.0.0.1:{'1' * 5000}/safe": "",
        "http://10.0.0.1:5401/safe": "",
        "https://127.0.0.1:5401/safe": "",
        "": "",
    }
    assert {url: agent_name(url) for url in urls} == urls


def test_what_cannot_be_read_has_no_rules() -> None:
    made = content()
    for part, key in ((names.CONFIG, names.CONFIG_KEY), (names.POD, names.POD_KEY)):
        for text in ("{", "[]"):
            parts = {**made.parts, part: {**made.parts[part], key: text}}
            assert rules_of(RevisionContent(parts), AgentSpecs()) is None
        others = {k: v for k, v in made.parts.items() if k != part}
        assert rules_of(RevisionContent(others), AgentSpecs()) is None
