"""Conversion of any scheduler configuration to KubeSchedulerConfiguration v1.

As far as possible, the result makes the target version behave like the old one. Every change is
reported with its reason, and the result is validated like any other configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ...base.findings import Path, Problem, did_you_mean, listed_paths
from ...base.go_values import boolean, integer, without_nulls
from ..language.plugins.in_tree_plugins import NEWEST
from ..language.schema import DEFAULT_SCHEDULER, GROUP, KIND
from ..language.validation.configuration import Target, validate_config
from .changes import Change, ConversionError, ConversionLog, unreadable
from .component_config import convert_component, convert_policy, convert_v1
from .old_schema import (
    POLICY,
    SOURCE_VERSIONS,
    V1,
    SourceVersion,
    foreign_fields,
    spelled,
    unknown_fields,
)

_POLICY_FIELDS: Final = frozenset((
    "predicates", "priorities", "extenders", "hardPodAffinitySymmetricWeight",
    "alwaysCheckAllPredicates",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Conversion:
    """The result of converting one document."""

    config: dict[str, Any]  # KubeSchedulerConfiguration v1
    changes: tuple[Change, ...]  # differences from the document, unordered
    problems: tuple[Problem, ...]  # errors with which the scheduler does not start


@dataclass(frozen=True, slots=True)
class PolicyReference:
    """A v1alpha1 document's reference to its Policy."""

    path: Path  # of the reference in the document
    file: str = ""  # on the node; empty if the Policy is in a ConfigMap
    config_map: tuple[str, str] | None = None  # (namespace, name)

    def __str__(self) -> str:
        if self.config_map:
            return f"ConfigMap {self.config_map[1]} in {self.config_map[0]}"
        return f"file {self.file}"


def convert(
    document: Mapping[str, Any], target: Target, policy: Mapping[str, Any] | None = None
) -> Conversion:
    """Convert a Policy or a KubeSchedulerConfiguration of any version for the scheduler `target`.

    `policy` is the Policy to which `policy_reference` of the document refers.

    Raises:
        ConversionError: it is neither, or has a value that every kube-scheduler rejects.
    """
    report = ConversionLog()
    if is_policy(document):
        config = convert_policy(document, target.gates, report)
    else:
        source = source_of(document)
        reference = policy_reference(document)
        if reference and policy is None:
            message = f"the Policy is in {reference}; pass it as well"
            raise unreadable(reference.path, message)
        if reference and not is_policy(policy):
            message = f"the document passed for {reference} is not a Policy; pass the Policy"
            raise unreadable(reference.path, message)
        if source is V1:
            config = convert_v1(document, target.gates, report)
        else:
            config = convert_component(document, source, policy, target.gates, report)
    return Conversion(
        config, report.changes(), tuple(validate_config(without_nulls(config), target))
    )


def check_types(document: Any) -> None:
    """Check the document's kind, version and the types of its fields, but not plugin arguments.

    Raises:
        ConversionError: one is wrong, so that the document cannot be converted.
    """
    source = POLICY if is_policy(document) else source_of(document)
    value = without_nulls(spelled(document, source, ConversionLog()))
    unknown_fields(value, source.schema, (), source.last_minor or NEWEST.minor)


def foreign_content(document: Mapping[str, Any]) -> str:
    """Return what a file has besides a scheduler's configuration, and the fix; quotes no value.

    Arguments of plugins that are not kube-scheduler's have no schema: any are accepted.
    """
    try:
        source = source_of(document)
    except ConversionError:
        return (
            f"the file is not a {KIND} of {GROUP} in a known version; name the scheduler's own "
            "file in --config"
        )
    paths = foreign_fields(document, source)
    if not paths:
        return ""
    return (
        f"{KIND} {source.name} does not have {listed_paths(paths)}, or has another type there; "
        "correct or remove it"
    )


def is_policy(document: Any) -> bool:
    """Return whether the document is a Policy, with or without apiVersion and kind."""
    if not isinstance(document, Mapping):
        return False
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind == "Policy":
        return version in (None, "", "v1", f"{GROUP}/v1")
    return not kind and not version and bool(_POLICY_FIELDS & document.keys())


def source_of(document: Any) -> SourceVersion:
    """Return the version of a KubeSchedulerConfiguration.

    Raises:
        ConversionError: it is another kind, or has an unknown version.
    """
    if not isinstance(document, Mapping):
        raise unreadable((), "must be an object; pass a KubeSchedulerConfiguration or a Policy")
    version, kind = document.get("apiVersion"), document.get("kind")
    group, _slash, name = str(version or "").partition("/")
    if group == "componentconfig":
        name, group = name or "v1alpha1", GROUP
    if group != GROUP or kind != KIND:
        actual = " ".join(str(text) for text in (version, kind) if text) or "no apiVersion and kind"
        message = f"the document has {actual}; pass a {KIND} of {GROUP} or a Policy"
        raise unreadable(("kind",) if kind != KIND else ("apiVersion",), message)
    if name not in SOURCE_VERSIONS:
        hint = did_you_mean(name, SOURCE_VERSIONS) or f"; use one of {', '.join(SOURCE_VERSIONS)}"
        raise unreadable(("apiVersion",), f'{GROUP} has no version "{name}"{hint}')
    return SOURCE_VERSIONS[name]


