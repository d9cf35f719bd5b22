"""A fix with a value to write is right when it is applied as it stands."""

from __future__ import annotations

import pytest

from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.reports.report import FileFinding
from kube_scheduler_operator.config.lint.validate import validate

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
OPTIONS = CheckOptions(Gates(Version(1, 35)))


def errors(text: str) -> list[FileFinding]:
    return [each for each in validate([("f", text)], OPTIONS).findings if each.severity == "error"]


@pytest.mark.parametrize(
    ("field", "value", "written"),
    [
        ("parallelism: %s", "'5'", "5"),
        ("parallelism: %s", "5,", "5"),
        ("parallelism: %s", "5;", "5"),
        ("parallelism: %s", "+5 workers", "+5"),
        ("percentageOfNodesToScore: %s", "50%", "50"),
        ("enableProfiling: %s", "'true'", "true"),
        ("enableProfiling: %s", '"no"', "false"),
        ("enableProfiling: %s", "1", "true"),
        ("enableProfiling: %s", "0", "false"),
        ("clientConnection: {qps: %s}", "'50'", "50"),
        ("leaderElection: {leaseDuration: %s}", "15", "15s"),
        ("leaderElection: {leaseDuration: %s}", "30000000000", "30s"),
        ("leaderElection: {leaseDuration: %s}", "15500000000", "15500ms"),
        ("leaderElection: {leaseDuration: %s}", "15 s", "15s"),
        ("leaderElection: {leaseDuration: %s}", "15sec", "15s"),
        ("leaderElection: {leaseDuration: %s}", "15S", "15s"),
        ("leaderElection: {leaseDuration: %s}", "1d", "24h"),
        ("leaderElection: {leaseDuration: %s}", "2 minutes 30 seconds", "2m30s"),
    ],
)
def test_the_value_to_write_is_accepted(field: str, value: str, written: str) -> None:
    (error,) = errors(HEAD + field % value)
    assert error.fix == f"write {written}"
    assert errors(HEAD + field % written) == []


@pytest.mark.parametrize("value", ["1" + "0" * 400, "1e300"])
def test_a_number_that_no_duration_can_have_gets_an_example(value: str) -> None:
    (error,) = errors(HEAD + f"leaderElection: {{leaseDuration: {value}}}")
    assert error.fix == "write one such as 15s"


@pytest.mark.parametrize(
    ("text", "fix", "corrected"),
    [
        ("profiles: [{schedulerName: yes}]", "write it in quotes",
         'profiles: [{schedulerName: "yes"}]'),
        ("profiles: [{schedulerName: 010}]", "write it in quotes",
         'profiles: [{schedulerName: "010"}]'),
        ("profiles:\n  schedulerName: a", "begin each of its entries with a hyphen",
         "profiles:\n- schedulerName: a"),
        ("leaderElection:\n- leaderElect: true", "remove the hyphens before its fields",
         "leaderElection:\n  leaderElect: true"),
        ("leaderElection: true", "write its fields below it",
         "leaderElection:\n  leaderElect: true"),
        ("profiles: [mine]", "write {schedulerName: mine}", "profiles: [{schedulerName: mine}]"),
        ("profiles:\n- pluginConfig:\n  - {name: NodeResourcesFitArgs, args: {}}\n",
         'did you mean "NodeResourcesFit"?',
         "profiles:\n- pluginConfig:\n  - {name: NodeResourcesFit, args: {}}\n"),
        ("profiles:\n- name: mine\n",
         "rename it to schedulerName: profiles: [{schedulerName: mine}]",
         "profiles: [{schedulerName: mine}]"),
        ("profiles:\n- schedulerName: [mine]\n", "write mine, without brackets or a hyphen",
         "profiles:\n- schedulerName: mine\n"),
        ("leaderElection:\n  leaderElect:true\n",
         "write a space after the colon: leaderElect: true",
         "leaderElection:\n  leaderElect: true\n"),
        ("leaderElection: |\n  leaderElect: true\n",
         "remove the | or > after the key, so that its fields are not a text",
         "leaderElection:\n  leaderElect: true\n"),
        ("leaderElection:\n  leaderElection: {leaderElect: true}\n",
         "remove this level: its fields belong in leaderElection",
         "leaderElection: {leaderElect: true}\n"),
        ("profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: "
         "MostAllocated}\n", "write {type: MostAllocated}",
         "profiles:\n- pluginConfig:\n  - name: NodeResourcesFit\n    args: {scoringStrategy: "
         "{type: MostAllocated}}\n"),
        ("profiles:\n- pluginConfig:\n  - name: NodeAffinity\n    args: {addedAffinity: "
         "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
         "[]}}}}\n",
         "remove this level: its fields belong in addedAffinity",
         "profiles:\n- pluginConfig:\n  - name: NodeAffinity\n    args: {addedAffinity: "
         "{requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}\n"),
        ("profiles:\n- pluginConfig:\n  - NodeResourcesFit: {scoringStrategy: {type: "
         "MostAllocated}}\n",
         "write {name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}",
         "profiles:\n- pluginConfig:\n  - {name: NodeResourcesFit, args: {scoringStrategy: {type: "
         "MostAllocated}}}\n"),
        ("profiles: [{plugins: {score: {enabled: [ImageLocality]}}}]",
         "write {name: ImageLocality}",
         "profiles: [{plugins: {score: {enabled: [{name: ImageLocality}]}}}]"),
        ("profiles: [{plugins: {score: {disabled: '*'}}}]", 'write [{name: "*"}]',
         'profiles: [{plugins: {score: {disabled: [{name: "*"}]}}}]'),
        ("profiles: [{plugins: {score: [{name: ImageLocality}]}}]",
         "write enabled above its entries",
         "profiles: [{plugins: {score: {enabled: [{name: ImageLocality}]}}}]"),
        ("profiles: [{pluginConfig: {NodeResourcesFit: {}}}]",
         "write a list of entries with a name: [{name: NodeResourcesFit, …}]",
         "profiles: [{pluginConfig: [{name: NodeResourcesFit}]}]"),
        ("parallelism: many", "write an integer", "parallelism: 5"),
        ("parallelism: [5]", "write an integer", "parallelism: 5"),
        ("leaderElection: {leaseDuration: long}", "write one such as 15s",
         "leaderElection: {leaseDuration: 15s}"),
        (f"leaderElection: {{leaseDuration: {'1' * 5000}}}", "write one such as 15s",
         "leaderElection: {leaseDuration: 15s}"),
        ("leaderElection: {leaseDuration: \u201c15s\u201d}",
         'it has a typographic quote (U+201C), write "', 'leaderElection: {leaseDuration: "15s"}'),
        ("profiles:\n-schedulerName: a",
         "write a space after the hyphen of a list: - schedulerName",
         "profiles:\n- schedulerName: a"),
        ("profiles: [{plugins: {score: {enabled: [{}]}}}]",
         "write that of a plugin, or remove the entry", "profiles: [{plugins: {score: {}}}]"),
    ],
)  # fmt: skip
def test_the_correction_is_accepted(text: str, fix: str, corrected: str) -> None:
    (error,) = errors(HEAD + text)
    assert error.fix == fix
    assert errors(HEAD + corrected) == []


