"""What `validate` ignores, raises and accepts, and its reports for CI systems."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from kube_scheduler_operator.cli.commands.validate import FORMATS

from .conftest import WriteFile, validate

HEAD = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: /etc/kubernetes/scheduler.conf}
"""
SAMPLED = f"{HEAD}percentageOfNodesToScore: 1\n"
WHY = "# kubectl-scheduler: ignore SampledTooFew: large test cluster\n"
BROKEN = f"{HEAD}parallelism: 0\n"


@pytest.fixture
def report(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    def ask(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        code = validate(*arguments, "-o", "json")
        shown: dict[str, Any] = json.loads(capsys.readouterr().out)
        return {**shown, "code": code}

    return ask


def reasons(shown: dict[str, Any]) -> list[tuple[str, int, str]]:
    return [(each["reason"], each["line"], each["severity"]) for each in shown["findings"]]


# --- comments -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        f"{HEAD}{WHY}percentageOfNodesToScore: 1\n",
        f"{HEAD}{WHY}\n# another comment\npercentageOfNodesToScore: 1\n",
        f"{HEAD}percentageOfNodesToScore: 1  {WHY}",
        f"{HEAD}percentageOfNodesToScore: 1  #kubectl-scheduler:ignore SampledTooFew:why",
        f"{HEAD}percentageOfNodesToScore: 1  {WHY}".replace("\n", "\r\n"),
        f"{HEAD}percentageOfNodesToScore: 1  "
        "# kubectl-scheduler: ignore SampledTooFew, SampledTooFew: twice is once\n",
    ],
    ids=["before", "far", "same-line", "short", "crlf", "list"],
)
def test_a_comment_with_a_reason_ignores_a_warning(
    write_file: WriteFile, report: Any, text: str
) -> None:
    shown = report("-f", write_file(text), "--strict")
    assert (shown["code"], shown["findings"]) == (0, [])
    (ignored,) = shown["ignored"]
    assert (ignored["reason"], ignored["severity"]) == ("SampledTooFew", "warning")
    assert ignored["justification"] in ("large test cluster", "why", "twice is once")


def test_the_summary_counts_ignored_warnings(write_file: WriteFile, capsys: Any) -> None:
    validate("-f", write_file(f"{HEAD}{WHY}percentageOfNodesToScore: 1\n"))
    assert capsys.readouterr().out == (
        "kube-scheduler 1.35 would start with 1 document: 1 warning ignored\n"
    )


def test_a_comment_inside_the_configuration_of_a_config_map_counts(
    write_file: WriteFile, report: Any
) -> None:
    lines = f"{HEAD}{WHY}percentageOfNodesToScore: 1\n".splitlines(keepends=True)
    manifest = (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: scheduler}\ndata:\n  config.yaml: |\n"
        + "".join(f"    {line}" for line in lines)
    )
    shown = report("-f", write_file(manifest))
    assert (shown["findings"], len(shown["ignored"])) == ([], 1)


@pytest.mark.parametrize(
    ("comment", "message", "fix"),
    [
        ("ignore SampledTooFew", "without a reason", "ignore SampledTooFew: reason"),
        ("ignore SampledTooFew:", "without a reason", "ignore SampledTooFew: reason"),
        ("ignore SampledTooFw: why", '"SampledTooFw" is not a rule', '"SampledTooFew"'),
        ("ignore", "names no rule", "# kubectl-scheduler: ignore RULE: reason"),
        ("ignore : why", "names no rule", "# kubectl-scheduler: ignore RULE: reason"),
    ],
)
def test_a_comment_without_rule_or_reason_is_an_error_and_ignores_nothing(
    write_file: WriteFile, report: Any, comment: str, message: str, fix: str
) -> None:
    text = f"{HEAD}percentageOfNodesToScore: 1  # kubectl-scheduler: {comment}\n"
    shown = report("-f", write_file(text))
    assert (shown["code"], shown["starts"]) == (1, True)
    assert sorted(reasons(shown)) == [
        ("InvalidSuppression", 4, "error"),
        ("SampledTooFew", 4, "warning"),
    ]
    (wrong,) = [each for each in shown["findings"] if each["reason"] == "InvalidSuppression"]
    assert wrong["column"] == text.splitlines()[3].index("#") + 1
    assert message in wrong["message"]
    assert fix in wrong["fix"]


def test_a_comment_that_ignores_nothing_is_a_warning(write_file: WriteFile, report: Any) -> None:
    shown = report("-f", write_file(f"{WHY}{HEAD}parallelism: 1\n"))
    assert reasons(shown) == [("UnusedSuppression", 1, "warning")]
    assert shown["findings"][0]["fix"] == "remove the comment"
    shown = report("-f", write_file(f"{WHY}{SAMPLED}"))
    assert reasons(shown) == [("UnusedSuppression", 1, "warning"), ("SampledTooFew", 5, "warning")]
    assert "move it to line 5" in shown["findings"][0]["fix"]


