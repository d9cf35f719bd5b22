"""Which SchedulerExtenders a scheduler calls, in which order, and findings about the others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM
from kube_scheduler_operator.config.effective.attachment import Refusal
from kube_scheduler_operator.config.effective.attribution import attribute_extenders
from kube_scheduler_operator.config.effective.extenders.entry import SHORTEST_OF_FILTER, agent_url
from kube_scheduler_operator.config.effective.extenders.validate import (
    FIRST_PORT,
    ExtenderResult,
    ExtenderResults,
    OwnExtenders,
    unattached_extenders,
    validate_extenders,
)
from kube_scheduler_operator.config.effective.facts import Facts
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.schema import API_VERSION, KIND
from kube_scheduler_operator.config.language.validation.configuration import Target, validate_config
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.scheduling.extender.cache_freshness import LONGEST

from .....builders import extender

TARGET = Target(Gates(Version(1, 35)))
FACTS = Facts(KUBEADM, Version(1, 35))
FILTER = {"filter": "filter"}
SAFE = {"policies": [{"name": "safe-overload"}]}


def foreign(name: str, **fields: Any) -> dict[str, Any]:
    return extender(name, **{"url": f"http://10.0.0.1/{name}", "verbs": FILTER, **fields})


def running(port: int, ready: str = "2026-01-20T00:00:00Z") -> dict[str, Any]:
    return {"agent": {"port": port, "readySince": ready} if ready else {"port": port}}


def chosen(
    *objects: Any, scheduler: str = "", own: Any = None, profiles: int = 1, **more: Any
) -> ExtenderResults:
    found = validate_extenders(
        scheduler,
        objects,
        OwnExtenders(own, "another"),
        TARGET,
        replace(FACTS, **more),
        profiles=profiles,
    )
    config = {"apiVersion": API_VERSION, "kind": KIND, "extenders": list(found.entries)}
    assert validate_config(config, TARGET) == [], "kube-scheduler accepts the entries"
    return found


def only(chosen: ExtenderResults) -> ExtenderResult:
    (result,) = chosen.results
    return result


def problems(result: ExtenderResult) -> list[tuple[str, str]]:
    """Fields and messages."""
    owner = f"SchedulerExtender/{result.name} "
    return [(f.path.removeprefix(owner), f.message) for f in result.findings]


def urls(chosen: ExtenderResults) -> list[str]:
    return [str(entry["urlPrefix"]) for entry in chosen.entries]


# --- the entry -----------------------------------------------------------------------------------


def test_a_url_has_safe_defaults() -> None:
    """kube-scheduler's own defaults are 5 s, whole nodes, and not ignorable."""
    result = only(chosen(foreign("gpu")))
    assert result.accepted
    assert result.entry == {
        "urlPrefix": "http://10.0.0.1/gpu",
        "filterVerb": "filter",
        "httpTimeout": "500ms",
        "nodeCacheCapable": True,
        "ignorable": True,
    }
    assert result.warnings == ()


def test_every_field_of_a_url() -> None:
    result = only(
        chosen(
            foreign(
                "gpu",
                url="https://gpu.example.com:8443/x/",
                verbs={"filter": "f", "prioritize": "p", "bind": "b", "preempt": "e"},
                weight=7,
                timeout="2s",
                ignorable=False,
                nodeCacheCapable=False,
                managedResources=[
                    {"name": "example.com/a", "ignoredByScheduler": True},
                    {"name": "example.com/b", "ignoredByScheduler": False},
                ],
                tls={"serverName": "gpu", "insecure": True},
            )
        )
    )
    assert result.entry == {
        "urlPrefix": "https://gpu.example.com:8443/x",
        "filterVerb": "f",
        "prioritizeVerb": "p",
        "bindVerb": "b",
        "preemptVerb": "e",
        "weight": 7,
        "enableHTTPS": True,
        "tlsConfig": {"serverName": "gpu", "insecure": True},
        "httpTimeout": "2s",
        "managedResources": [
            {"name": "example.com/a", "ignoredByScheduler": True},
            {"name": "example.com/b"},
        ],
    }
    fields = {f.path.partition(" ")[2] for f in result.warnings}
    assert fields == {"spec.nodeCacheCapable", "spec.timeout"}


