"""deploy/monitoring discovers its targets, and its alerts are complete; promtool tests them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.platform import KUBEADM, OPENSHIFT, PLATFORMS, RKE2, Platform
from kube_scheduler_operator.config.effective.secondary.request import SchedulerRequest
from kube_scheduler_operator.operator.secondary.content import _objects
from monitoring.promql import named

from .overlays import DEPLOY, Object, build
from .served import labels_of, not_served

ROOT = DEPLOY.parent
MONITORING = DEPLOY / "monitoring"
OPERATOR = build(MONITORING)
SCHEDULERS = build(MONITORING / "schedulers")
ON_OPENSHIFT = build(MONITORING / "openshift")
FURTHER = build(MONITORING / "secondary-schedulers")
TESTS = ROOT / "tests" / "monitoring"

_UPSTREAM = "https://runbooks.prometheus-operator.dev/runbooks/kubernetes/kubeschedulerdown/"
_OPENSHIFTS = (
    "https://github.com/openshift/runbooks/blob/master/alerts/cluster-kube-scheduler-operator/"
    "KubeSchedulerDown.md"
)
RUNBOOKS = {
    "KubeSchedulerNoActiveScheduler": (_UPSTREAM, _OPENSHIFTS),
    "KubeSchedulerPodsNotAttempted": (_UPSTREAM, _OPENSHIFTS),
    "KubeSchedulerDown": (_UPSTREAM, _OPENSHIFTS),
    "KubeSchedulerCertificateExpiring": (
        "https://kubernetes.io/docs/tasks/administer-cluster/kubeadm/kubeadm-certs/",
        "https://kubernetes.io/docs/setup/best-practices/certificates/",
    ),
}
"""Critical alert -> a page that exists elsewhere and OpenShift's; this repository has no host."""

PAGE = ROOT / "docs" / "alerts.md"
COMMANDS = set(
    re.findall(r"^## (.+)$", (ROOT / "docs/kubectl-scheduler.md").read_text(), re.MULTILINE)
)
OTHER_COMMANDS = {
    ("kubectl", "delete"), ("kubectl", "get"), ("kubectl", "logs"), ("kubeadm", "certs"),
    ("kubeadm", "upgrade"),
}  # fmt: skip

REFERENCE = {
    "KubeSchedulerDown": ("15m", "critical"),
    "SchedulerLegacyPolicySet": ("60m", "warning"),
}


def found(objects: list[Object], kind: str, name: str) -> Object:
    (obj,) = (o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name)
    return obj


def rules(objects: list[Object]) -> list[Object]:
    return [
        rule
        for obj in objects
        if obj["kind"] == "PrometheusRule"
        for group in obj["spec"]["groups"]
        for rule in group["rules"]
    ]


ALL_RULES = [*rules(OPERATOR), *rules(SCHEDULERS)]
each_rule = pytest.mark.parametrize(
    "rule", ALL_RULES, ids=[f"{r['alert']}-{r['labels']['severity']}" for r in ALL_RULES]
)


@each_rule
def test_an_alert_has_summary_description_severity_and_duration(
    rule: Object,
) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert set(rule["annotations"]) == {"summary", "description", "runbook_url"}
    assert rule["labels"]["severity"] in ("critical", "warning", "info")
    assert re.fullmatch(r"\d+[hm]", rule["for"])
    templates = re.findall(r"\{\{.*?\}\}", "".join(rule["annotations"].values()))
    assert all(re.fullmatch(r"\{\{ \$labels\.\w+ \}\}", one) for one in templates)


@each_rule
def test_an_alert_uses_only_metrics_that_are_served(rule: Object) -> None:
    assert named(rule["expr"]).metrics
    assert not_served(rule["expr"]) == []
    shown = set(re.findall(r"\$labels\.(\w+)", "".join(rule["annotations"].values())))
    assert shown <= labels_of(rule["expr"])


@each_rule
def test_commands_and_files_that_an_alert_names_exist(rule: Object) -> None:
    description = rule["annotations"]["description"]
    assert set(re.findall(r"`kubectl\s+scheduler\s+([a-z ]+)`", description)) <= COMMANDS
    for path in re.findall(r"\b(?:docs|deploy)/[\w./-]+\w", description):
        assert (ROOT / path).exists()