def test_an_error_cannot_be_ignored(write_file: WriteFile, report: Any) -> None:
    comment = "# kubectl-scheduler: ignore InvalidConfiguration: not now\n"
    shown = report("-f", write_file(f"{HEAD}{comment}parallelism: 0\n"))
    assert (shown["code"], shown["starts"], shown["ignored"]) == (1, False, [])
    assert reasons(shown) == [
        ("UnusedSuppression", 4, "warning"),
        ("InvalidConfiguration", 5, "error"),
    ]
    assert "is an error here" in shown["findings"][0]["message"]


def test_comments_of_a_file_with_errors_are_not_unused(write_file: WriteFile, report: Any) -> None:
    """Its warnings are computed when the errors are corrected."""
    shown = report("-f", write_file(f"{HEAD}{WHY}percentageOfNodesToScore: 1\nparallelism: 0\n"))
    assert reasons(shown) == [("InvalidConfiguration", 6, "error")]


def test_a_comment_concerns_its_own_file_only(write_file: WriteFile, report: Any) -> None:
    lease = "leaderElection: {resourceName: other}\nprofiles: [{schedulerName: other}]\n"
    names = [write_file(f"{HEAD}{WHY}percentageOfNodesToScore: 1\n")]
    names.append(write_file(f"{HEAD}percentageOfNodesToScore: 1\n{lease}", "b.yaml"))
    shown = report("-f", names[0], "-f", names[1], "--severity", "SameNodes=off")
    assert [(each["file"], each["reason"]) for each in shown["findings"]] == [
        ("b.yaml", "SampledTooFew")
    ]


def test_json_has_no_comments(write_file: WriteFile, report: Any) -> None:
    text = json.dumps({
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": "/a # kubectl-scheduler: ignore SampledTooFew: x"},
        "percentageOfNodesToScore": 1,
    })  # fmt: skip
    assert [each[0] for each in reasons(report("-f", write_file(text)))] == ["SampledTooFew"]
    shown = report("-f", write_file(text), "--ignore", "SampledTooFew: large test cluster")
    assert (shown["findings"], len(shown["ignored"])) == ([], 1)


@pytest.mark.parametrize(
    ("flag", "left"), [("SampledTooFew@a*: why", ["b.yaml"]), ("SampledTooFew@*: why", [])]
)
def test_a_flag_ignores_in_files_by_pattern(
    write_file: WriteFile, report: Any, flag: str, left: list[str]
) -> None:
    lease = "leaderElection: {resourceName: other}\nprofiles: [{schedulerName: other}]\n"
    names = [write_file(SAMPLED), write_file(f"{SAMPLED}{lease}", "b.yaml")]
    shown = report("-f", names[0], "-f", names[1], "--severity", "SameNodes=off", "--ignore", flag)
    assert [each["file"] for each in shown["findings"]] == left


def test_a_flag_that_ignores_nothing_is_a_warning(write_file: WriteFile, report: Any) -> None:
    shown = report("-f", write_file(HEAD), "--ignore", "SampledTooFew@b.yaml: why")
    assert reasons(shown) == [("UnusedSuppression", 1, "warning")]
    assert shown["findings"][0]["message"] == (
        "no file b.yaml has a finding SampledTooFew for --ignore"
    )


# --- severities ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "severity", "code"),
    [
        ((), "warning", 0),
        (("--strict",), "error", 1),
        (("--severity", "SampledTooFew=error"), "error", 1),
        (("--severity", "SampledTooFew=warning", "--strict"), "warning", 0),
        (("--severity", "SampledTooFew=off"), None, 0),
        (("--severity", "NoKubeconfig=error,SampledTooFew=off", "--strict"), None, 0),
    ],
)
def test_users_choose_the_severity_of_a_warning(
    write_file: WriteFile, report: Any, flags: tuple[str, ...], severity: str | None, code: int
) -> None:
    shown = report("-f", write_file(SAMPLED), *flags)
    assert (shown["code"], shown["starts"]) == (code, True)
    assert [each["severity"] for each in shown["findings"]] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--severity", "SampledTooFw=off"), 'did you mean "SampledTooFew"?'),
        (("--severity", "SampledTooFew=info"), "use error, warning or off"),
        (("--severity", "SampledTooFew"), "use error, warning or off"),
        (("--severity", "UnknownPlugin=off"), "cannot be lowered"),
        (("--ignore", "SampledTooFew"), "without a reason"),
        (("--ignore", "Sampled: x"), "is not a rule"),
        (("--write-baseline",), "--write-baseline needs --baseline FILE"),
        (("--baseline", "none.json"), "create it with --write-baseline"),
        (("--baseline", "a.yaml"), "this is not JSON"),
        (("--baseline", "."), "Is a directory"),
        (("--baseline", "none/a.json", "--write-baseline"), "No such file"),
    ],
)
def test_wrong_flags_are_wrong_usage(
    write_file: WriteFile, capsys: Any, flags: tuple[str, ...], message: str
) -> None:
    assert validate("-f", write_file(SAMPLED), *flags) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"error: {flags[0] if flags[0] != '--write-baseline' else ''}")
    assert message in shown.err