def test_an_agent_is_called_on_its_node_for_the_verbs_of_its_policies() -> None:
    result = only(chosen(extender("safe", age=1, status=running(5403), agent=SAFE)))
    assert result.entry == {
        "urlPrefix": "http://127.0.0.1:5403/safe",
        "filterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "weight": 1,
        "httpTimeout": "500ms",
        "nodeCacheCapable": True,
        "ignorable": True,
    }


@pytest.mark.parametrize(
    ("agent", "verbs"),
    [
        ({"policies": [{"name": "safe-balance"}]}, ["prioritize"]),
        ({"policies": [{"name": "safe-overload", "weight": 0}]}, ["filter"]),
        ({**SAFE, "verbs": {"filter": False}}, ["prioritize"]),
        ({**SAFE, "verbs": {"preempt": True}}, ["filter", "prioritize", "preempt"]),
        ({**SAFE, "verbs": {"bind": True}}, ["filter", "prioritize", "bind"]),
    ],
)
def test_verbs_of_an_agent(agent: Any, verbs: list[str]) -> None:
    entry = only(chosen(extender("a", agent=agent), planned=True)).entry or {}
    assert [key.removesuffix("Verb") for key in entry if key.endswith("Verb")] == verbs


def test_an_agent_that_was_never_ready_has_no_entry() -> None:
    """Otherwise an extender that is not ignorable and its scheduler would wait for each other."""
    new = extender("safe", agent=SAFE)
    assert only(chosen(new)).accepted
    assert only(chosen(new)).entry is None
    assert only(chosen(extender("safe", age=5, status=running(5401, ""), agent=SAFE))).entry is None
    assert only(chosen(extender("safe", age=5, status=running(5401), agent=SAFE))).entry is not None


def test_a_sidecar_has_an_entry_before_it_is_ready() -> None:
    obj = extender("safe", age=5, status=running(5401, ""), scheduler="mine", agent=SAFE)
    assert only(chosen(obj, scheduler="mine")).entry is not None


def test_extenders_are_called_in_the_order_of_their_names() -> None:
    found = chosen(foreign("b", age=9), foreign("c", age=1), foreign("a", age=2))
    assert urls(found) == [f"http://10.0.0.1/{name}" for name in "abc"]


# --- ports ---------------------------------------------------------------------------------------


def ports(chosen: ExtenderResults) -> dict[str, int]:
    return {result.name: result.port for result in chosen.all}


def test_ports_are_allocated_in_order_and_then_stay() -> None:
    found = chosen(extender("b", age=9, agent=SAFE), extender("a", age=1, agent=SAFE))
    assert ports(found) == {"b": FIRST_PORT, "a": FIRST_PORT + 1}
    found = chosen(
        extender("b", age=1, agent=SAFE),
        extender("a", age=9, agent=SAFE),
        extender("c", age=1, status=running(5401), agent=SAFE),
    )
    assert ports(found) == {"c": 5401, "a": 5402, "b": 5403}


def test_a_requested_port_belongs_to_one_agent() -> None:
    asks = extender("asks", age=9, agent={**SAFE, "port": 5401})
    assert ports(chosen(asks, extender("new", age=1, agent=SAFE))) == {"asks": 5401, "new": 5402}
    late = extender("late", age=1, agent={**SAFE, "port": 5401})
    found = chosen(asks, late)
    assert {v.name: v.accepted for v in found.results} == {"asks": True, "late": False}
    ((path, message),) = problems(found.results[1])
    assert path == "spec.agent.port"
    assert message == 'port 5401 is used by SchedulerExtender "asks"; use another port, or 0'