@pytest.mark.parametrize(
    ("text", "path", "message", "fix"),
    [
        ("kind: KubeSchedulerConfiguration\n", "", "apiVersion is missing",
         "write apiVersion: kubescheduler.config.k8s.io/v1"),
        ("apiVersion: kubescheduler.config.k8s.io/v1\n", "", "kind is missing",
         "set it to KubeSchedulerConfiguration"),
        ("---\n\ufeff" + HEAD, "['\\ufeffapiVersion']",
         "apiVersion is missing: the name of this field contains a byte order mark (U+FEFF)",
         "remove it"),
        (HEAD.replace("/v1", "/v1\u00a0"), "apiVersion",
         "apiVersion contains a no-break space (U+00A0)", "write a space"),
        ("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfig\n", "kind",
         "KubeSchedulerConfig of kubescheduler.config.k8s.io/v1 is not a kind that can be checked",
         'did you mean "KubeSchedulerConfiguration"?'),
        ("apiVersion: kubescheduler.config.k8s.io/v1\nkind: NodeAffinityArgs\n", "kind",
         "NodeAffinityArgs is part of a KubeSchedulerConfiguration",
         "write it as args in pluginConfig: {name: NodeAffinity, args: …}"),
        ("apiVersion: operator.openshift.io/v1\nkind: KubeSchedulers\n", "kind",
         "KubeSchedulers of operator.openshift.io/v1 is not a kind that can be checked",
         'did you mean "KubeScheduler"?'),
        (HEAD.rstrip() + "\u200b\n", "kind", "kind contains an invisible character (U+200B)",
         "remove it"),
    ],
)  # fmt: skip
def test_a_type_that_is_missing_or_looks_like_another_is_named(
    text: str, path: str, message: str, fix: str
) -> None:
    (error,) = errors(text)
    assert (error.path, error.message, error.fix) == (path, message, fix)


@pytest.mark.parametrize(
    ("name", "fix"),
    [("\u201cmine\u201d", 'write "'), ("mi\u00a0ne", "write a space"), ("mine\u200b", "remove it")],
)
def test_a_scheduler_name_that_looks_like_another_is_a_warning(name: str, fix: str) -> None:
    found = validate([("f", f"{HEAD}profiles: [{{schedulerName: {name}}}]")], OPTIONS).findings
    (warning,) = (each for each in found if each.reason == "OddSchedulerName")
    assert (warning.path, warning.fix) == ("profiles[0].schedulerName", fix)
    assert warning.message.endswith("Pods without it in spec.schedulerName stay Pending")


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("scheduling.volcano.sh/v1beta1", "Scheduler"),
        ("kyverno.io/v1", "Policy"),
    ],
)
def test_a_kind_of_another_product_is_not_to_be_renamed(api_version: str, kind: str) -> None:
    (error,) = errors(f"apiVersion: {api_version}\nkind: {kind}\n")
    assert error.message.startswith(f"has no scheduler configuration: it is a {kind}")
    assert "did you mean" not in error.fix