# --- baseline -----------------------------------------------------------------------------------

BASELINE = ("--baseline", "baseline.json")


def test_only_findings_that_are_not_in_the_baseline_fail(
    write_file: WriteFile, report: Any, capsys: Any
) -> None:
    name = write_file(BROKEN)
    assert validate("-f", name, *BASELINE, "--write-baseline") == 0
    shown = capsys.readouterr().out
    assert shown == (
        "kube-scheduler 1.35 would not start with 1 document: 1 finding in the baseline\n"
    )
    shown = report("-f", name, *BASELINE)
    assert (shown["code"], shown["starts"], shown["findings"]) == (0, False, [])
    assert [each["reason"] for each in shown["baseline"]] == ["InvalidConfiguration"]
    write_file(f"{BROKEN}podMaxBackoffSeconds: 0\n")
    shown = report("-f", name, *BASELINE)
    assert shown["code"] == 1
    assert [each["path"] for each in shown["findings"]] == ["podMaxBackoffSeconds"]


@pytest.mark.parametrize(
    "moved",
    [
        "# a line\n\nprofiles:\n- schedulerName: other\n- schedulerName: mine\n  plugins:\n"
        "    score: {enabled: [{name: NodeAffinity}, {name: Nope, weight: 2}]}\n",
        "profiles:\n- schedulerName: mine\n  plugins: {score: {enabled: [{name: Nope}]}}\n",
    ],
    ids=["moved", "the-same"],
)
def test_a_finding_stays_known_when_lines_and_entries_move(
    write_file: WriteFile, report: Any, moved: str
) -> None:
    before = "profiles:\n- schedulerName: mine\n  plugins: {score: {enabled: [{name: Nope}]}}\n"
    validate("-f", write_file(HEAD + before), *BASELINE, "--write-baseline")
    shown = report("-f", write_file(HEAD + moved), *BASELINE)
    assert (shown["findings"], len(shown["baseline"])) == ([], 1)


def test_a_second_finding_of_the_same_kind_is_new(write_file: WriteFile, report: Any) -> None:
    twice = f"{HEAD}parallelism: 1\nparallelism: 2\n"
    validate("-f", write_file(twice), *BASELINE, "--write-baseline")
    shown = report("-f", write_file(f"{twice}parallelism: 3\n"), *BASELINE)
    assert (len(shown["baseline"]), len(shown["findings"])) == (1, 1)


def test_corrected_findings_of_the_baseline_are_a_note(write_file: WriteFile, capsys: Any) -> None:
    validate("-f", write_file(BROKEN), *BASELINE, "--write-baseline")
    capsys.readouterr()
    assert validate("-f", write_file(HEAD), *BASELINE) == 0
    assert capsys.readouterr().err == (
        "note: 1 of the findings in baseline.json no longer exist; shorten it with "
        "--write-baseline\n"
    )


def test_the_baseline_is_sorted_and_readable(write_file: WriteFile) -> None:
    names = [write_file(BROKEN, "b.yaml"), write_file(SAMPLED, "a.yaml")]
    validate("-f", names[0], "-f", f"./{names[1]}", *BASELINE, "--write-baseline")
    document = json.loads(Path("baseline.json").read_text())
    assert [(each["file"], each["rule"], each["subject"]) for each in document["findings"]] == [
        ("a.yaml", "SampledTooFew", "KubeSchedulerConfiguration/ percentageOfNodesToScore"),
        ("b.yaml", "InvalidConfiguration", "KubeSchedulerConfiguration/ parallelism"),
    ]


def test_sarif_and_gitlab_have_the_fingerprints_of_the_baseline(
    write_file: WriteFile, capsys: Any
) -> None:
    name = write_file(BROKEN)
    validate("-f", name, *BASELINE, "--write-baseline")
    known = json.loads(Path("baseline.json").read_text())["findings"][0]["fingerprint"]
    capsys.readouterr()
    validate("-f", name, "-o", "sarif")
    (result,) = json.loads(capsys.readouterr().out)["runs"][0]["results"]
    assert result["partialFingerprints"] == {"kubeSchedulerOperator/v1": known}
    validate("-f", name, "-o", "gitlab")
    (issue,) = json.loads(capsys.readouterr().out)
    assert issue == {
        "description": "parallelism: must be greater than 0; use 1 or more (default: 16)",
        "check_name": "InvalidConfiguration",
        "fingerprint": known,
        "severity": "critical",
        "location": {"path": "a.yaml", "lines": {"begin": 4}},
    }