def runbooks() -> dict[str, str]:
    """Alert -> its section of the page."""
    _, *parts = re.split(r"^## (\w+)$", PAGE.read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def test_every_alert_has_a_runbook_and_links_to_it() -> None:
    assert list(runbooks()) == list(dict.fromkeys(rule["alert"] for rule in ALL_RULES))
    for rule in ALL_RULES:
        if rule["labels"]["severity"] != "critical":
            anchor = f"{PAGE.relative_to(ROOT)}#{rule['alert'].lower()}"
            assert rule["annotations"]["runbook_url"] == anchor


@pytest.mark.parametrize("alert", runbooks())
def test_a_runbook_has_steps_whose_commands_and_files_exist(alert: str) -> None:
    text = runbooks()[alert]
    steps = re.findall(r"^(\d+)\. ", text, re.MULTILINE)
    assert steps == [str(number + 1) for number in range(len(steps))]
    assert steps
    spans = re.findall(r"`([^`]+)`", text)
    commands = [span.split() for span in spans if span.startswith(("kubectl", "kubeadm"))]
    for words in commands:
        if words[:2] == ["kubectl", "scheduler"]:
            name = " ".join(word for word in words[2:4] if word.islower() and word.isalpha())
            assert name in COMMANDS, words
        else:
            assert tuple(words[:2]) in OTHER_COMMANDS, words
    for path in (span for span in spans if re.fullmatch(r"(?:docs|deploy)/[\w./-]+", span)):
        assert (ROOT / path).exists()
    shown = set(re.findall(r"label `(\w+)`", text))
    (first, *_) = (rule for rule in ALL_RULES if rule["alert"] == alert)
    assert shown <= labels_of(first["expr"])


@pytest.mark.parametrize("platform", [0, 1], ids=["kubeadm", "openshift"])
def test_the_runbook_of_a_critical_alert_exists(platform: int) -> None:
    """OpenShift's conformance tests open the address. The steps are on docs/alerts.md."""
    critical = {
        rule["alert"]: rule["annotations"]
        for rule in (ALL_RULES, rules(ON_OPENSHIFT))[platform]
        if rule["labels"]["severity"] == "critical"
    }
    urls = {alert: annotations["runbook_url"] for alert, annotations in critical.items()}
    assert urls == {alert: addresses[platform] for alert, addresses in RUNBOOKS.items()}
    assert all("docs/alerts.md" in note["description"] for note in critical.values())


def test_every_alert_has_a_test_that_fires_and_one_that_does_not() -> None:
    fires, silent = set(), set()
    for path in TESTS.glob("*.yaml"):
        for test in yaml.safe_load(path.read_text())["tests"]:
            for case in test["alert_rule_test"]:
                alerts = case.get("exp_alerts") or ()
                fires |= {(case["alertname"], a["exp_labels"]["severity"]) for a in alerts}
                silent |= set() if alerts else {case["alertname"]}
    assert fires == {(rule["alert"], rule["labels"]["severity"]) for rule in ALL_RULES}
    assert silent == {rule["alert"] for rule in ALL_RULES}


def test_every_alert_is_documented() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text()
    documented = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) \|", page, re.MULTILINE)
    on_page = {(name, severity, wait) for name, severity, wait in documented if name[0].isupper()}
    assert on_page == {(r["alert"], r["labels"]["severity"], r["for"]) for r in ALL_RULES}


def test_openshifts_alerts_exist_under_their_names() -> None:
    for name, (wait, severity) in REFERENCE.items():
        (rule,) = (rule for rule in ALL_RULES if rule["alert"] == name)
        assert (rule["for"], rule["labels"]["severity"]) == (wait, severity)


def test_on_openshift_the_same_alerts_are_in_its_namespaces() -> None:
    there = {(rule["alert"], rule["expr"], rule["for"]) for rule in rules(ON_OPENSHIFT)}
    assert there == {(rule["alert"], rule["expr"], rule["for"]) for rule in ALL_RULES}
    (down,) = (rule for rule in rules(ON_OPENSHIFT) if rule["alert"] == "KubeSchedulerDown")
    assert down["labels"]["namespace"] == OPENSHIFT.operand_namespace