def test_an_older_object_does_not_take_the_port_of_an_agent_that_is_called() -> None:
    """Its scheduler would call the other agent, or none, until it has another configuration."""
    called = extender("called", age=1, status=running(5401), agent=SAFE)
    found = chosen(called, extender("older", age=9, agent={**SAFE, "port": 5401}))
    older, kept = sorted(found.results, key=lambda result: result.name, reverse=True)
    assert (kept.port, kept.entry is not None) == (5401, True)
    assert not older.accepted
    assert problems(older) == [
        (
            "spec.agent.port",
            'port 5401 is used by SchedulerExtender "called"; use another port, or 0',
        )
    ]


def test_a_changed_port_is_called_once_the_agent_is_ready_there() -> None:
    moved = extender("a", age=5, status=running(5401), agent={**SAFE, "port": 6000})
    assert only(chosen(moved)).port == 6000
    assert only(chosen(moved)).entry is None


@pytest.mark.parametrize("port", [80, 10250, 6443])
def test_reserved_ports_are_refused(port: int) -> None:
    result = only(chosen(extender("a", agent={**SAFE, "port": port})))
    assert [path for path, _ in problems(result)] == ["spec.agent.port"]


# --- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "path", "words"),
    [
        ({}, "spec.url", "set either url"),
        ({"url": "http://a", "verbs": FILTER, "agent": SAFE}, "spec.url", "either"),
        ({"url": "http://a"}, "spec.verbs", "never called"),
        ({"url": "ftp://a", "verbs": FILTER}, "spec.url", "does not match"),
        ({"agent": SAFE, "verbs": FILTER}, "spec.verbs", "agent.verbs"),
        ({"agent": {"policies": []}}, "spec.agent.policies", "too few"),
        (
            {"agent": {**SAFE, "verbs": {"filter": False, "prioritize": False}}},
            "spec.agent.verbs",
            "never called",
        ),
        (
            {"agent": {"policies": [{"name": "safe-overlord"}]}},
            "spec.agent.policies[0].name",
            'did you mean "safe-overload"?',
        ),
        (
            {"agent": {"policies": [{"name": "foo"}, {"name": "x", "policy": "safe-overlord"}]}},
            "spec.agent.policies[1].policy",
            'did you mean "safe-overload"?',
        ),
        (
            {"agent": {"policies": [{"name": "safe-overload", "arguments": {"utilization": 120}}]}},
            "spec.agent.policies[0].arguments.utilization",
            "between 0 and 100",
        ),
        (
            {"agent": {"policies": [{"name": "safe-overload", "arguments": {"utilisation": 1}}]}},
            "spec.agent.policies[0].arguments.utilisation",
            'did you mean "utilization"?',
        ),
        ({"url": "http://a", "verbs": FILTER, "timeout": "0s"}, "spec.timeout", "out of range"),
        ({"url": "http://a", "verbs": FILTER, "timeout": "2h"}, "spec.timeout", "does not match"),
        ({"url": "http://a", "verbs": FILTER, "wieght": 1}, "spec.wieght", 'mean "weight"?'),
        ({"url": "http://a", "verbs": FILTER, "tls": {}, "weight": "1"}, "spec.weight", "integer"),
        (
            {"url": "http://a", "verbs": FILTER, "tls": {"insecure": True}},
            "spec.tls",
            "begins with https://",
        ),
        (
            {"url": "https://a", "verbs": FILTER, "tls": {"certFile": "/a"}},
            "spec.tls",
            "need each other",
        ),
        (
            {"url": "https://a", "verbs": FILTER, "tls": {"insecure": True, "caFile": "/a"}},
            "spec.tls.insecure",
            "cannot be combined with a CA",
        ),
        (
            {"url": "https://a", "verbs": FILTER, "tls": {"caData": "QUJD"}},
            "spec.tls.caData",
            "",
        ),
        (
            {
                "url": "http://a",
                "verbs": FILTER,
                "managedResources": [{"name": "x.kubernetes.io/y"}],
            },
            "spec.managedResources[0].name",
            "extended resource",
        ),
    ],
)  # fmt: skip
def test_an_invalid_extender_is_reported_with_its_field(spec: Any, path: str, words: str) -> None:
    result = only(chosen(extender("a", **spec)))
    assert not result.accepted
    assert result.spec is None
    assert any(where == path and words in message for where, message in problems(result)), problems(
        result
    )
    assert all(f.condition == names.SCHEDULER_EXTENDERS_DEGRADED for f in result.findings)
    assert not any(f.blocking for f in result.findings)