# --- formats ------------------------------------------------------------------------------------


@pytest.mark.parametrize("output", FORMATS)
def test_every_format_can_be_written(write_file: WriteFile, capsys: Any, output: str) -> None:
    assert validate("-f", write_file(BROKEN), "-o", output) == 1
    assert "must be greater than 0" in capsys.readouterr().out


@pytest.mark.parametrize("output", ["github", "gitlab", "sarif"])
def test_ci_systems_get_the_names_of_files_in_the_repository(
    write_file: WriteFile, capsys: Any, output: str
) -> None:
    validate("-f", f"./{write_file(BROKEN)}", "-o", output)
    shown = capsys.readouterr().out
    assert "a.yaml" in shown
    assert "./a.yaml" not in shown


def test_sarif_describes_all_rules_also_without_findings(
    write_file: WriteFile, capsys: Any
) -> None:
    validate("-f", write_file(HEAD), "-o", "sarif")
    (log,) = json.loads(capsys.readouterr().out)["runs"]
    assert log["results"] == []
    (rule,) = [each for each in log["tool"]["driver"]["rules"] if each["id"] == "UnknownPlugin"]
    assert "docs/rules.md#unknownplugin" in rule["help"]["text"]
    assert rule["defaultConfiguration"] == {"level": "error"}
    assert "ImageLocalty" in rule["help"]["text"]
    assert "```yaml" in rule["help"]["markdown"]
    assert rule["fullDescription"]["text"].startswith("kube-scheduler exits")


def test_junit_has_a_failure_for_each_error_and_a_test_for_each_file(
    write_file: WriteFile, capsys: Any
) -> None:
    names = [write_file(f"{BROKEN}podMaxBackoffSeconds: 0\n"), write_file(HEAD, "b.yaml")]
    names.append(write_file(SAMPLED, "c.yaml"))
    flags = ("--severity", "SharedLease=off")
    validate("-f", names[0], "-f", names[1], "-f", names[2], *flags, "-o", "junit")
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert (root.tag, root.attrib["tests"], root.attrib["failures"]) == ("testsuites", "4", "2")
    suites = {each.attrib["name"]: each for each in root}
    assert {
        name: (each.attrib["tests"], each.attrib["failures"]) for name, each in suites.items()
    } == {
        "a.yaml": ("2", "2"),
        "b.yaml": ("1", "0"),
        "c.yaml": ("1", "0"),
    }
    first = suites["a.yaml"][0]
    assert first.attrib["name"] == "InvalidConfiguration parallelism (line 4)"
    failure = first.find("failure")
    assert failure is not None
    assert failure.attrib == {"type": "InvalidConfiguration", "message": "must be greater than 0"}
    assert (
        failure.text
        == "a.yaml:4:1: parallelism: must be greater than 0; use 1 or more (default: 16)"
    )
    assert suites["b.yaml"][0].attrib["name"] == "valid for kube-scheduler 1.35"
    output = suites["c.yaml"][0].find("system-out")
    assert output is not None
    assert "percentageOfNodesToScore" in str(output.text)


@pytest.mark.parametrize(
    "name", ["<&\"'>", "\x01\x1b[31m", "\ufffe\U0010ffff", "]]>", "a\nb", "\ud800"]
)
def test_junit_is_well_formed_whatever_a_file_has_in_it(
    write_file: WriteFile, capsys: Any, name: str
) -> None:
    validate("-f", write_file(f"{HEAD}{json.dumps(name)}: 1\n"), "-o", "junit")
    root = ElementTree.fromstring(capsys.readouterr().out.encode("utf-8"))
    assert int(root.attrib["failures"]) >= 1


# --- explanations -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SampledTooFew", "sampledtoofew"])
def test_a_rule_is_explained_without_a_file(capsys: Any, name: str) -> None:
    assert validate("--explain", name) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("SampledTooFew (warning, since ")
    assert "\nFix: " in shown
    assert "    percentageOfNodesToScore: 1\n" in shown


def test_without_a_name_all_rules_are_listed(capsys: Any) -> None:
    assert validate("--explain") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["RULE", "SEVERITY", "TITLE"]
    assert any(line.startswith("NotAllowed ") and "error or warning" in line for line in lines)


def test_an_unknown_rule_is_wrong_usage(capsys: Any) -> None:
    assert validate("--explain", "SampledToFew") == 2
    assert 'did you mean "SampledTooFew"?' in capsys.readouterr().err
