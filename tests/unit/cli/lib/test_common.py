"""What the commands share: a start that is instant, sentences that help, exit codes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from kube_scheduler_operator.__main__ import FOR_PEOPLE, kubectl_plugin
from kube_scheduler_operator.cli.lib import common
from kube_scheduler_operator.kube.errors import Conflict, Forbidden, Request
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


@pytest.mark.parametrize("module", FOR_PEOPLE)
def test_every_command_explains_itself(module, capsys: pytest.CaptureFixture[str]) -> None:
    name = module.__name__.rpartition(".")[2].replace("_", "-")
    with pytest.raises(SystemExit) as ended:
        kubectl_plugin([name, "--help"])
    assert ended.value.code == 0
    assert f"usage: kubectl scheduler {name}" in capsys.readouterr().out


def test_a_missing_right_on_a_subresource_is_named_with_its_rule() -> None:
    request = Request("get", "/x", PODS, "kube-system", "p", "log")
    error = Forbidden(request, status=403, message='User "u" cannot get resource "pods/log"')
    assert common.sentence(error) == (
        "you may not get pods/log in namespace kube-system; somebody who may must give you a Role "
        'in namespace kube-system: apiGroups: [""], resources: ["pods/log"], verbs: ["get"]'
    )


def test_what_no_rule_would_allow_is_told_in_the_servers_words() -> None:
    error = Forbidden(Request("create", "/x", PODS, "ns"), status=403, message="exceeded quota")
    assert "exceeded quota" in common.sentence(error)
    assert "give you" not in common.sentence(error)


def test_a_conflict_says_what_to_do() -> None:
    error = Conflict(Request("update", "/x", PODS, "ns", "p"), status=409, message="modified")
    assert common.sentence(error).endswith("run the command again")


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert common.table([("A", "B"), ("long", ""), ("x", "y")]) == ["A     B", "long", "x     y"]
