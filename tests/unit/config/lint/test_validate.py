"""Files in, findings out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kube_scheduler_operator.base.findings import format_path
from kube_scheduler_operator.base.platform import OPENSHIFT
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.schema import KIND
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.language.warnings.configuration import NO_KUBECONFIG
from kube_scheduler_operator.config.lint.checks import CheckOptions, parse_path
from kube_scheduler_operator.config.lint.known_kinds import KINDS
from kube_scheduler_operator.config.lint.reports.report import FileFinding, ValidationReport
from kube_scheduler_operator.config.lint.validate import validate

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
KUBESCHEDULER = """\
apiVersion: operator.openshift.io/v1
kind: KubeScheduler
metadata: {name: cluster}
spec:
"""
SCHEDULER = """\
apiVersion: config.openshift.io/v1
kind: Scheduler
metadata: {name: cluster}
spec:
"""


def look(*texts: str, minor: int = 35, stock: bool = True) -> ValidationReport:
    """The report without the warning that hardly any of these texts has a kubeconfig."""
    files = [(f"{index}.yaml", text) for index, text in enumerate(texts)]
    report = validate(files, CheckOptions(Gates(Version(1, minor)), stock=stock))
    findings = tuple(each for each in report.findings if each.reason != NO_KUBECONFIG)
    return replace(report, findings=findings)


def short(finding: FileFinding) -> tuple[str, str, int, int]:
    return finding.reason, finding.path, finding.position.line, finding.position.column


def one(*texts: str, **how: Any) -> FileFinding:
    (finding,) = look(*texts, **how).findings
    assert finding.message
    assert finding.fix
    return finding


def test_a_good_file_has_no_finding() -> None:
    result = look(HEAD)
    assert (result.findings, result.starts) == ((), True)
    assert result.documents == (("0.yaml", "KubeSchedulerConfiguration"),)


def test_a_mistake_has_line_column_path_sentence_fix_and_severity() -> None:
    text = (
        HEAD
        + "profiles:\n- plugins:\n    score:\n      enabled:\n      - name: NodeResourcesFitt\n"
    )
    assert one(text) == FileFinding(
        file="0.yaml",
        position=one(text).position,
        kind="KubeSchedulerConfiguration",
        path="profiles[0].plugins.score.enabled[0].name",
        reason="UnknownPlugin",
        message='kube-scheduler 1.35 has no plugin "NodeResourcesFitt"',
        fix='did you mean "NodeResourcesFit"?',
        severity="error",
    )
    assert short(one(text))[2:] == (7, 9)


def test_a_plugin_of_another_image_is_not_removed() -> None:
    text = f"{HEAD}profiles:\n- plugins: {{permit: {{enabled: [{{name: HerdScheduling}}]}}}}\n"
    assert one(text).fix == "use --custom-image if the scheduler's image has it, or remove it"


def test_a_warning_does_not_change_the_result() -> None:
    result = look(f"{HEAD}percentageOfNodesToScore: 1\n")
    assert result.starts
    assert [each.severity for each in result.findings] == ["warning"]


def test_warnings_wait_until_the_errors_are_gone() -> None:
    text = f"{HEAD}percentageOfNodesToScore: 1\nparallelism: 0\n"
    assert short(one(text)) == ("InvalidConfiguration", "parallelism", 4, 1)


@pytest.mark.parametrize(
    ("text", "reason", "line", "column"),
    [
        ("a: [\n", "Syntax", 2, 1),
        ("", "NoDocument", 1, 1),
        ("# nothing\n", "NoDocument", 1, 1),
        ("- a\n", "NoDocument", 1, 1),
        (f"{HEAD}parallelism: 1\nparallelism: 2\n", "NotStrict", 4, 1),
        ("kind: Pod\napiVersion: v1\n", "NothingToCheck", 1, 1),
        ("a: 1\n", "NothingToCheck", 1, 1),
        ("profiles: []\n", "UnknownKind", 1, 1),
        ("apiVersion: v1\nkind: Scheduler\n", "NothingToCheck", 1, 1),
        ("apiVersion: config.openshift.io/v2\nkind: Scheduler\n", "UnknownKind", 1, 1),
        (f"{KUBESCHEDULER}  logLevl: Debug\n", "UnknownField", 5, 3),
        (f"{KUBESCHEDULER}  logLevel: Debg\n", "InvalidValue", 5, 3),
        (f"{KUBESCHEDULER}  unsupportedConfigOverrides: {{parallelism: 0}}\n",
         "InvalidConfiguration", 5, 32),
        (f"{SCHEDULER}  profile: NoScorin\n", "InvalidValue", 5, 3),
    ],
)  # fmt: skip
def test_what_would_not_start(text: str, reason: str, line: int, column: int) -> None:
    finding = one(text)
    assert (finding.reason, finding.severity) == (reason, "error")
    assert (finding.position.line, finding.position.column) == (line, column)
    assert not look(text).starts


def test_other_objects_are_skipped_unless_there_is_nothing_else() -> None:
    role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n"
    result = look(f"{HEAD}---\n{role}")
    assert (result.findings, result.others) == ((), (("0.yaml", "Role"),))
    assert one(role).message == "has no scheduler configuration: it is a Role"
    misspelt = "apiVersion: config.openshift.io/v1\nkind: Schedular\n"
    assert one(f"{HEAD}---\n{misspelt}").reason == "UnknownKind"
    group = "apiVersion: config.openshift.example/v1\nkind: Scheduler\n"
    assert one(f"{HEAD}---\n{group}").path == "apiVersion"


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("operator.knative.dev/v1", "Scheduler"),
        ("scheduling.volcano.sh/v1beta1", "LoadPolicy"),
        ("kyverno.io/v1", "Policy"),
        ("operator.openshift.io/v1", "KubeControllerManager"),
        ("config.openshift.io/v1", "APIServer"),
    ],
)
def test_kinds_of_other_products_are_not_errors(api_version: str, kind: str) -> None:
    result = look(f"{HEAD}---\napiVersion: {api_version}\nkind: {kind}\n")
    assert (result.findings, result.others) == ((), (("0.yaml", kind),))
    alone = one(f"apiVersion: {api_version}\nkind: {kind}\n")
    assert alone.reason == "NothingToCheck"
    assert alone.message.startswith("has no scheduler configuration: it is a")


def test_what_oc_prints_is_valid_on_openshift() -> None:
    scheduler = """\