def test_only_agents_can_select_pods() -> None:
    agent = {"policies": [{"name": "foo"}], "schedulerNames": ["x"]}
    result = only(chosen(foreign("a", agent=agent)))
    messages = dict(problems(result))
    assert "calls an extender for all Pods" in messages["spec.agent.schedulerNames"]


def test_policies_of_a_custom_image_are_not_validated() -> None:
    agent = {"policies": [{"name": "mine"}], "image": "registry.example.com/agent:1"}
    assert only(chosen(extender("a", agent=agent))).accepted


def test_names_that_do_not_fit_into_urls_or_pod_names_are_refused() -> None:
    for name in ("a.b", "a" * 41):
        assert not only(chosen(foreign(name))).accepted


def test_a_service_name_is_a_warning_on_the_host_network() -> None:
    url = "http://gpu.team.svc.cluster.local/x"
    (warning,) = only(chosen(foreign("a", url=url))).warnings
    assert warning.path == "SchedulerExtender/a spec.url"
    assert only(chosen(foreign("a", url=url, scheduler="s"), scheduler="s")).warnings == ()


def test_a_timeout_shorter_than_the_wait_of_a_filter_is_a_warning() -> None:
    (warning,) = only(chosen(extender("a", agent=SAFE, timeout="99ms"))).warnings
    assert (warning.reason, warning.path) == ("ShortTimeout", "SchedulerExtender/a spec.timeout")
    assert SHORTEST_OF_FILTER >= 2 * LONGEST
    scoring = {**SAFE, "verbs": {"filter": False}}
    for spec in ({"agent": SAFE, "timeout": "100ms"}, {"agent": scoring, "timeout": "99ms"}):
        assert only(chosen(extender("a", **spec))).warnings == ()
    assert only(chosen(foreign("a", timeout="99ms"))).warnings == (), (
        "the filter of a url may not wait"
    )


def test_an_argument_that_a_variable_overrides_is_a_warning() -> None:
    policies = [{"name": "foo"}, {"name": "congestion", "arguments": {"maximum": 5}}]
    agent = {"policies": policies, "env": {"CONGESTION_FACTOR_MAX": "10"}}
    (warning,) = only(chosen(extender("a", agent=agent))).warnings
    assert warning.reason == "OverriddenArgument"
    assert warning.path == "SchedulerExtender/a spec.agent.policies[1].arguments.maximum"
    for other in ({**agent, "env": {}}, {**agent, "policies": [{"name": "congestion"}]}):
        assert only(chosen(extender("a", agent=other))).warnings == ()


def test_an_extender_that_can_block_all_pods_is_a_warning() -> None:
    (warning,) = only(chosen(foreign("a", ignorable=False))).warnings
    assert warning.path == "SchedulerExtender/a spec.ignorable"
    managed = [{"name": "example.com/gpu"}]
    result = only(chosen(foreign("a", ignorable=False, managedResources=managed)))
    assert result.warnings == ()


def test_an_extender_called_for_several_profiles_is_a_warning() -> None:
    (warning,) = only(chosen(foreign("a"), profiles=3)).warnings
    assert "all 3 profiles" in warning.message
    agent = {**SAFE, "schedulerNames": ["team"]}
    assert only(chosen(extender("a", agent=agent), profiles=3)).warnings == ()


