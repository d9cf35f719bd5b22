"""The file of an extender: what it may say, and what is said where it is wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.programs.extender.config import (
    AgentSpec,
    Config,
    ConfigError,
    Listen,
    Member,
    PodSelector,
    Tls,
    from_document,
    of_policies,
    override,
    read,
)

FOO = {"policies": [{"policy": "foo"}]}

EVERYTHING = """
listen:
  address: 0.0.0.0
  port: 6000
  tls: {certFile: /c, keyFile: /k, clientCAFile: /ca}
  health: {port: 6001}
policies:
  - {name: first, policy: foo, arguments: {value: 3}, failurePolicy: Fail}
  - {policy: safe-overload}
agents:
  - name: default
    policies: [{name: safe-overload, weight: 1}, {policy: safe-balance, weight: 10}]
podSelector: {schedulerNames: [mine], matchLabels: {app: web}}
logLevel: trace
kubeconfig: /kc
watch: false
decisions: 7
"""


def test_everything_that_can_be_said() -> None:
    found = read(EVERYTHING)
    assert found == Config(
        agents=(
            AgentSpec("first", (Member("foo", {"value": 3}, name="first"),), "Fail"),
            AgentSpec("safe-overload", (Member("safe-overload"),)),
            AgentSpec("default", (Member("safe-overload"), Member("safe-balance", {}, 10))),
        ),
        listen=Listen("0.0.0.0", 6000, Tls("/c", "/k", "/ca")),
        health=Listen("", 6001),
        pod_selector=PodSelector(frozenset(["mine"]), {"app": "web"}),
        log_level="TRACE",
        kubeconfig="/kc",
        watch=False,
        decisions=7,
        digest=found.digest,
    )
    assert len(found.digest) == 16


def test_an_agent_names_policies_that_are_served_with_their_arguments() -> None:
    found = read(
        """
        policies: [{name: strict, policy: safe-overload, arguments: {utilization: 50}}]
        agents: [{name: a, policies: [{name: strict, weight: 0}, {name: safe-overload}]}]
        """
    )
    strict = Member("safe-overload", {"utilization": 50}, name="strict")
    assert found.agents[0].members == (strict,)
    assert found.agents[1].members == (replace(strict, weight=0), Member("safe-overload"))


def test_json_is_read_as_well() -> None:
    assert read(json.dumps(FOO)).agents == of_policies(["foo"]).agents


def test_defaults() -> None:
    found = of_policies(["foo"])
    assert found.listen == Listen("127.0.0.1", 5401)
    assert (found.log_level, found.watch, found.decisions, found.health) == (
        "INFO",
        True,
        200,
        None,
    )


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ([], "this must be an object with listen, policies"),
        ({}, "policies: there is nothing to serve"),
        ({"policys": []}, 'policys: there is no such field; did you mean "policies"?'),
        (
            {**FOO, "listen": {"prot": 1}},
            'listen.prot: there is no such field; did you mean "port"',
        ),
        ({**FOO, "listen": {"port": 70000}}, "listen.port: this must be a whole number from 0"),
        ({**FOO, "listen": {"port": True}}, "listen.port: this must be a whole number from 0"),
        ({**FOO, "listen": {"address": 1}}, "listen.address: this must be a text"),
        ({**FOO, "listen": {"tls": {"certFile": "/c"}}}, "listen.tls: certFile and keyFile belong"),
        ({**FOO, "listen": {"health": {}}}, "listen.health.port: this must be a port"),
        ({"policies": {}}, "policies: this must be a list"),
        ({"policies": [7]}, "policies[0]: this must be an object"),
        ({"policies": [{}]}, "policies[0].policy: this must be the name of a policy"),
        ({"policies": [{"policy": "fooo"}]}, 'policies[0].policy: there is no policy "fooo"'),
        (
            {"policies": [{"policy": "foo", "arguments": {"value": 11}}]},
            "policies[0].arguments.value: 11 is not between 0 and 10",
        ),
        (
            {"policies": [{"policy": "foo", "arguments": []}, {"policy": "foo", "arguments": 7}]},
            "policies[1].arguments: this must be an object",
        ),
        ({"policies": [{"policy": "foo", "name": "a/b"}]}, 'policies[0].name: "a/b" cannot be'),
        ({"policies": [{"policy": "foo", "name": "scheduler"}]}, "another word than scheduler"),
        ({"policies": [{"policy": "foo"}] * 2}, 'policies[1].name: "foo" is served already'),
        ({"policies": [{"policy": "foo", "failurePolicy": "No"}]}, "use Ignore or Fail"),
        ({"agents": [{"name": "a"}]}, "agents[0].policies: an agent needs one policy"),
        ({"agents": [{"policies": [{"policy": "foo"}]}]}, 'agents[0].name: "" cannot be'),
        (
            {"agents": [{"name": "a", "policies": [{"policy": "foo", "weight": -1}]}]},
            "agents[0].policies[0].weight: this must be a whole number from 0",
        ),
        ({**FOO, "podSelector": {"schedulerNames": "x"}}, "podSelector.schedulerNames: this must"),
        (
            {**FOO, "podSelector": {"matchLabels": {"a": 1}}},
            "podSelector.matchLabels: this",
        ),
        ({**FOO, "logLevel": "LOUD"}, 'logLevel: "LOUD" is not known; use TRACE, DEBUG'),
        ({**FOO, "watch": "yes"}, "watch: this must be true or false"),
        ({**FOO, "decisions": -1}, "decisions: this must be a whole number from 0"),
    ],
)
def test_what_is_wrong_is_named_with_its_field(change: Any, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_document(change)
    assert any(told in problem for problem in caught.value.problems), caught.value.problems


def test_all_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        from_document({"policies": [{"policy": "x"}], "watch": 1, "decisions": "y"})
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("text", ["a: [", "\t- x", "a: b: c"])
def test_what_is_no_yaml_is_said(text: str) -> None:
    with pytest.raises(ConfigError, match="neither YAML nor JSON"):
        read(text)


@pytest.mark.parametrize(
    ("environ", "flag", "port", "level"),
    [
        ({}, None, 5401, "INFO"),
        ({"HTTP_PORT": "80", "LOG_LEVEL": "TRACE"}, None, 80, "TRACE"),
        ({"HTTP_PORT": "80"}, 6000, 6000, "INFO"),
        ({"HTTP_PORT": "", "LOG_LEVEL": "debug"}, 0, 0, "DEBUG"),
        ({"LOG_LEVEL": "NOISY"}, None, 5401, "INFO"),
    ],
)
def test_flags_come_before_the_environment_and_that_before_the_file(
    environ: dict[str, str], flag: int | None, port: int, level: str
) -> None:
    found = override(of_policies(["foo"]), environ, flag)
    assert (found.listen.port, found.log_level) == (port, level)


@pytest.mark.parametrize("port", ["x", "-1", "65536", "8O", "٣"])
def test_a_port_that_is_none_is_said(port: str) -> None:
    with pytest.raises(ConfigError, match="HTTP_PORT"):
        override(of_policies(["foo"]), {"HTTP_PORT": port})


def test_a_file_is_checked_without_what_serving_needs() -> None:
    """The operator checks what it writes, in a process that must stay small."""
    program = (
        "import sys; from kube_scheduler_operator.programs.extender import config;"
        'config.read(\'{"policies": [{"policy": "safe-overload"}]}\');'
        "print([m for m in ('numpy', 'orjson', 'httptools', 'uvloop') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50
    )
    assert done.stdout.strip() == "[]"