@pytest.mark.parametrize(
    ("platform", "objects"),
    [(KUBEADM, OPERATOR), (RKE2, OPERATOR), (OPENSHIFT, ON_OPENSHIFT)],
    ids=lambda value: value.name if isinstance(value, Platform) else "",
)
def test_prometheus_finds_the_operator(platform: Platform, objects: list[Object]) -> None:
    everything = [*build(DEPLOY / platform.name), *objects]
    deployment = found(everything, "Deployment", platform.operator.deployment)
    template = deployment["spec"]["template"]
    service, monitor = (
        found(everything, "Service", "metrics"),
        found_monitor(objects, names.PROGRAM),
    )
    for obj in (service, monitor):
        assert obj["metadata"]["namespace"] == platform.operator_namespace
    assert set(service["spec"]["selector"].items()) <= set(template["metadata"]["labels"].items())
    (port,) = service["spec"]["ports"]
    (offered,) = template["spec"]["containers"][0]["ports"]
    assert port["targetPort"] in (offered["name"], offered["containerPort"])
    selected = monitor["spec"]["selector"]["matchLabels"].items()
    assert set(selected) <= set(service["metadata"]["labels"].items())
    (endpoint,) = monitor["spec"]["endpoints"]
    assert (endpoint["port"], endpoint["path"]) == (port["name"], "/metrics")
    assert endpoint["scheme"] == "https"
    assert_identifies_itself(platform, monitor)
    job = service["metadata"]["labels"][monitor["spec"]["jobLabel"]]
    (down,) = (rule for rule in ALL_RULES if rule["alert"] == "KubeSchedulerOperatorDown")
    (pattern,) = re.findall(r'job=~"([^"]*)"', down["expr"])
    assert re.fullmatch(pattern, job)


def assert_identifies_itself(platform: Platform, monitor: Object) -> None:
    """By a token, or by the client certificate of OpenShift's scrape class; and verifies."""
    for endpoint in monitor["spec"]["endpoints"]:
        if platform.client_certificates:
            assert monitor["spec"]["scrapeClass"] == "tls-client-certificate-auth"
            assert endpoint["tlsConfig"].keys() == {"serverName"}, "the class has the rest"
            service, namespace = endpoint["tlsConfig"]["serverName"].removesuffix(".svc").split(".")
            assert found(build(DEPLOY / platform.name), "Service", service)
            assert namespace == monitor["metadata"]["namespace"]
        assert ("bearerTokenFile" in endpoint) is not platform.client_certificates


def found_monitor(objects: list[Object], name: str) -> Object:
    return found(objects, "ServiceMonitor", name)


def test_prometheus_finds_the_schedulers() -> None:
    for platform in (KUBEADM, RKE2):
        service = found(SCHEDULERS, "Service", "scheduler")
        assert service["metadata"]["namespace"] == platform.operand_namespace
        assert set(service["spec"]["selector"].items()) <= set(platform.static_pod_labels)
    overlay = build(DEPLOY / "openshift")
    pairs: list[tuple[Any, Any, Platform]] = [
        (found(SCHEDULERS, "Service", "scheduler"), SCHEDULERS, KUBEADM),
        (found(overlay, "Service", "scheduler"), ON_OPENSHIFT, OPENSHIFT),
    ]
    for service, objects, platform in pairs:
        monitor = found_monitor(objects, "kube-scheduler")
        assert monitor["metadata"]["namespace"] == service["metadata"]["namespace"]
        wanted = monitor["spec"]["selector"]["matchLabels"]
        assert wanted.items() <= service["metadata"]["labels"].items()
        assert "jobLabel" not in monitor["spec"], "the job has the name of the Service"
        (port,) = service["spec"]["ports"]
        assert port["targetPort"] == 10259
        for endpoint in monitor["spec"]["endpoints"]:
            assert endpoint["port"] == port["name"]
        assert_identifies_itself(platform, monitor)


