"""Which SchedulerExtenders a scheduler calls, in which order, and what is said of the others."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.base import names
from kube_scheduler_operator.extenders.attribution import attribute_extenders
from kube_scheduler_operator.extenders.entry import SHORTEST_OF_FILTER, agent_url
from kube_scheduler_operator.extenders.validate import (
    FIRST_PORT,
    Chosen,
    ExtenderVerdict,
    extenders_of,
    unclaimed_extenders,
)
from kube_scheduler_operator.programs.extender.cache_freshness import LONGEST
from kube_scheduler_operator.schedulerconfig.check import Target, check_config
from kube_scheduler_operator.schedulerconfig.feature_gates import Gates
from kube_scheduler_operator.schedulerconfig.schema import API_VERSION, KIND
from kube_scheduler_operator.schedulerconfig.versions import Version

TARGET = Target(Gates(Version(1, 35)))
FILTER = {"filter": "filter"}
SAFE = {"policies": [{"name": "safe-overload"}]}


def extender(name: str, age: int = 5, status: Any = None, /, **spec: Any) -> dict[str, Any]:
    """An object that is `age` days old."""
    created = f"2026-01-{20 - age:02}T00:00:00Z"
    obj = {"metadata": {"name": name, "creationTimestamp": created}, "spec": spec}
    return obj if status is None else {**obj, "status": status}


def foreign(name: str, age: int = 5, status: Any = None, /, **spec: Any) -> dict[str, Any]:
    return extender(
        name, age, status, **{"url": f"http://10.0.0.1/{name}", "verbs": FILTER, **spec}
    )


def running(port: int, ready: str = "2026-01-20T00:00:00Z") -> dict[str, Any]:
    return {"agent": {"port": port, "readySince": ready} if ready else {"port": port}}


def chosen(*objects: Any, scheduler: str = "", own: Any = None, **more: Any) -> Chosen:
    found = extenders_of(scheduler, objects, own, TARGET, itself="somebody", **more)
    config = {"apiVersion": API_VERSION, "kind": KIND, "extenders": list(found.entries)}
    assert check_config(config, TARGET) == [], "kube-scheduler reads what is chosen"
    return found


def only(chosen: Chosen) -> ExtenderVerdict:
    (verdict,) = chosen.verdicts
    return verdict


def problems(verdict: ExtenderVerdict) -> list[tuple[str, str]]:
    """Fields and messages."""
    owner = f"SchedulerExtender/{verdict.name} "
    return [(f.path.removeprefix(owner), f.message) for f in verdict.findings]


def urls(chosen: Chosen) -> list[str]:
    return [str(entry["urlPrefix"]) for entry in chosen.entries]


# --- the entry -----------------------------------------------------------------------------------


def test_a_url_with_the_defaults_that_do_no_harm() -> None:
    """kube-scheduler's own are 5 s, whole nodes, and no scheduling without it."""
    verdict = only(chosen(foreign("gpu")))
    assert verdict.accepted
    assert verdict.entry == {
        "urlPrefix": "http://10.0.0.1/gpu",
        "filterVerb": "filter",
        "httpTimeout": "500ms",
        "nodeCacheCapable": True,
        "ignorable": True,
    }
    assert verdict.warnings == ()


