"""Any scheduler configuration to KubeSchedulerConfiguration v1: what it is, and what comes of it.

The result does in the version that will read it what the old one did, as far as that is possible;
what is changed, and why, is told with it. The check of the operator looks at the result as it looks
at every configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.findings import Path, Problem, did_you_mean
from ..schedulerconfig.check import Target, check_config
from ..schedulerconfig.go_values import without_nulls
from ..schedulerconfig.schema import KIND
from .changes import Change, ConversionError, Report
from .component_config import convert_component, convert_policy
from .current_version import convert_current
from .old_schema import GROUP, SOURCES, UNREADABLE, V1, Source

POLICY_KEY: Final = "policy.cfg"
"""The key of a ConfigMap in which kube-scheduler looked for a Policy."""
_POLICY_FIELDS: Final = frozenset((
    "predicates", "priorities", "extenders", "hardPodAffinitySymmetricWeight",
    "alwaysCheckAllPredicates",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Conversion:
    """What comes of one document.

    Attributes:
        config: KubeSchedulerConfiguration v1.
        changes: what is different, in no order that means something.
        problems: why the scheduler would not start with it.
    """

    config: dict[str, Any]
    changes: tuple[Change, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class PolicyReference:
    """Where a v1alpha1 document says that its Policy is.

    Attributes:
        path: of the reference in the document.
        file: of a file on the node, or "".
        config_map: namespace and name, or None.
    """

    path: Path
    file: str = ""
    config_map: tuple[str, str] | None = None

    def __str__(self) -> str:
        if self.config_map:
            return f"ConfigMap {self.config_map[1]} in {self.config_map[0]}"
        return f"file {self.file}"


def convert(
    document: Mapping[str, Any], target: Target, policy: Mapping[str, Any] | None = None
) -> Conversion:
    """Convert a Policy or a KubeSchedulerConfiguration of any version.

    Args:
        document: what YAML or JSON held.
        target: the scheduler that will read the result.
        policy: what `policy_reference` of the document stands for.

    Raises:
        ConversionError: it is neither, or has a value that no kube-scheduler took.
    """
    report = Report()
    if is_policy(document):
        config = convert_policy(document, target.gates, report)
    else:
        source = source_of(document)
        reference = policy_reference(document)
        if reference and policy is None:
            message = f"the Policy is in {reference}; give that as well"
            raise _unreadable(reference.path, message)
        if reference and not is_policy(policy):
            message = f"what is given for {reference} is no Policy; give that"
            raise _unreadable(reference.path, message)
        if source is V1:
            config = convert_current(document, target.gates, report)
        else:
            config = convert_component(document, source, policy, target.gates, report)
    return Conversion(config, report.changes(), tuple(check_config(without_nulls(config), target)))


def is_policy(document: Any) -> bool:
    """True for a Policy, also for one without apiVersion and kind."""
    if not isinstance(document, Mapping):
        return False
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind == "Policy":
        return version in (None, "", "v1", f"{GROUP}/v1")
    return not kind and not version and bool(_POLICY_FIELDS & document.keys())


def source_of(document: Any) -> Source:
    """The version of a KubeSchedulerConfiguration.

    Raises:
        ConversionError: it is none, or of a version that never was.
    """
    if not isinstance(document, Mapping):
        raise _unreadable((), "this is no object; give a KubeSchedulerConfiguration or a Policy")
    version, kind = document.get("apiVersion"), document.get("kind")
    group, _slash, name = str(version or "").partition("/")
    if group == "componentconfig":
        name, group = name or "v1alpha1", GROUP
    if group != GROUP or kind != KIND:
        given = " ".join(str(each) for each in (version, kind) if each) or "no apiVersion and kind"
        message = f"this has {given}; give a {KIND} of {GROUP} or a Policy"
        raise _unreadable(("kind",) if kind != KIND else ("apiVersion",), message)
    if name not in SOURCES:
        hint = did_you_mean(name, SOURCES) or f"; use one of {', '.join(SOURCES)}"
        raise _unreadable(("apiVersion",), f'{GROUP} never had "{name}"{hint}')
    return SOURCES[name]


def policy_reference(document: Mapping[str, Any]) -> PolicyReference | None:
    """Where the Policy of a v1alpha1 document is, None if it has none.

    Raises:
        ConversionError: it says so in no way or in two.
    """
    source = document.get("algorithmSource")
    policy = source.get("policy") if isinstance(source, Mapping) else None
    if not isinstance(policy, Mapping):
        return None
    path: Path = ("algorithmSource", "policy")
    if isinstance(source, Mapping) and source.get("provider"):
        message = "a policy and a provider exclude each other; remove one of them"
        raise _unreadable(("algorithmSource",), message)
    file, config_map = policy.get("file"), policy.get("configMap")
    if isinstance(file, Mapping) and file.get("path") and not config_map:
        return PolicyReference((*path, "file", "path"), file=str(file["path"]))
    if isinstance(config_map, Mapping) and config_map.get("name") and not file:
        namespace = str(config_map.get("namespace") or "kube-system")
        return PolicyReference(
            (*path, "configMap"), config_map=(namespace, str(config_map["name"]))
        )
    raise _unreadable(path, "this names no Policy; set file.path or configMap.name, one of them")


def _unreadable(path: Path, message: str) -> ConversionError:
    return ConversionError([Problem(UNREADABLE, path, message)])
