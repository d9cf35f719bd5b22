"""SecondarySchedulers and SchedulerProfiles in files: the findings of `validate`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kube_scheduler_operator.base import assets
from kube_scheduler_operator.base.images import ALLOWED_BY_DEFAULT
from kube_scheduler_operator.config.language.feature_gates import Gates
from kube_scheduler_operator.config.language.versions import Version
from kube_scheduler_operator.config.lint.checks import CheckOptions
from kube_scheduler_operator.config.lint.known_kinds import KINDS
from kube_scheduler_operator.config.lint.reports.report import FileFinding, ValidationReport
from kube_scheduler_operator.config.lint.validate import validate

from ....builders import extender, profile, secondary

EXAMPLES = Path(__file__).parents[4] / "docs/examples"
V1 = "kube-scheduler-operator.dev/v1alpha1"
NODE_NAME_OFF = {"plugins": {"filter": {"disabled": [{"name": "NodeName"}]}}}
UNKNOWN = {"plugins": {"score": {"enabled": [{"name": "ImageLocalty"}]}}}


def obj(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": V1, "kind": kind, "metadata": {"name": name}, "spec": spec}


def look(
    *documents: dict[str, Any], minor: int = 35, stock: bool = True, images: str = ""
) -> ValidationReport:
    allowed = ALLOWED_BY_DEFAULT.extended_by(images)
    setting = CheckOptions(Gates(Version(1, minor)), stock=stock, images=allowed)
    return validate([("f", yaml.safe_dump_all(documents))], setting)


def one(*documents: dict[str, Any], **kwargs: Any) -> FileFinding:
    (finding,) = look(*documents, **kwargs).findings
    return finding


def reported(finding: FileFinding) -> tuple[str, str, str, str]:
    return finding.kind, finding.reason, finding.path, finding.severity


OURS = sorted(path for path in EXAMPLES.glob("*.yaml") if f"apiVersion: {V1}\n" in path.read_text())


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_the_examples_would_start(path: Path) -> None:
    result = validate([("f", path.read_text())], CheckOptions(Gates(Version(1, 35))))
    assert result.starts, result.findings


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ((secondary(profiles=[UNKNOWN]),),
         ("UnknownPlugin", "spec.profiles[0].plugins.score.enabled[0].name")),
        ((secondary(config={"parallelism": 0}),),
         ("InvalidConfiguration", "spec.config.parallelism")),
        ((secondary(logLevl="Debug"),), ("UnknownField", "spec.logLevl")),
        ((secondary(replicas="three"),), ("InvalidType", "spec.replicas")),
        ((secondary(extraArguments={"kubeconfig": "/k"}),),
         ("ReservedArgument", "spec.extraArguments.kubeconfig")),
        ((secondary(volumes=[{"name": "x", "hostPath": {"path": "/"}}]),),
         ("NotAllowed", "spec.volumes[0].hostPath")),
        ((secondary("kube-scheduler"),), ("LeaseTaken", "metadata.name")),
        ((secondary(profiles=[{"schedulerName": "default-scheduler"}]),),
         ("SchedulerNameTaken", "spec.profiles")),
        ((secondary(), secondary("other", profiles=[{"schedulerName": "mine"}])),
         ("SchedulerNameTaken", "spec.profiles")),
        ((secondary(), secondary()), ("NotRead", "metadata.name")),
        ((profile("p", **UNKNOWN),), ("UnknownPlugin", "spec.plugins.score.enabled[0].name")),
        ((profile("p", scheduler="mine", **UNKNOWN), secondary()),
         ("UnknownPlugin", "spec.plugins.score.enabled[0].name")),
        ((profile("p", scheduler="elsewhere", **UNKNOWN),),
         ("UnknownPlugin", "spec.plugins.score.enabled[0].name")),
        ((profile("p", schedulerName="s"), profile("q", schedulerName="s")),
         ("SchedulerNameTaken", "spec.schedulerName")),
        ((profile("p"), profile("p")), ("NotRead", "metadata.name")),
    ],
)  # fmt: skip
def test_what_would_not_start(documents: Any, expected: tuple[str, str]) -> None:
    errors = [each for each in look(*documents).findings if each.severity == "error"]
    assert [(each.reason, each.path) for each in errors] == [expected]


def test_a_mistake_is_found_in_the_document_that_has_it() -> None:
    found = look(
        secondary(), profile("good", scheduler="mine"), profile("bad", scheduler="mine", **UNKNOWN)
    ).findings
    (finding,) = [each for each in found if each.severity == "error"]
    assert finding.kind == "SchedulerProfile"
    assert finding.position.line > 20


@pytest.mark.parametrize(
    ("documents", "expected"),
    [
        ((secondary(profiles=[NODE_NAME_OFF]),),
         ("SecondaryScheduler", "SafetyFilterOff",
          "spec.profiles[0].plugins.filter.disabled[0]", "warning")),
        ((secondary(config={"percentageOfNodesToScore": 1}),),
         ("SecondaryScheduler", "SampledTooFew",
          "spec.config.percentageOfNodesToScore", "warning")),
        ((secondary(), profile("p", scheduler="mine", **NODE_NAME_OFF)),
         ("SchedulerProfile", "SafetyFilterOff", "spec.plugins.filter.disabled[0]", "warning")),
        ((profile("p", **NODE_NAME_OFF),),
         ("SchedulerProfile", "SafetyFilterOff", "spec.plugins.filter.disabled[0]", "warning")),
    ],
)  # fmt: skip
def test_warnings_have_the_position_of_their_field(documents: Any, expected: Any) -> None:
    assert reported(one(*documents)) == expected


def test_secondary_scheduler_is_checked_as_another_process() -> None:
    scheduler = {
        "apiVersion": "config.openshift.io/v1",
        "kind": "Scheduler",
        "metadata": {"name": "cluster"},
        "spec": {"profile": "NoScoring"},
    }
    finding = one(scheduler, secondary())
    assert (finding.kind, finding.reason) == ("SecondaryScheduler", "SameNodes")
    assert one(secondary("first"), secondary()).message.startswith(
        "f places pods on the same nodes"
    )
    assert look(secondary()).findings == ()


def test_image_determines_the_version() -> None:
    limits = {"plugins": {"filter": {"enabled": [{"name": "EBSLimits"}]}}}
    image = "registry.k8s.io/kube-scheduler:v1.30.4"
    assert look(secondary(profiles=[limits], image=image)).starts
    assert not look(secondary(profiles=[limits])).starts


def test_an_image_of_ones_own_has_the_last_word_about_plugins() -> None:
    own = secondary(profiles=[UNKNOWN], image="example.com/mine:1")
    assert reported(one(own, images="example.com/mine")) == (
        "SecondaryScheduler", "UnknownPlugin", "spec.profiles[0].plugins.score.enabled[0].name",
        "warning",
    )  # fmt: skip
    assert look(secondary(profiles=[UNKNOWN]), stock=False).starts


AGENT = {"image": "example.com/a:1", "policies": [{"name": "safe-overload"}]}
IMAGES = [
    (secondary(image="example.com/a:1"), "spec.image"),
    (secondary(sidecars=[{"name": "a", "image": "example.com/a:1"}]), "spec.sidecars[0].image"),
    (extender("a", agent=AGENT), "spec.agent.image"),
    (extender("a", scheduler="mine", agent=AGENT), "spec.agent.image"),
]


@pytest.mark.parametrize(("document", "path"), IMAGES, ids=[path for _, path in IMAGES])
def test_an_image_that_only_a_setting_of_the_operator_allows_is_a_warning(
    document: dict[str, Any], path: str
) -> None:
    finding = one(document)
    assert reported(finding) == (document["kind"], "NotAllowed", path, "warning")
    assert finding.fix.startswith('add "example.com/a" to ALLOWED_IMAGES')
    assert look(document, images="example.com/*").findings == ()


def test_images_of_kube_scheduler_need_no_setting() -> None:
    assert look(secondary(image="registry.k8s.io/kube-scheduler:v1.35.4")).findings == ()


CONFINED = [
    ({"command": ["sh", "-c", "exit 1"]}, "spec.command[1]"),
    ({"volumes": [{"name": "a", "hostPath": {"path": "/"}}]}, "spec.volumes[0].hostPath"),
    (
        {"sidecars": [{"name": "a", "image": "registry.k8s.io/kube-scheduler:v1",
                       "securityContext": {"privileged": True}}]},
        "spec.sidecars[0].securityContext.privileged",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "path"), CONFINED, ids=[path for _, path in CONFINED])
def test_what_a_secondary_scheduler_may_not_have_is_an_error_in_a_file(
    spec: dict[str, Any], path: str
) -> None:
    found = [reported(each) for each in look(secondary(**spec)).findings]
    assert ("SecondaryScheduler", "NotAllowed", path, "error") in found


def test_every_kind_that_is_an_object_has_its_definition() -> None:
    for (group, kind), how in KINDS.items():
        if how.definition:
            definition = yaml.safe_load(assets.text("crds", how.definition))["spec"]
            assert (definition["group"], definition["names"]["kind"]) == (group, kind)
            assert how.version in [each["name"] for each in definition["versions"]]