apiVersion: v1
kind: List
metadata: {resourceVersion: ""}
items:
- apiVersion: config.openshift.io/v1
  kind: Scheduler
  metadata:
    annotations: {release.openshift.io/create-only: "true"}
    creationTimestamp: "2026-01-01T00:00:00Z"
    generation: 1
    name: cluster
    ownerReferences:
    - {apiVersion: config.openshift.io/v1, kind: ClusterVersion, name: version, uid: x}
    resourceVersion: "629"
    uid: y
  spec: {mastersSchedulable: false, policy: {name: ""}, profile: ""}
  status: {}
"""
    options = CheckOptions(Gates(Version(1, 35)), OPENSHIFT)
    assert validate([("oc.yaml", scheduler)], options).findings == ()


@pytest.mark.parametrize(
    "head",
    [
        "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n",
        "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n",
        "apiVersion: kubescheduler.config.k8s.io/v1beta1\nkind: KubeSchedulerConfiguration\n",
        "apiVersion: kubescheduler.config.k8s.io/v1alpha1\nkind: KubeSchedulerConfiguration\n",
        "apiVersion: v1\nkind: Policy\n",
    ],
)
def test_old_api_versions_are_for_convert(head: str) -> None:
    finding = one(f"{head}nonsense: 1\n")
    assert short(finding) == ("OldAPIVersion", "apiVersion", 1, 1)
    assert finding.fix == "kubectl scheduler convert -f 0.yaml"


@pytest.mark.parametrize(
    ("head", "last"),
    [
        ("apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n", 28),
        ("apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration\n", 27),
        ("apiVersion: v1\nkind: Policy\n", 22),
    ],
)
def test_old_api_versions_are_not_errors_for_their_last_readers(head: str, last: int) -> None:
    for minor, severity in ((last, "warning"), (last + 1, "error")):
        report = validate([("0.yaml", head)], CheckOptions(Gates(Version(1, minor))))
        assert [finding.reason for finding in report.findings] == ["OldAPIVersion"]
        assert report.findings[0].severity == severity


@pytest.mark.parametrize(
    ("state", "fix"),
    [
        ("Removed", "annotation kube-scheduler-operator.dev/management-state"),
        ('""', "remove the field"),
        ("Force", ""),
    ],
)
def test_openshifts_definition_has_fewer_states(state: str, fix: str) -> None:
    head = "apiVersion: operator.openshift.io/v1\nkind: KubeScheduler\nmetadata: {name: cluster}\n"
    files = [("oc.yaml", f"{head}spec: {{managementState: {state}}}\n")]
    findings = validate(files, CheckOptions(Gates(Version(1, 35)), OPENSHIFT)).findings
    assert [finding.path for finding in findings] == (["spec.managementState"] if fix else [])
    assert all(fix in finding.fix for finding in findings)
    assert validate(files, CheckOptions(Gates(Version(1, 35)))).findings == ()


OLD = "apiVersion: kubescheduler.config.k8s.io/v1beta3\nkind: KubeSchedulerConfiguration\n"
STATIC_POD = """\
apiVersion: v1
kind: Pod
metadata: {name: kube-scheduler}
spec:
  containers:
    - name: kube-scheduler
      image: registry.k8s.io/kube-scheduler:v1.%d.2
      command: [kube-scheduler, --config=/etc/kubernetes/1.yaml]
      volumeMounts: [{name: config, mountPath: /etc/kubernetes/1.yaml}]
  volumes:
    - {name: config, hostPath: {path: /etc/kubernetes/1.yaml}}