# --- conflicts -----------------------------------------------------------------------------------

GPU = [{"name": "example.com/gpu"}]


def test_the_older_extender_keeps_a_managed_resource() -> None:
    found = chosen(
        foreign("a", age=1, managedResources=GPU), foreign("b", age=9, managedResources=GPU)
    )
    assert urls(found) == ["http://10.0.0.1/b"]
    ((path, message),) = problems(found.results[0])
    assert path == "spec.managedResources[0].name"
    assert message.startswith('SchedulerExtender "b" already manages "example.com/gpu"')


def test_only_one_extender_binds() -> None:
    binds = {"verbs": {"bind": "bind"}}
    agent = {**SAFE, "verbs": {"bind": True}}
    found = chosen(
        foreign("a", age=1, **binds), extender("b", age=9, status=running(5401), agent=agent)
    )
    assert urls(found) == ["http://127.0.0.1:5401/b"]
    assert [path for path, _ in problems(found.results[0])] == ["spec.verbs.bind"]


def test_existing_extenders_win_conflicts() -> None:
    own = [{"urlPrefix": "http://x", "bindVerb": "b", "managedResources": GPU}]
    found = validate_extenders(
        "",
        [foreign("a", verbs={"bind": "b"}), foreign("b", managedResources=GPU), foreign("c")],
        OwnExtenders(own, "unsupportedConfigOverrides"),
        TARGET,
        FACTS,
    )
    assert urls(found) == ["http://10.0.0.1/c"]
    assert all("unsupportedConfigOverrides" in problems(v)[0][1] for v in found.results[:2])


@pytest.mark.parametrize("own", [None, {}, "x", [None, 3], [{"managedResources": None}]])
def test_invalid_existing_extenders_are_ignored(own: Any) -> None:
    found = validate_extenders("", [foreign("a")], OwnExtenders(own, "x"), TARGET, FACTS)
    assert urls(found) == ["http://10.0.0.1/a"]


@pytest.mark.parametrize(
    ("known", "reasons"), [(None, []), ({"load"}, []), (set(), ["LoadPolicyNotFound"])]
)
def test_a_load_policy_that_does_not_exist_is_a_warning(
    known: set[str] | None, reasons: list[str]
) -> None:
    agent = {"policies": [{"name": "load-aware"}], "loadPolicy": "load"}
    one, other = extender("a", agent=agent), foreign("b")
    found = chosen(one, other, load_policies=known)
    warnings = [warning for result in found.results for warning in result.warnings]
    assert [warning.reason for warning in warnings] == reasons
    for warning in warnings:
        assert warning.path == "SchedulerExtender/a spec.agent.loadPolicy"
        assert warning.message.startswith('LoadPolicy "load" does not exist, so the agent uses')


def test_a_repeated_url_is_a_warning() -> None:
    own = [{"urlPrefix": "http://10.0.0.1/a/", "filterVerb": "filter"}]
    found = validate_extenders("", [foreign("a")], OwnExtenders(own, "x"), TARGET, FACTS)
    (result,) = found.results
    assert [w.reason for w in result.warnings] == ["CalledTwice"]


# --- invalid edits -------------------------------------------------------------------------------


def test_after_a_bad_edit_the_last_accepted_version_stays_in_use() -> None:
    good = {"url": "http://10.0.0.1/a", "verbs": FILTER}
    bad = extender("a", age=5, status={"accepted": good}, url="http://10.0.0.1/a", verbs={})
    found = chosen(bad, foreign("b"))
    assert urls(found) == ["http://10.0.0.1/a", "http://10.0.0.1/b"]
    edited = found.results[0]
    assert (edited.accepted, edited.uses_last_accepted, edited.spec) == (False, True, good)


