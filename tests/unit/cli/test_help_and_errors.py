"""What the commands share: a start that is instant, sentences that help, exit codes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kube_scheduler_operator.__main__ import PLUGIN_COMMANDS, _parser, kubectl_plugin
from kube_scheduler_operator.cli.console.errors import error_message
from kube_scheduler_operator.cli.console.examples import EXAMPLES
from kube_scheduler_operator.cli.console.output import format_table
from kube_scheduler_operator.kube.errors import ApiRequest, Conflict, Forbidden
from kube_scheduler_operator.kube.resource import PODS

HEAVY = ("aiohttp", "asyncio", "jinja2", "kopf", "kubernetes", "ssl", "tempfile", "yaml")


def test_help_loads_nothing_that_is_heavy() -> None:
    program = (
        "import sys\nfrom kube_scheduler_operator.__main__ import kubectl_plugin\n"
        "try:\n    kubectl_plugin(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert set(done.stderr.split()) & set(HEAVY) == set()
    assert "must-gather" in done.stdout


@pytest.mark.parametrize(
    "name", ["adopt", "check", "completion", "nodes", "pending", "simulate", "why"]
)
def test_flags_are_known_without_what_the_command_needs(name: str) -> None:
    program = (
        "import sys\nfrom kube_scheduler_operator.__main__ import kubectl_plugin\n"
        f"try:\n    kubectl_plugin(['{name}', '--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sys.modules, sep='\\n', file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    heavy = ("config.effective", "config.migrate", "simulate.run", "simulate.world")
    prefixes = tuple(f"kube_scheduler_operator.{part}" for part in heavy)
    assert [module for module in done.stderr.split() if module.startswith(prefixes)] == []


@pytest.mark.parametrize("name", [command.name for command in PLUGIN_COMMANDS])
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        kubectl_plugin([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: kubectl scheduler {name}" in capsys.readouterr().out


def test_a_missing_right_on_a_subresource_is_named_with_its_rule() -> None:
    request = ApiRequest("get", "/x", PODS, "kube-system", "p", "log")
    error = Forbidden(request, status=403, message='User "u" cannot get resource "pods/log"')
    assert error_message(error) == (
        "no permission to get pods/log in namespace kube-system; ask a cluster administrator for a "
        'Role in namespace kube-system: apiGroups: [""], resources: ["pods/log"], verbs: ["get"]'
    )


def test_denial_without_a_missing_rule_shows_the_servers_message() -> None:
    error = Forbidden(ApiRequest("create", "/x", PODS, "ns"), status=403, message="exceeded quota")
    assert "exceeded quota" in error_message(error)
    assert "administrator" not in error_message(error)


def test_conflict_message_has_a_remedy() -> None:
    error = Conflict(ApiRequest("update", "/x", PODS, "ns", "p"), status=409, message="modified")
    assert error_message(error).endswith("run the command again")


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert format_table([("A", "B"), ("long", ""), ("x", "y")]) == ["A     B", "long", "x     y"]


def usage(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        kubectl_plugin(argv)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "sentence"),
    [
        (["statsu"], '"statsu" is not a command; did you mean "status"?'),
        (["zzz"], '"zzz" is not a command\n'),
        (["rollout", "undoo"], '"undoo" is not a command; did you mean "undo"?'),
        (["status", "--verbos2"], 'unknown flag --verbos2; did you mean "--verbose"?'),
        (["status", "--outptu=json"], 'unknown flag --outptu; did you mean "--output"?'),
        (["status", "-o", "jsno"], '"jsno" is not one of text, json, yaml; did you mean "json"?'),
        (["status", "more"], 'unexpected argument "more"'),
        (
            ["check", "--upgrade", "1.37", "--from-files", "a.yaml", "b.yaml"],
            'unexpected argument "b.yaml"; --from-files takes one value: write --from-files b.yaml',
        ),
        (["convert", "-f", "x", "--as", "second"], "unknown flag --as"),
    ],
)
def test_a_wrong_word_is_answered_with_the_one_that_was_meant(
    argv: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"{sentence}" in usage(argv, capsys)


@pytest.mark.parametrize(("argv", "part"), [([], "must-gather"), (["rollout"], "undo")])
def test_without_a_command_the_help_is_printed(
    argv: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert kubectl_plugin(argv) == 0
    assert part in capsys.readouterr().out


@pytest.mark.parametrize("name", [command.name for command in PLUGIN_COMMANDS])
def test_the_help_of_every_command_has_examples(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        kubectl_plugin([name, "--help"])
    assert f"Examples:\n  kubectl scheduler {name}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "example", [line for examples in EXAMPLES.values() for line, _ in examples]
)
def test_every_example_is_a_valid_command_line(example: str) -> None:
    words = example.partition(" > ")[0].split()
    args = _parser("kubectl scheduler", "", PLUGIN_COMMANDS, words).parse_args(words)
    assert callable(args.run) or words == ["rollout"]


@pytest.mark.parametrize("name", ["status", "check", "why", "pending", "nodes", "adopt", "history"])
def test_commands_of_a_cluster_take_kubectls_flags_for_impersonation(name: str) -> None:
    words = [name, *(["p"] if name == "why" else ())]
    words += ["--as", "jane", "--as-group", "a", "--as-group=b", "--as-uid", "7", "--context", "c"]
    args = _parser("kubectl scheduler", "", PLUGIN_COMMANDS, words).parse_args(words)
    assert (args.as_user, args.as_groups, args.as_uid) == ("jane", ["a", "b"], "7")