"""


@pytest.mark.parametrize(
    ("minor", "starts", "message"),
    [(28, None, "1.28 is the last one that reads"), (29, False, "1.29 and newer")],
)
def test_whether_a_version_older_than_the_record_starts_is_not_known(
    minor: int, starts: bool | None, message: str
) -> None:
    result = look(STATIC_POD % minor, OLD)
    assert [finding.reason for finding in result.findings] == ["OldAPIVersion"]
    assert message in result.findings[0].message
    assert result.starts is starts
    assert look(HEAD, minor=minor).starts is (starts if starts is None else True)


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        (f"{HEAD}parallelism: -1\n", "NeverRead"),
        (OLD, "NeverRead"),
        ("kind: Policy\napiVersion: v1\n", "NeverRead"),
        ("parallelism: 1\n", "NeverRead"),
        ("kind: Pod\n", "NeverRead"),
        ("a: [\n", "Syntax"),
        ("a: *b\n", "Syntax"),
        ("- a\n", "NoDocument"),
        ("a\n", "NoDocument"),
        (f"{HEAD}a: 1\na: 2\n", "NotStrict"),
    ],
)
def test_what_follows_a_configuration_is_never_read(second: str, reason: str) -> None:
    result = look(f"{HEAD}---\n{second}")
    assert {each.severity for each in result.findings} == {"warning"}
    assert reason in {each.reason for each in result.findings}
    assert all("only the first document" in each.message for each in result.findings)
    assert result.starts


def test_objects_for_the_api_server_behind_a_configuration_are_checked() -> None:
    assert not look(f"{HEAD}---\n{SCHEDULER}  profile: NoScorin\n").starts


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("---\n# Source: chart/templates/rbac.yaml\n---\n", "which is empty"),
        ("---\n---\n", "which is empty"),
        ("null\n---\n", "which is empty"),
        ("- a\n---\n", "which is not an object (line 1)"),
        ("apiVersion: v1\nkind: Pod\n---\n", "which is a Pod (line 1)"),
        ("# a comment\n---\na: 1\n---\n", "which is an object without kind (line 3)"),
        (f"{SCHEDULER}  profile: NoScoring\n---\n", "which is a Scheduler (line 1)"),
    ],
)
def test_a_configuration_that_is_not_the_first_document_is_refused(
    first: str, message: str
) -> None:
    result = look(f"{first}{HEAD}")
    (finding,) = (each for each in result.findings if each.severity == "error" and each.kind)
    assert (finding.kind, finding.position.line) == (
        "KubeSchedulerConfiguration",
        first.count("\n") + 1,
    )
    assert message in finding.message
    assert finding.fix


@pytest.mark.parametrize("first", ["# a comment\n---\n", "---\n", "%YAML 1.1\n---\n", "\n\n"])
def test_what_is_not_a_document_may_precede_a_configuration(first: str) -> None:
    assert look(f"{first}{HEAD}").findings == ()


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("leaderElection: {lockObjectName: }\n", "leaderElection.lockObjectName"),
        ("metadata:\n", "metadata"),
        ("leaderElection:\n  renewDeadline:\n", "leaderElection.renewDeadline"),
        ("extenders: [{urlPrefix: a, httpTimeout: }]\n", "extenders[0].httpTimeout"),
        ("extenders: [{urlPrefix: a, enableHttps: }]\n", "extenders[0].enableHttps"),
        ("profiles: [{plugin: ~}]\n", "profiles[0].plugin"),
        ("profiles: [{pluginConfig: [{name: NodeResourcesFit, args: {resource: }}]}]\n",
         "profiles[0].pluginConfig[0].args.resource"),
    ],
)  # fmt: skip
def test_a_field_without_value_is_refused_as_kube_scheduler_does(text: str, path: str) -> None:
    finding = one(f"{HEAD}{text}")
    assert (finding.path, finding.severity) == (path, "error")


def test_a_control_character_that_kube_scheduler_cannot_log_is_refused() -> None:
    for text in ('profiles: [{schedulerName: "a\\x7f"}]\n', 'leaderElection: {"\\u009f": }\n'):
        findings = look(f"{HEAD}{text}").findings
        assert any("control character U+00" in each.message for each in findings)
    assert look(f'{HEAD}profiles: [{{schedulerName: "a\\x01\\x85"}}]\n').starts


@pytest.mark.parametrize(("plugin", "starts"), [("ImageLocality", True), ("NodeAffinity", False)])
def test_a_key_given_twice_matters_where_kube_scheduler_decodes(plugin: str, starts: bool) -> None:
    entry = f'{{"name": "{plugin}", "args": {{"a": 1, "a": 2}}}}'
    head = '"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"'
    assert look(f'{{{head}, "profiles": [{{"pluginConfig": [{entry}]}}]}}').starts is starts


def test_a_list_given_twice_hides_the_first_one() -> None:
    entry = '{"name": "ImageLocality", "args": {"a": 1, "a": 2}}'
    profiles = f'"profiles": [{{"pluginConfig": [{entry}]}}], "profiles": []'
    assert not look(f'{{"kind": "KubeSchedulerConfiguration", {profiles}}}').starts


def test_a_known_field_without_value_is_accepted() -> None:
    assert look(f"{HEAD}profiles:\nextenders:\nleaderElection:\nparallelism: ~\n").starts


def test_the_items_of_a_list_are_checked_where_they_are() -> None:
    head = "apiVersion: v1\nkind: List\nitems:\n"
    profile = "apiVersion: kube-scheduler-operator.dev/v1alpha1, kind: SchedulerProfile"
    text = f"{head}- {{{profile}, metadata: {{name: a}}, spec: {{}}}}\n"
    assert look(text).documents == (("0.yaml", "SchedulerProfile"),)
    assert look(text).findings == ()
    finding = one(f"{text}- {{{profile}, metadata: {{name: b}}, spec: {{bas: x}}}}\n")
    assert (finding.position.line, finding.path) == (5, "spec.bas")
    nested = f"{head}- apiVersion: v1\n  kind: List\n  items: [{{{profile}, spec: {{}}}}]\n"
    assert one(nested).path == "metadata.name"
    listed = f"{head}- {{apiVersion: kubescheduler.config.k8s.io/v1, kind: {KIND}}}\n"
    assert "reads no List" in one(listed).message


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_files_with_a_byte_order_mark_are_read(encoding: str) -> None:
    mark = "\ufeff" if encoding[-3:] in ("-le", "-be") else ""
    content = f"{mark}{HEAD}parallelism: 0 # \u00fc\n".encode(encoding)
    options = CheckOptions(Gates(Version(1, 35)))
    (finding,) = validate([("a.yaml", content)], options).findings
    assert short(finding) == ("InvalidConfiguration", "parallelism", 3, 1)


def test_scheduler_and_kubescheduler_count_together_wherever_they_are() -> None:
    overrides = f"{KUBESCHEDULER}  unsupportedConfigOverrides: {{percentageOfNodesToScore: 2}}\n"
    for files in ([f"{SCHEDULER}  profile: NoScoring\n---\n{overrides}"],
                  [overrides, f"{SCHEDULER}  profile: NoScoring\n"]):  # fmt: skip
        result = look(*files)
        (finding,) = result.findings
        assert finding.reason == "SampledTooFew"
        assert finding.path == "spec.unsupportedConfigOverrides.percentageOfNodesToScore"
        assert finding.kind == "KubeScheduler"
        assert len(result.documents) == 2


def test_a_field_of_scheduler_is_found_in_the_scheduler() -> None:
    result = look(f"{KUBESCHEDULER}  logLevel: Debug\n---\n{SCHEDULER}  mastersSchedulable: true\n")
    (finding,) = result.findings
    assert (finding.kind, finding.severity, finding.position.line) == ("Scheduler", "warning", 11)


def test_only_the_one_that_is_named_cluster_counts() -> None:
    other = KUBESCHEDULER.replace("cluster", "other")
    finding = one(f"{other}  unsupportedConfigOverrides: {{parallelism: 0}}\n")
    assert (finding.reason, finding.severity) == ("NotRead", "warning")
    finding = one(f"{KUBESCHEDULER}  logLevel: Debug\n---\n{KUBESCHEDULER}  logLevel: Normal\n")
    assert (finding.reason, finding.severity) == ("NotRead", "error")


def test_warnings_about_overrides_are_found_where_they_were_written() -> None:
    lists = "{profiles: [{plugins: {filter: {disabled: [{name: NodePorts}]}}}]}"
    finding = one(f"{KUBESCHEDULER}  unsupportedConfigOverrides:\n    {lists}\n")
    assert finding.reason == "SafetyFilterOff"
    assert short(finding)[1:] == (
        "spec.unsupportedConfigOverrides.profiles[0].plugins.filter.disabled[0]", 6, 48,
    )  # fmt: skip


def test_two_configurations_are_checked_as_two_processes() -> None:
    mine = f"{HEAD}profiles: [{{schedulerName: mine}}]\nleaderElection: {{resourceName: mine}}\n"
    finding = one(HEAD, mine)
    assert (finding.file, finding.reason) == ("1.yaml", "SameNodes")
    assert finding.message.startswith("0.yaml places pods on the same nodes")


def test_the_version_decides() -> None:
    text = f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: EBSLimits}}]}}}}}}]\n"
    assert look(text, minor=30).starts
    assert not look(text, minor=31).starts


def test_what_a_custom_image_has_is_its_own_business() -> None:
    text = f"{HEAD}profiles: [{{plugins: {{filter: {{enabled: [{{name: Own}}]}}}}}}]\n"
    assert not look(text).starts
    assert look(text, stock=False).starts


@pytest.mark.parametrize(
    "path",
    [
        ("spec", "profiles", 0, "plugins", "score"),
        ("spec", "arguments", "kube-api-qps"),
        ("spec", "featureGates", "a.b/c"),
        ("profiles", 10, "it's"),
        (),
    ],
)
def test_paths_can_be_taken_apart_again(path: Any) -> None:
    assert parse_path(format_path(path)) == path


def test_every_kind_that_is_an_object_has_its_definition() -> None:
    for (group, kind), how in KINDS.items():
        if how.definition:
            assert how.definition.endswith(f".{group}.yaml"), kind


@pytest.mark.parametrize(
    ("text", "path", "fix"),
    [
        ("kind: SchedulerProfile\nmetadata: {name: a}\nspec: {plugin: }", "spec.plugin",
         'did you mean "plugins"?'),
        ("kind: SchedulerProfile\nmetadata: {name: a}\nspec: {plugins: {score: {weight: }}}",
         "spec.plugins.score.weight", "remove it"),
        ("kind: SchedulerProfile\nmetadata: {name: A_b}\nspec: {}", "metadata.name",
         "use lowercase letters, digits and hyphens, for example a-b"),
        ("kind: SchedulerExtender\nmetadata: {name: a}\nspec: {url: , agent: }", "spec.url",
         "set either url, for an extender that runs elsewhere, or agent, for an extender that the "
         "operator runs"),
        ("kind: SecondaryScheduler\nmetadata: {name: a}\nspec: {namespace: }", "spec.namespace",
         "set namespace"),
        ("kind: LoadPolicy\nmetadata: {name: a}\nspec: {source: {nodeMetric: }}",
         "spec.source.nodeMetric", 'did you mean "nodeMetrics"?'),
    ],
)  # fmt: skip
def test_what_an_api_server_rejects_in_an_object_of_the_operator(
    text: str, path: str, fix: str
) -> None:
    document = f"apiVersion: kube-scheduler-operator.dev/v1alpha1\n{text}\n"
    (finding,) = validate([("f", document)], CheckOptions(Gates(Version(1, 35)))).findings
    assert (finding.path, finding.severity) == (path, "error")
    assert finding.fix == fix


def test_known_fields_of_objects_may_have_no_value() -> None:
    document = (
        "apiVersion: kube-scheduler-operator.dev/v1alpha1\nkind: SchedulerProfile\n"
        "metadata: {name: a, labels: }\nspec: {plugins: {score: {enabled: }}, scheduler: }\n"
        "status:\n"
    )
    assert validate([("f", document)], CheckOptions(Gates(Version(1, 35)))).findings == ()


def test_a_misplaced_field_in_overrides_has_the_right_place() -> None:
    spec = "{unsupportedConfigOverrides: {lockObjectName: x}}"
    document = (
        "apiVersion: operator.openshift.io/v1\nkind: KubeScheduler\nmetadata: {name: cluster}\n"
        f"spec: {spec}\n"
    )
    (finding,) = validate([("f", document)], CheckOptions(Gates(Version(1, 35)))).findings
    assert finding.fix == (
        "move it to leaderElection.resourceName: leaderElection: {resourceName: x}"
    )


@pytest.mark.parametrize("text", [r'"\ud83d\ude00"', '{"%s": 1}' % ("k" * 1023)])
def test_arguments_that_kube_scheduler_cannot_print_are_an_error(text: str) -> None:
    config = (
        '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", '
        '"profiles": [{"pluginConfig": [{"name": "ImageLocality",\n"args": %s}]}]}'
    )
    (finding,) = (one for one in look(config % text).findings if one.severity == "error")
    assert short(finding) == ("Syntax", "", 2, 1)
    assert "profiles[0].pluginConfig[0].args: kube-scheduler has to read" in finding.message


def test_keys_may_be_repeated_in_json_arguments_of_an_entry_without_a_name() -> None:
    config = (
        '{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", '
        '"profiles": [{"pluginConfig": [{"args": {"a": 1, "a": 2}}]}]}'
    )
    assert look(config).starts