def test_an_invalid_edit_of_an_agent_keeps_its_port_and_policies() -> None:
    good = {"agent": SAFE}
    wrong = {"policies": [{"name": "nonsense"}]}
    status = {"accepted": good, **running(5409)}
    result = only(chosen(extender("a", age=5, status=status, agent=wrong)))
    assert result.uses_last_accepted
    assert result.agent == SAFE
    assert (result.entry or {})["urlPrefix"] == agent_url("a", 5409)


def test_an_accepted_version_that_became_invalid_is_omitted() -> None:
    status = {"accepted": {"url": "http://a", "verbs": {}}}
    result = only(chosen(extender("a", age=5, status=status, url="http://a")))
    assert (result.accepted, result.spec, result.entry) == (False, None, None)
    assert len(result.findings) == 1, "an error in both versions is one finding"


# --- schedulers ----------------------------------------------------------------------------------


def test_each_scheduler_has_its_own_extenders() -> None:
    objects = [foreign("a"), foreign("b", scheduler="mine")]
    assert urls(chosen(*objects)) == ["http://10.0.0.1/a"]
    assert urls(chosen(*objects, scheduler="mine")) == ["http://10.0.0.1/b"]


def test_a_moving_extender_stays_until_the_other_scheduler_accepts_it() -> None:
    here = {"url": "http://10.0.0.1/a", "verbs": FILTER}
    moving = foreign("a", age=5, status={"accepted": here}, scheduler="mine")
    assert urls(chosen(moving)) == ["http://10.0.0.1/a"]
    assert chosen(moving).results == (), "its new scheduler reports it"
    moved = foreign(
        "a", age=5, status={"accepted": {**here, "scheduler": "mine"}}, scheduler="mine"
    )
    assert chosen(moved).all == ()
    assert urls(chosen(moved, scheduler="mine")) == ["http://10.0.0.1/a"]


def test_an_extender_of_a_missing_scheduler_is_reported() -> None:
    (result,) = unattached_extenders([foreign("a", scheduler="missing"), foreign("b")], {""})
    ((path, message),) = problems(result)
    assert path == "spec.scheduler"
    assert 'SecondaryScheduler "missing" does not exist' in message
    here = {"url": "http://10.0.0.1/a", "verbs": FILTER}
    status = {"accepted": here}
    (result,) = unattached_extenders(
        [foreign("a", age=5, status=status, scheduler="missing")], {""}
    )
    assert result.uses_last_accepted


# --- what kube-scheduler itself refuses ----------------------------------------------------------


def attributed(words: str, *objects: Any, refused: Any = None) -> dict[str, list[tuple[str, str]]]:
    found = chosen(*objects)
    entries = list(found.entries) if refused is None else refused
    refusal = Refusal({"extenders": entries}, words, "refused revision 3")
    results = attribute_extenders(found.results, refusal)
    return {v.name: problems(v) for v in results if v.findings}


def test_a_refusal_is_attributed_to_the_field_of_the_extender() -> None:
    words = "extenders[1].httpTimeout: Invalid value: 0"
    found = attributed(words, foreign("a"), foreign("b"))
    assert found == {"b": [("spec.timeout", f"refused revision 3: {words}")]}


def test_an_unreadable_file_is_attributed_to_its_field() -> None:
    tls = {"caFile": "/etc/x/ca.crt"}
    words = "unable to load root certificates: open /etc/x/ca.crt: no such file or directory"
    found = attributed(words, foreign("a", url="https://a", tls=tls), foreign("b"))
    assert list(found) == ["a"]
    assert found["a"][0][0] == "spec.tls.caFile"


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ("", None),
        ("profiles[0].x: y", None),
        ("extenders[7].x: y", None),
        ("extenders[0].x: y", [{"urlPrefix": "http://10.0.0.1/what-it-was"}]),
        ("extenders[0].x: y", {}),
        ("extenders[0].x: y", [None]),
    ],
)
def test_other_errors_are_not_attributed(words: str, refused: Any) -> None:
    assert attributed(words, foreign("a"), refused=refused) == {}