@pytest.mark.parametrize(
    ("objects", "account"),
    [
        (OPERATOR, "monitoring/prometheus-k8s"),
        (SCHEDULERS, "monitoring/prometheus-k8s"),
        (ON_OPENSHIFT, "openshift-monitoring/prometheus-k8s"),
    ],
)
def test_prometheus_may_read_metrics_and_discover_pods(objects: list[Object], account: str) -> None:
    bindings = [obj for obj in objects if "roleRef" in obj]
    for binding in bindings:
        (subject,) = binding["subjects"]
        assert f"{subject['namespace']}/{subject['name']}" == account
    bound = {(b["roleRef"]["kind"], b["roleRef"]["name"]) for b in bindings}
    roles = [obj for obj in objects if "rules" in obj]
    assert bound == {(role["kind"], role["metadata"]["name"]) for role in roles}
    readable = {
        url for role in roles for rule in role["rules"] for url in rule.get("nonResourceURLs", ())
    }
    monitors = [obj for obj in objects if obj["kind"] == "ServiceMonitor"]
    scraped = {e["path"] for monitor in monitors for e in monitor["spec"]["endpoints"]}
    assert readable == scraped
    verbs = {verb for role in roles for rule in role["rules"] for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch"}
    places = {obj["metadata"]["namespace"] for obj in monitors}
    assert places == {r["metadata"]["namespace"] for r in roles if r["kind"] == "Role"}


def test_the_metrics_of_eks_come_from_the_api_server() -> None:
    objects = build(MONITORING / "eks")
    spec = found_monitor(objects, "eks-kube-scheduler")["spec"]
    (endpoint,) = spec["endpoints"]
    group, _, rest = endpoint["path"].removeprefix("/apis/").partition("/")
    (rule,) = found(objects, "ClusterRole", "eks-kube-scheduler-metrics")["rules"]
    assert (rule["apiGroups"], rule["verbs"]) == ([group], ["get"])
    assert rule["resources"] == [rest.removeprefix("v1/").replace("/container/", "/")]
    (job,) = (one for one in endpoint["relabelings"] if one["targetLabel"] == "job")
    assert job["replacement"] == "kube-scheduler", "as kube-prometheus, whose rules name the job"
    assert endpoint["path"] in (ROOT / "docs/metrics.md").read_text()


def test_the_page_names_metrics_of_before_with_those_that_are_served() -> None:
    section = (ROOT / "docs/metrics.md").read_text().partition("### Panels without data")[2]
    table = [line.split("|")[1:3] for line in section.splitlines() if line.startswith("| `")]
    assert table
    for before, instead in table:
        for name in re.findall("`([^`]+)`", before):
            assert not_served(name)
            assert not_served(f"{name}_count")
        for name in re.findall("`([^`]+)`", instead):
            assert not_served(f"{name}_count") == []


def test_on_openshift_monitoring_is_part_of_the_release_payload() -> None:
    for obj in ON_OPENSHIFT:
        annotations = obj["metadata"]["annotations"]
        assert annotations["include.release.openshift.io/self-managed-high-availability"] == "true"


def test_no_overlay_requires_prometheus_operator() -> None:
    for name in PLATFORMS:
        for obj in build(DEPLOY / name):
            assert not obj["apiVersion"].startswith("monitoring.coreos.com")
    components = ("", "eks", "load", "openshift", "schedulers", "secondary-schedulers")
    for folder in (MONITORING / name for name in components):
        assert (
            yaml.safe_load((Path(folder) / "kustomization.yaml").read_text())["kind"] == "Component"
        )


def test_prometheus_finds_secondary_schedulers_by_the_labels_of_their_services() -> None:
    spec = found(FURTHER, "ServiceMonitor", "secondary-schedulers")["spec"]
    (service,) = (
        obj
        for obj in _objects(SchedulerRequest("x", "u", KUBEADM.target_namespace))
        if obj["kind"] == "Service"
    )
    labels = service["metadata"]["labels"]
    assert spec["selector"]["matchLabels"].items() <= labels.items()
    assert set(spec["targetLabels"]) <= set(labels)
    (endpoint,), (port,) = spec["endpoints"], service["spec"]["ports"]
    assert endpoint["port"] == port["name"]


def test_prometheus_finds_the_programs_of_a_load_policy() -> None:
    """By the labels and ports of the Pods that a LoadPolicy leads to."""
    made = ROOT / "tests/unit/operator/loadpolicy/golden/everything.yaml"
    pods = {
        obj["spec"]["template"]["metadata"]["labels"]["app"]: obj
        for obj in yaml.safe_load_all(made.read_text())
        if obj["kind"] in ("DaemonSet", "Deployment")
    }
    monitors = build(MONITORING / "load")
    assert {monitor["metadata"]["name"] for monitor in monitors} == set(pods)
    for monitor in monitors:
        workload = pods[monitor["metadata"]["name"]]
        assert monitor["metadata"]["namespace"] == workload["metadata"]["namespace"]
        template = workload["spec"]["template"]
        selected = monitor["spec"]["selector"]["matchLabels"].items()
        assert selected <= template["metadata"]["labels"].items()
        (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
        (container,) = template["spec"]["containers"]
        assert endpoint["port"] in {port["name"] for port in container["ports"]}
