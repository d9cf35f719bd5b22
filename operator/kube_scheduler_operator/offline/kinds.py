"""What can be checked without a cluster, by API group and kind, and how.

A checker gets all documents of its kinds at once, because some count only together (Scheduler and
KubeScheduler make one configuration), and says what is wrong with which of them. Another kind is
one more line in KINDS; those that know further schedulers are in `secondary.kinds`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ..base import names
from ..base.findings import ERROR, WARNING, Finding, Path, Problem, Severity
from ..base.objects import mapping
from ..base.platform import KUBEADM, Platform
from ..schedulerconfig.check import Target, check_config
from ..schedulerconfig.crd_schema import check_object
from ..schedulerconfig.feature_gates import Gates, parse_gates
from ..schedulerconfig.schema import KIND
from ..schedulerconfig.source import Document
from ..schedulerconfig.warnings import Process, hazards

if TYPE_CHECKING:
    from ..model.attachment import Judged

NOT_READ: Final = "NotRead"
PROFILE: Final = "SchedulerProfile"
EXTENDER: Final = "SchedulerExtender"
_MANY: Final = (PROFILE, EXTENDER)

_PART: Final = re.compile(
    r"""\[(\d+)\]|\[('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]|\.?([A-Za-z0-9_*-]+)"""
)


@dataclass(frozen=True, slots=True)
class Item:
    """A document of a file.

    Attributes:
        file: how the file is called.
        document: with positions.
        value: its data without nulls, a map.
    """

    file: str
    document: Document
    value: Mapping[str, Any]

    @property
    def kind(self) -> str:
        """The kind that it says."""
        return str(self.value.get("kind", ""))

    @property
    def name(self) -> str:
        """metadata.name; empty where there is none."""
        metadata = self.value.get("metadata")
        return str(metadata.get("name") or "") if isinstance(metadata, Mapping) else ""


@dataclass(frozen=True, slots=True)
class Setting:
    """What decides besides the documents.

    Attributes:
        gates: version and feature gates of the kube-scheduler that will read them.
        platform: the kind of cluster.
        stock: False for an image that may have more plugins than Kubernetes' own.
    """

    gates: Gates
    platform: Platform = KUBEADM
    stock: bool = True

    @property
    def target(self) -> Target:
        """The scheduler."""
        return Target(self.gates, stock=self.stock)


@dataclass(slots=True)
class Checked:
    """What came out.

    Attributes:
        problems: which document, and what.
        processes: the schedulers that would run, for comparison with each other.
    """

    problems: list[tuple[Item, Problem]] = field(default_factory=list)
    processes: list[tuple[Item, Process]] = field(default_factory=list)


Checker = Callable[[Sequence[Item], Setting], Checked]


@dataclass(frozen=True, slots=True)
class Kind:
    """How documents of one kind are checked.

    Attributes:
        version: the API version that is read.
        checker: what checks them, together with the other kinds that have the same one.
        definition: the CustomResourceDefinition's file in crds/, if it is an object of the API.
    """

    version: str
    checker: Checker
    definition: str = ""


def check_configurations(items: Sequence[Item], setting: Setting) -> Checked:
    """KubeSchedulerConfigurations: what the scheduler would refuse, and what would hurt."""
    checked = Checked()
    for item in items:
        problems = check_config(item.value, setting.target)
        if not problems:
            problems = hazards(item.value, setting.target)
            process = Process(item.file, item.value, setting.target)
            checked.processes.append((item, process))
        checked.problems += [(item, problem) for problem in problems]
    return checked


_TOLD_ELSEWHERE: Final = (
    names.OVERRIDES_UPGRADEABLE,
    names.SCHEDULER_EXTENDERS_DEGRADED,
    names.SCHEDULER_PROFILES_DEGRADED,
)


def check_cluster(items: Sequence[Item], setting: Setting) -> Checked:
    """What the operator would say of the objects that make the control plane's configuration.

    Of profiles and extenders, only those that its scheduler is to have are looked at.
    """
    # These load what merges, which configurations do not need.
    from ..controlplane.compose import Inputs, compose
    from ..schedulerconfig.command_line import parse

    checked = Checked()
    chosen: dict[str, Item] = {}
    for item in items:
        if item.kind not in _MANY and item.name not in ("", names.CLUSTER):
            message = f'{item.kind} "{item.name}" is not read'
            fix = f'name it "{names.CLUSTER}"'
            problem = Problem(NOT_READ, ("metadata", "name"), message, fix, WARNING)
            checked.problems.append((item, problem))
        elif item.kind not in _MANY and item.kind in chosen:
            message = f"this is a second {item.kind}; there is one per cluster, so remove one"
            checked.problems.append((item, Problem(NOT_READ, ("metadata", "name"), message)))
        elif item.kind not in _MANY:
            chosen[item.kind] = item
    profiles, problems = by_name(item for item in items if item.kind == PROFILE)
    checked.problems += problems
    extenders, problems = well_formed_extenders(items)
    checked.problems += problems
    if not chosen and not profiles and not extenders:
        return checked
    values = {kind: item.value for kind, item in chosen.items()}
    others = (*profiles.values(), *extenders.values())
    inputs = Inputs(
        platform=setting.platform,
        operand_version=setting.gates.version,
        scheduler=values.get("Scheduler", {}),
        kubescheduler=values.get("KubeScheduler", {}),
        stock_image=setting.stock,
        scheduler_profiles=tuple(item.value for item in profiles.values()),
        scheduler_extenders=tuple(item.value for item in extenders.values()),
        schedulers=frozenset(scheduler_of(i) for i in (*profiles.values(), *extenders.values()))
        | {""},
        planned=True,
    )
    composition = compose(inputs)
    for verdict in composition.verdicts:
        checked.problems += told_of(verdict, profiles)
    for one in composition.extenders:
        checked.problems += told_of(one, extenders)
    for finding in composition.findings:
        if finding.condition in _TOLD_ELSEWHERE:
            # That overrides are set at all holds up an upgrade, not a scheduler.
            continue
        severity: Severity = ERROR if finding.blocking else WARNING
        problem = Problem(
            finding.reason, parse_path(finding.path), finding.message, severity=severity
        )
        checked.problems.append((_owner(problem.path, chosen, others), problem))
    if composition.config is not None and not composition.blocking:
        explicit = parse_gates(parse(composition.arguments).get("feature-gates", ()))
        target = Target(Gates(setting.gates.version, explicit), stock=setting.stock)
        item = _owner((), chosen, others)
        process = Process(item.file, composition.config, target)
        checked.processes.append((item, process))
    return checked


def by_name(items: Iterable[Item]) -> tuple[dict[str, Item], list[tuple[Item, Problem]]]:
    """(objects of one kind by name, those that have none or the name of another)."""
    found: dict[str, Item] = {}
    problems = []
    for item in items:
        if not item.name:
            message = f"{item.kind} has no name; give it one"
            problems.append((item, Problem(NOT_READ, ("metadata", "name"), message)))
        elif item.name in found:
            message = f'this is a second {item.kind} "{item.name}"; rename one'
            problems.append((item, Problem(NOT_READ, ("metadata", "name"), message)))
        else:
            found[item.name] = item
    return found, problems


def well_formed_extenders(
    items: Iterable[Item],
) -> tuple[dict[str, Item], list[tuple[Item, Problem]]]:
    """(SchedulerExtenders by name, those that have no name of their own).

    One that its definition does not allow is in neither: that is said of it already, and no more
    can be known.
    """
    definition = f"{names.SCHEDULEREXTENDERS}.yaml"
    extenders = (item for item in items if item.kind == EXTENDER)
    return by_name(
        item
        for item in extenders
        if next(check_object(item.value, definition, "v1alpha1"), None) is None
    )


def scheduler_of(item: Item) -> str:
    """Which scheduler is to have a profile or an extender; empty: the control plane's."""
    return str(mapping(item.value.get("spec")).get("scheduler") or "")


def told_of(judged: Judged, items: Mapping[str, Item]) -> Iterator[tuple[Item, Problem]]:
    """Why an object would not be accepted, or what may surprise if it is."""
    told: tuple[tuple[Severity, tuple[Finding, ...]], ...] = (
        (ERROR, judged.findings),
        (WARNING, judged.warnings),
    )
    for severity, findings in told:
        for finding in findings:
            path = parse_path(finding.path.partition(" ")[2])
            problem = Problem(finding.reason, path, finding.message, severity=severity)
            yield items[judged.name], problem


def _owner(path: Path, chosen: Mapping[str, Item], others: Sequence[Item]) -> Item:
    """The document that has most of a path; KubeScheduler, if several have as much."""
    kinds = sorted(chosen, reverse=True, key=lambda kind: kind == "KubeScheduler")
    items = [chosen[kind] for kind in kinds] or list(others)
    return max(items, key=lambda item: item.document.depth(path))


def parse_path(text: str) -> Path:
    """A path as `format_path` writes it, taken apart."""
    found: list[str | int] = []
    for index, quoted, key in _PART.findall(text):
        found.append(int(index) if index else key or str(ast.literal_eval(quoted)))
    return tuple(found)


KINDS: Final[Mapping[tuple[str, str], Kind]] = {
    ("kubescheduler.config.k8s.io", KIND): Kind("v1", check_configurations),
    ("config.openshift.io", "Scheduler"): Kind(
        "v1", check_cluster, "schedulers.config.openshift.io.yaml"
    ),
    ("operator.openshift.io", "KubeScheduler"): Kind(
        "v1", check_cluster, "kubeschedulers.operator.openshift.io.yaml"
    ),
    (names.PREFIX, EXTENDER): Kind("v1alpha1", check_cluster, f"{names.SCHEDULEREXTENDERS}.yaml"),
    (names.PREFIX, PROFILE): Kind("v1alpha1", check_cluster, f"{names.SCHEDULERPROFILES}.yaml"),
}


def check_definitions(items: Sequence[tuple[Item, Kind]]) -> Iterator[tuple[Item, Problem]]:
    """What the API server would refuse of objects, by their CustomResourceDefinitions."""
    for item, kind in items:
        if kind.definition:
            for problem in check_object(item.value, kind.definition, kind.version):
                yield item, problem