def policy_reference(document: Mapping[str, Any]) -> PolicyReference | None:
    """Read the Policy reference of a v1alpha1 document, if any.

    Raises:
        ConversionError: the reference is incomplete or ambiguous.
    """
    source = document.get("algorithmSource")
    policy = source.get("policy") if isinstance(source, Mapping) else None
    if not isinstance(policy, Mapping):
        return None
    path: Path = ("algorithmSource", "policy")
    if isinstance(source, Mapping) and source.get("provider"):
        message = "policy and provider are mutually exclusive; remove one of them"
        raise unreadable(("algorithmSource",), message)
    file, config_map = policy.get("file"), policy.get("configMap")
    if isinstance(file, Mapping) and file.get("path") and not config_map:
        return PolicyReference((*path, "file", "path"), file=str(file["path"]))
    if isinstance(config_map, Mapping) and config_map.get("name") and not file:
        namespace = str(config_map.get("namespace") or "kube-system")
        return PolicyReference(
            (*path, "configMap"), config_map=(namespace, str(config_map["name"]))
        )
    raise unreadable(path, "does not name a Policy; set either file.path or configMap.name")


# --- flags beside a Policy -----------------------------------------------------------------------
# kube-scheduler ignores these flags as soon as --config is set. Source: ApplyDeprecated and
# DeprecatedOptions in cmd/kube-scheduler/app/options of k8s.io/kubernetes v1.22.17;
# --scheduler-name and --hard-pod-affinity-symmetric-weight were removed before. The flags of
# leader election (--leader-elect…) still apply with --config.

_FLAG_FIELDS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[str], Any]]]] = {
    "lock-object-name": (("leaderElection", "resourceName"), str),
    "lock-object-namespace": (("leaderElection", "resourceNamespace"), str),
    "kubeconfig": (("clientConnection", "kubeconfig"), str),
    "kube-api-burst": (("clientConnection", "burst"), integer),
    "kube-api-content-type": (("clientConnection", "contentType"), str),
    "kube-api-qps": (("clientConnection", "qps"), float),
    "profiling": (("enableProfiling",), boolean),
    "contention-profiling": (("enableContentionProfiling",), boolean),
}
"""Flag -> the field that replaces it, and how its value is read."""
NAME_FLAG: Final = "scheduler-name"
POLICY_FLAGS: Final = (
    "policy-config-file", "policy-configmap", "policy-configmap-namespace",
    "use-legacy-policy-config", "algorithm-provider", NAME_FLAG, "lock-object-name",
    "lock-object-namespace", "kubeconfig", "hard-pod-affinity-symmetric-weight",
)  # fmt: skip
"""Flags that have no place beside --config, or that newer versions do not have."""
_HARD_AFFINITY_FLAG: Final = "hard-pod-affinity-symmetric-weight"


def with_flags(conversion: Conversion, flags: Mapping[str, str], target: Target) -> Conversion:
    """Add the settings of a scheduler's flags to its converted Policy.

    `flags` maps names without dashes to effective values.
    """
    config = dict(conversion.config)
    log = ConversionLog()
    why = "kube-scheduler ignores the flag beside --config"
    for flag, (path, read) in _FLAG_FIELDS.items():
        if flag not in flags:
            continue
        try:
            value = read(flags[flag])
        except ValueError as error:
            log.lost((), f"--{flag} has no effect", f"its value is invalid: {error}")
            continue
        *parents, last = path
        owner = config
        for parent in parents:
            owner[parent] = dict(owner.get(parent) or {})
            owner = owner[parent]
        owner[last] = value
        log.same((), f"--{flag} became {'.'.join(path)}", why)
    name = flags.get(NAME_FLAG, DEFAULT_SCHEDULER)
    if name != DEFAULT_SCHEDULER:
        first, *others = config.get("profiles") or [{}]
        config["profiles"] = [{"schedulerName": name, **first}, *others]
        log.same((), f"--{NAME_FLAG} became profiles[0].schedulerName", why)
    if _HARD_AFFINITY_FLAG in flags:
        what = f"--{_HARD_AFFINITY_FLAG} {flags[_HARD_AFFINITY_FLAG]} has no effect"
        log.differs((), what, "set hardPodAffinityWeight in the arguments of InterPodAffinity")
    what = "Policy converted to KubeSchedulerConfiguration"
    log.same(("kind",), what, "kube-scheduler reads it with --config")
    changes = (change for change in conversion.changes if change.path != ("kind",))
    problems = tuple(validate_config(without_nulls(config), target))
    return replace(conversion, config=config, changes=(*changes, *log.changes()), problems=problems)