def test_everything_that_can_be_said_of_a_url() -> None:
    verdict = only(
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
    assert verdict.entry == {
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
    fields = {f.path.partition(" ")[2] for f in verdict.warnings}
    assert fields == {"spec.nodeCacheCapable", "spec.timeout"}


def test_an_agent_is_called_on_the_schedulers_own_node_for_what_its_policies_can() -> None:
    verdict = only(chosen(extender("safe", 1, running(5403), agent=SAFE)))
    assert verdict.entry == {
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
def test_an_agent_is_asked_what_it_can_answer(agent: Any, verbs: list[str]) -> None:
    entry = only(chosen(extender("a", agent=agent), planned=True)).entry or {}
    assert [key.removesuffix("Verb") for key in entry if key.endswith("Verb")] == verbs


def test_no_scheduler_is_told_to_call_what_has_never_been_ready() -> None:
    """Else a scheduler with an extender that is not ignorable would wait for what waits for it."""
    new = extender("safe", agent=SAFE)
    assert only(chosen(new)).accepted
    assert only(chosen(new)).entry is None
    assert only(chosen(extender("safe", 5, running(5401, ""), agent=SAFE))).entry is None
    assert only(chosen(extender("safe", 5, running(5401), agent=SAFE))).entry is not None


def test_a_sidecar_starts_with_its_scheduler() -> None:
    obj = extender("safe", 5, running(5401, ""), scheduler="mine", agent=SAFE)
    assert only(chosen(obj, scheduler="mine")).entry is not None


def test_they_are_called_in_the_order_of_their_names() -> None:
    found = chosen(foreign("b", 9), foreign("c", 1), foreign("a", 2))
    assert urls(found) == [f"http://10.0.0.1/{name}" for name in "abc"]


# --- ports ---------------------------------------------------------------------------------------


def ports(chosen: Chosen) -> dict[str, int]:
    return {verdict.name: verdict.port for verdict in chosen.all}


def test_ports_are_chosen_in_turn_and_then_stay() -> None:
    found = chosen(extender("b", 9, agent=SAFE), extender("a", 1, agent=SAFE))
    assert ports(found) == {"b": FIRST_PORT, "a": FIRST_PORT + 1}
    found = chosen(
        extender("b", 1, agent=SAFE),
        extender("a", 9, agent=SAFE),
        extender("c", 1, running(5401), agent=SAFE),
    )
    assert ports(found) == {"c": 5401, "a": 5402, "b": 5403}


def test_a_port_that_is_asked_for_is_nobody_elses() -> None:
    asks = extender("asks", 9, agent={**SAFE, "port": 5401})
    assert ports(chosen(asks, extender("new", 1, agent=SAFE))) == {"asks": 5401, "new": 5402}
    late = extender("late", 1, agent={**SAFE, "port": 5401})
    found = chosen(asks, late)
    assert {v.name: v.accepted for v in found.verdicts} == {"asks": True, "late": False}
    ((path, message),) = problems(found.verdicts[1])
    assert path == "spec.agent.port"
    assert message == 'port 5401 is taken by SchedulerExtender "asks"; use another one, or 0'


def test_another_port_is_called_once_it_answers() -> None:
    moved = extender("a", 5, running(5401), agent={**SAFE, "port": 6000})
    assert only(chosen(moved)).port == 6000
    assert only(chosen(moved)).entry is None


@pytest.mark.parametrize("port", [80, 10250, 6443])
def test_ports_that_would_not_do(port: int) -> None:
    verdict = only(chosen(extender("a", agent={**SAFE, "port": port})))
    assert [path for path, _ in problems(verdict)] == ["spec.agent.port"]


# --- what is wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "path", "words"),
    [
        ({}, "spec.url", "set url"),
        ({"url": "http://a", "verbs": FILTER, "agent": SAFE}, "spec.url", "not both"),
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
            "belong together",
        ),
        (
            {"url": "https://a", "verbs": FILTER, "tls": {"insecure": True, "caFile": "/a"}},
            "spec.tls.insecure",
            "takes no CA",
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
def test_a_mistake_is_named_with_its_field(spec: Any, path: str, words: str) -> None:
    verdict = only(chosen(extender("a", **spec)))
    assert not verdict.accepted
    assert verdict.spec is None
    assert any(where == path and words in message for where, message in problems(verdict)), (
        problems(verdict)
    )
    assert all(f.condition == names.SCHEDULER_EXTENDERS_DEGRADED for f in verdict.findings)
    assert not any(f.blocking for f in verdict.findings)


def test_a_url_cannot_be_narrowed_to_some_pods() -> None:
    agent = {"policies": [{"name": "foo"}], "schedulerNames": ["x"]}
    verdict = only(chosen(foreign("a", agent=agent)))
    messages = dict(problems(verdict))
    assert "asks an extender about all pods" in messages["spec.agent.schedulerNames"]


def test_a_policy_of_ones_own_image_is_its_own_business() -> None:
    agent = {"policies": [{"name": "mine"}], "image": "registry.example.com/agent:1"}
    assert only(chosen(extender("a", agent=agent))).accepted


def test_a_name_that_cannot_be_in_a_url_or_a_pods_name() -> None:
    for name in ("a.b", "a" * 41):
        assert not only(chosen(foreign(name))).accepted


def test_a_service_name_means_nothing_on_the_nodes_network() -> None:
    url = "http://gpu.team.svc.cluster.local/x"
    (warning,) = only(chosen(foreign("a", url=url))).warnings
    assert warning.path == "SchedulerExtender/a spec.url"
    assert only(chosen(foreign("a", url=url, scheduler="s"), scheduler="s")).warnings == ()


def test_a_filter_needs_the_time_that_it_waits_for_news() -> None:
    (warning,) = only(chosen(extender("a", agent=SAFE, timeout="99ms"))).warnings
    assert (warning.reason, warning.path) == ("ShortTimeout", "SchedulerExtender/a spec.timeout")
    assert SHORTEST_OF_FILTER >= 2 * LONGEST
    scoring = {**SAFE, "verbs": {"filter": False}}
    for spec in ({"agent": SAFE, "timeout": "100ms"}, {"agent": scoring, "timeout": "99ms"}):
        assert only(chosen(extender("a", **spec))).warnings == ()
    assert only(chosen(foreign("a", timeout="99ms"))).warnings == (), "who knows what it does"


def test_one_that_holds_up_all_pods_is_warned_about() -> None:
    (warning,) = only(chosen(foreign("a", ignorable=False))).warnings
    assert warning.path == "SchedulerExtender/a spec.ignorable"
    managed = [{"name": "example.com/gpu"}]
    verdict = only(chosen(foreign("a", ignorable=False, managedResources=managed)))
    assert verdict.warnings == ()


def test_with_several_profiles_it_is_asked_for_all_of_them_unless_it_is_narrowed() -> None:
    (warning,) = only(chosen(foreign("a"), profiles=3)).warnings
    assert "all 3 profiles" in warning.message
    agent = {**SAFE, "schedulerNames": ["team"]}
    assert only(chosen(extender("a", agent=agent), profiles=3)).warnings == ()


# --- what others have ----------------------------------------------------------------------------

GPU = [{"name": "example.com/gpu"}]


def test_the_older_one_keeps_a_managed_resource() -> None:
    found = chosen(foreign("a", 1, managedResources=GPU), foreign("b", 9, managedResources=GPU))
    assert urls(found) == ["http://10.0.0.1/b"]
    ((path, message),) = problems(found.verdicts[0])
    assert path == "spec.managedResources[0].name"
    assert message.startswith('SchedulerExtender "b" manages "example.com/gpu" already')


def test_only_one_binds() -> None:
    binds = {"verbs": {"bind": "bind"}}
    agent = {**SAFE, "verbs": {"bind": True}}
    found = chosen(foreign("a", 1, **binds), extender("b", 9, running(5401), agent=agent))
    assert urls(found) == ["http://127.0.0.1:5401/b"]
    assert [path for path, _ in problems(found.verdicts[0])] == ["spec.verbs.bind"]


def test_what_a_scheduler_has_already_comes_first() -> None:
    own = [{"urlPrefix": "http://x", "bindVerb": "b", "managedResources": GPU}]
    found = extenders_of(
        "",
        [foreign("a", verbs={"bind": "b"}), foreign("b", managedResources=GPU), foreign("c")],
        own,
        TARGET,
        itself="unsupportedConfigOverrides",
    )
    assert urls(found) == ["http://10.0.0.1/c"]
    assert all("unsupportedConfigOverrides" in problems(v)[0][1] for v in found.verdicts[:2])


@pytest.mark.parametrize("own", [None, {}, "x", [None, 3], [{"managedResources": None}]])
def test_whatever_stands_where_extenders_belong(own: Any) -> None:
    found = extenders_of("", [foreign("a")], own, TARGET, itself="x")
    assert urls(found) == ["http://10.0.0.1/a"]


def test_the_same_url_twice_is_told() -> None:
    own = [{"urlPrefix": "http://10.0.0.1/a/", "filterVerb": "filter"}]
    (verdict,) = extenders_of("", [foreign("a")], own, TARGET, itself="x").verdicts
    assert [w.reason for w in verdict.warnings] == ["CalledTwice"]


# --- held ----------------------------------------------------------------------------------------


def test_a_bad_edit_is_held_and_the_others_go_on() -> None:
    good = {"url": "http://10.0.0.1/a", "verbs": FILTER}
    bad = extender("a", 5, {"accepted": good}, url="http://10.0.0.1/a", verbs={})
    found = chosen(bad, foreign("b"))
    assert urls(found) == ["http://10.0.0.1/a", "http://10.0.0.1/b"]
    held = found.verdicts[0]
    assert (held.accepted, held.held, held.spec) == (False, True, good)


def test_a_bad_edit_of_an_agent_keeps_its_port_and_its_policies() -> None:
    good = {"agent": SAFE}
    wrong = {"policies": [{"name": "nonsense"}]}
    status = {"accepted": good, **running(5409)}
    verdict = only(chosen(extender("a", 5, status, agent=wrong)))
    assert verdict.held
    assert verdict.agent == SAFE
    assert (verdict.entry or {})["urlPrefix"] == agent_url("a", 5409)


def test_what_was_accepted_and_cannot_run_any_more_is_left_out() -> None:
    status = {"accepted": {"url": "http://a", "verbs": {}}}
    verdict = only(chosen(extender("a", 5, status, url="http://a")))
    assert (verdict.accepted, verdict.spec, verdict.entry) == (False, None, None)
    assert len(verdict.findings) == 1, "the same mistake in both versions is one mistake"


# --- which scheduler -----------------------------------------------------------------------------


def test_each_scheduler_has_its_own() -> None:
    objects = [foreign("a"), foreign("b", scheduler="mine")]
    assert urls(chosen(*objects)) == ["http://10.0.0.1/a"]
    assert urls(chosen(*objects, scheduler="mine")) == ["http://10.0.0.1/b"]


def test_one_that_moves_stays_until_the_other_has_accepted_it() -> None:
    here = {"url": "http://10.0.0.1/a", "verbs": FILTER}
    moving = foreign("a", 5, {"accepted": here}, scheduler="mine")
    assert urls(chosen(moving)) == ["http://10.0.0.1/a"]
    assert chosen(moving).verdicts == (), "who is to have it says what became of it"
    moved = foreign("a", 5, {"accepted": {**here, "scheduler": "mine"}}, scheduler="mine")
    assert chosen(moved).all == ()
    assert urls(chosen(moved, scheduler="mine")) == ["http://10.0.0.1/a"]


def test_a_scheduler_that_does_not_exist() -> None:
    (verdict,) = unclaimed_extenders([foreign("a", scheduler="nobody"), foreign("b")], {""})
    ((path, message),) = problems(verdict)
    assert path == "spec.scheduler"
    assert 'there is no SecondaryScheduler "nobody"' in message
    here = {"url": "http://10.0.0.1/a", "verbs": FILTER}
    status = {"accepted": here}
    (verdict,) = unclaimed_extenders([foreign("a", 5, status, scheduler="nobody")], {""})
    assert verdict.held


# --- what kube-scheduler itself refuses ----------------------------------------------------------


def blamed(words: str, *objects: Any, refused: Any = None) -> dict[str, list[tuple[str, str]]]:
    found = chosen(*objects)
    entries = list(found.entries) if refused is None else refused
    verdicts = attribute_extenders(found.verdicts, words, entries, "refused revision 3")
    return {v.name: problems(v) for v in verdicts if v.findings}


def test_what_kube_scheduler_refuses_is_told_at_the_object() -> None:
    words = "extenders[1].httpTimeout: Invalid value: 0"
    found = blamed(words, foreign("a"), foreign("b"))
    assert found == {"b": [("spec.timeout", f"refused revision 3: {words}")]}


def test_a_file_that_it_cannot_read_is_told_where_it_is_named() -> None:
    tls = {"caFile": "/etc/x/ca.crt"}
    words = "unable to load root certificates: open /etc/x/ca.crt: no such file or directory"
    found = blamed(words, foreign("a", url="https://a", tls=tls), foreign("b"))
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
def test_nobody_is_blamed_for_what_is_not_his(words: str, refused: Any) -> None:
    assert blamed(words, foreign("a"), refused=refused) == {}
