"""The configuration of an extender: its fields, and the errors for invalid ones."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.scheduling.extender.config import (
    AgentSpec,
    BindSettings,
    Config,
    ConfigError,
    Listen,
    MemberSpec,
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
bind: {schedulerNames: [mine, another]}
logLevel: trace
kubeconfig: /kc
watch: false
decisions: 7
"""


def test_all_fields() -> None:
    found = read(EVERYTHING)
    assert found == Config(
        agents=(
            AgentSpec("first", (MemberSpec("foo", {"value": 3}, name="first"),), "Fail"),
            AgentSpec("safe-overload", (MemberSpec("safe-overload"),)),
            AgentSpec("default", (MemberSpec("safe-overload"), MemberSpec("safe-balance", {}, 10))),
        ),
        listen=Listen("0.0.0.0", 6000, Tls("/c", "/k", "/ca")),
        health=Listen("", 6001),
        pod_selector=PodSelector(frozenset(["mine"]), {"app": "web"}),
        bind=BindSettings(frozenset(["mine", "another"])),
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
    strict = MemberSpec("safe-overload", {"utilization": 50}, name="strict")
    assert found.agents[0].members == (strict,)
    assert found.agents[1].members == (replace(strict, weight=0), MemberSpec("safe-overload"))


def test_json_is_accepted() -> None:
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
    ("change", "message"),
    [
        ([], "this must be an object with listen, policies"),
        ({}, "policies: nothing to serve"),
        ({"policys": []}, 'policys: unknown field; did you mean "policies"?'),
        (
            {**FOO, "listen": {"prot": 1}},
            'listen.prot: unknown field; did you mean "port"',
        ),
        ({**FOO, "listen": {"port": 70000}}, "listen.port: 70000 is not between 0 and 65535"),
        ({**FOO, "listen": {"port": True}}, "listen.port: this must be an integer between 0"),
        ({**FOO, "listen": {"address": 1}}, "listen.address: this must be a string"),
        ({**FOO, "listen": {"tls": {"certFile": "/c"}}}, "listen.tls: certFile and keyFile must"),
        ({**FOO, "listen": {"health": {}}}, "listen.health.port: this is missing"),
        ({"policies": {}}, "policies: this must be a list"),
        ({"policies": [7]}, "policies[0]: this must be an object"),
        ({"policies": [{}]}, "policies[0].policy: this must be the name of a policy"),
        ({"policies": [{"policy": "fooo"}]}, 'policies[0].policy: unknown policy "fooo"'),
        (
            {"policies": [{"policy": "foo", "arguments": {"value": 11}}]},
            "policies[0].arguments.value: 11 is not between 0 and 10",
        ),
        (
            {"policies": [{"policy": "foo", "arguments": []}, {"policy": "foo", "arguments": 7}]},
            "policies[1].arguments: this must be an object",
        ),
        ({"policies": [{"policy": "foo", "name": "a/b"}]}, 'policies[0].name: "a/b" cannot be'),
        ({"policies": [{"policy": "foo", "name": "scheduler"}]}, "a word other than scheduler"),
        ({"policies": [{"policy": "foo"}] * 2}, 'policies[1].name: "foo" is already in use'),
        ({"policies": [{"policy": "foo", "failurePolicy": "No"}]}, "use Ignore or Fail"),
        ({"agents": [{"name": "a"}]}, "agents[0].policies: an agent needs at least one policy"),
        ({"agents": [{"policies": [{"policy": "foo"}]}]}, 'agents[0].name: "" cannot be'),
        (
            {"agents": [{"name": "a", "policies": [{"policy": "foo", "weight": -1}]}]},
            "agents[0].policies[0].weight: -1 is not between 0 and 1000",
        ),
        ({**FOO, "podSelector": {"schedulerNames": "x"}}, "podSelector.schedulerNames: this must"),
        (
            {**FOO, "podSelector": {"matchLabels": {"a": 1}}},
            "podSelector.matchLabels.a: this must be a string",
        ),
        ({**FOO, "logLevel": "LOUD"}, 'logLevel: "LOUD" is not known; use TRACE, DEBUG'),
        ({**FOO, "watch": "yes"}, "watch: this must be true or false"),
        ({**FOO, "decisions": -1}, "decisions: -1 is not between 0 and 100000"),
    ],
)
def test_errors_name_the_field(change: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_document(change)
    assert any(message in problem for problem in caught.value.problems), caught.value.problems


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("policies:\n  - policy: foo\n    arguments: {value: 11}\n",
         "line 3, column 17: policies[0].arguments.value: 11 is not between 0 and 10"),
        ('{"policies": [{"policy": "foo"}],\n "watch": 1}',
         "line 2, column 2: watch: this must be true or false"),
        ("policies: [{policy: foo}]\nagents:\n- {name: foo, policies: [{policy: foo}]}\n",
         'line 3, column 4: agents[0].name: "foo" is already in use'),
        ("", "this must be an object with listen"),
    ],
)  # fmt: skip
def test_errors_in_a_file_have_their_position(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert caught.value.problems[0].startswith(problem)


def test_all_errors_are_reported_together() -> None:
    with pytest.raises(ConfigError) as caught:
        from_document({"policies": [{"policy": "x"}], "watch": 1, "decisions": "y"})
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("text", ["a: [", "\t- x", "a: b: c", "a: &a [*a]", "{a: 1}", "[" * 5000])
def test_invalid_yaml_is_an_error(text: str) -> None:
    with pytest.raises(ConfigError, match="neither YAML nor JSON: line "):
        read(text)


@pytest.mark.parametrize("text", ["watch: n\nwatch: y\n", '{"watch": false,\n"watch": true}'])
def test_a_duplicate_key_is_an_error_with_its_position(text: str) -> None:
    with pytest.raises(ConfigError, match='line 2, column 1: duplicate key "watch"'):
        read(text)


def test_yaml_is_read_as_kube_scheduler_reads_it() -> None:
    text = "policies: [{name: y, policy: foo}]\t# a tab\nwatch: n\n"
    with pytest.raises(ConfigError, match="policies"):
        read(text)
    assert not read("policies: [{policy: foo}]\t# a tab\nwatch: n\n").watch


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
def test_flags_override_the_environment_which_overrides_the_file(
    environ: dict[str, str], flag: int | None, port: int, level: str
) -> None:
    found = override(of_policies(["foo"]), environ, flag)
    assert (found.listen.port, found.log_level) == (port, level)


@pytest.mark.parametrize("port", ["x", "-1", "65536", "8O", "٣"])
def test_an_invalid_port_is_an_error(port: str) -> None:
    with pytest.raises(ConfigError, match="HTTP_PORT"):
        override(of_policies(["foo"]), {"HTTP_PORT": port})


def test_validation_loads_no_server_libraries() -> None:
    """The operator validates the files that it writes, and must stay small."""
    program = (
        "import sys; from kube_scheduler_operator.scheduling.extender import config;"
        'config.read(\'{"policies": [{"policy": "safe-overload"}]}\');'
        "print([m for m in ('numpy', 'orjson', 'httptools', 'uvloop') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=50
    )
    assert done.stdout.strip() == "[]"
