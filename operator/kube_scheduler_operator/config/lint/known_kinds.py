"""The kinds that can be checked, and why a document of another kind cannot be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from ...base import names
from ...base.crd_schema import validate_object
from ...base.decoding import INVALID_TYPE
from ...base.findings import WARNING, Problem, did_you_mean, listing
from ...base.source.culprit import first_culprit
from ...kube.resource import CONFIGURED, LOAD_POLICIES, OPERATOR_SETTINGS
from ...scheduling.load.policy_files import CRANE_GROUP, CRANE_KIND
from ..language.plugins.in_tree_plugins import OLDEST
from ..language.schema import API_VERSION, ARGS, KIND
from .checks import CheckOptions, Item, Kind
from .configurations import check_configurations
from .documents.other_files import CONFIGURATION_FIELDS
from .operator_objects import check_load_policies, check_objects, check_operator_settings

OLD_API_VERSION: Final = "OldAPIVersion"
UNKNOWN_KIND: Final = "UnknownKind"
V1_SINCE: Final = 25
"""The first minor of Kubernetes whose kube-scheduler reads `API_VERSION`."""


KINDS: Final[Mapping[tuple[str, str], Kind]] = {
    ("kubescheduler.config.k8s.io", KIND): Kind("v1", check_configurations),
    **{
        (resource.group, resource.kind): Kind(
            resource.version, check_objects, f"{resource.name}.yaml"
        )
        for resource in CONFIGURED.values()
    },
    (LOAD_POLICIES.group, LOAD_POLICIES.kind): Kind(LOAD_POLICIES.version, check_load_policies),
    (OPERATOR_SETTINGS.group, OPERATOR_SETTINGS.kind): Kind(
        OPERATOR_SETTINGS.version, check_operator_settings
    ),
    (CRANE_GROUP, CRANE_KIND): Kind("v1alpha1", check_load_policies),
}
"""The kinds that can be checked, by API group and kind."""


_GROUP: Final = API_VERSION.partition("/")[0]
_OURS: Final = frozenset((_GROUP, names.PREFIX, CRANE_GROUP))
"""API groups whose kinds are all known here; the others belong to OpenShift."""
_ARGUMENTS: Final = frozenset(f"{plugin}Args" for plugin in ARGS)
_OLD_VERSIONS: Final[Mapping[str, tuple[str, ...]]] = {
    _GROUP: ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2", "v1beta3"),
    "componentconfig": ("v1alpha1",),
}
"""API group -> the versions of KubeSchedulerConfiguration before v1."""


_KINDS_BY_GROUP: Final = {
    group: sorted(kind for other, kind in KINDS if other == group) for group, _ in KINDS
}
_ALL_KINDS: Final = sorted(kind for _, kind in KINDS)


def is_of_another_api(item: Item) -> bool:
    """Report whether it is an object of another API, and not a misspelt kind of this operator.

    Other products have kinds of the same names: Kyverno a Policy, Volcano a Scheduler.
    """
    group = item.group
    if not item.kind or "apiVersion" not in item.value or item.kind == KIND:
        return False
    if (group, item.kind) in KINDS or is_policy(item):
        return False
    if group in _KINDS_BY_GROUP:
        return group not in _OURS and not did_you_mean(item.kind, _KINDS_BY_GROUP[group])
    return not (item.kind in _ALL_KINDS and did_you_mean(group, _KINDS_BY_GROUP))


def is_for_kube_scheduler(item: Item) -> bool:
    """Report whether it is a configuration, or no object that the API server would accept."""
    if not item.api_version or item.kind in (KIND, "") or is_policy(item):
        return True
    return item.group in _OLD_VERSIONS


def is_policy(item: Item) -> bool:
    """Report whether it is kube-scheduler's Policy; other products' Policies have a group."""
    return item.kind == "Policy" and item.value.get("apiVersion") in ("v1", "", None)


def kind_of(item: Item, options: CheckOptions) -> Kind | Problem:
    """Return how to check a document, or why it cannot be checked."""
    if problem := _culprit(item):
        return problem
    api_version = item.api_version
    group, _, version = api_version.rpartition("/")
    kind = KINDS.get((group, item.kind))
    if kind is not None and kind.version == version:
        return kind
    old = item.kind == KIND and group in _OLD_VERSIONS
    if (old and version in _OLD_VERSIONS[group]) or is_policy(item):
        return _old_version(item, (item.version or options.gates.version).minor)
    if kind is not None:
        supported = f"{group}/{kind.version}"
        message = f"the apiVersion of {item.kind} is {supported}, not {api_version}"
        return Problem(UNKNOWN_KIND, ("apiVersion",), message, f"write {supported}")
    if group and is_of_another_api(item):
        message = f"{item.kind} of {api_version} belongs to another API and is not checked here"
        return Problem(UNKNOWN_KIND, ("kind",), message, f"use {listing(_ALL_KINDS)}")
    return _other_group(item) or _unknown_kind(item)


def _old_version(item: Item, minor: int) -> Problem:
    """Report a version of which kube-scheduler 1.`minor` may be one of the last readers."""
    from ..migrate.old_schema import POLICY, SOURCE_VERSIONS  # rarely needed, slow to import

    path, command = ("apiVersion",), f"kubectl scheduler convert -f {item.file}"
    version = item.api_version.rpartition("/")[2]
    source = POLICY if is_policy(item) else SOURCE_VERSIONS[version]
    if minor <= source.last_minor:
        message = (
            f"kube-scheduler 1.{source.last_minor} is the last one that reads {item.kind} of "
            f"{item.api_version}, which is not checked here"
        )
        fix = f"convert it for an upgrade; 1.{V1_SINCE} is the first one that reads v1: {command}"
        return Problem(OLD_API_VERSION, path, message, fix, WARNING)
    message = (
        f"kube-scheduler {OLDEST.short} and newer do not support {item.kind} of "
        f"{item.api_version}, only {API_VERSION}"
    )
    return Problem(OLD_API_VERSION, path, message, command)


def _culprit(item: Item) -> Problem | None:
    """Report characters that only look like those of an apiVersion or a kind."""
    for key, text in (("apiVersion", item.api_version), ("kind", item.kind)):
        if culprit := first_culprit(text):
            what, _, fix = culprit.partition("; ")
            return Problem(UNKNOWN_KIND, (key,), f"{key} contains {what}", fix)
    return None


def _other_group(item: Item) -> Problem | None:
    """Report that a kind of this name exists in another group."""
    for (group, name), kind in KINDS.items():
        if name == item.kind:
            supported = f"{group}/{kind.version}"
            if not item.api_version:
                return _missing(item, "apiVersion", f"write apiVersion: {supported}")
            message = f'{item.kind} of "{item.api_version}" is not the kind that is checked here'
            return Problem(UNKNOWN_KIND, ("apiVersion",), message, f"write {supported}")
    return None


def _unknown_kind(item: Item) -> Problem:
    """Report that no kind of this name is checked."""
    known = _KINDS_BY_GROUP.get(item.group) or _ALL_KINDS
    if not item.kind:
        fix = f"set it to {listing(known)}"
        if set(item.value) & CONFIGURATION_FIELDS:
            fix = f"write apiVersion: {API_VERSION} and kind: {KIND}"
        return _missing(item, "kind", fix)
    if item.group == _GROUP and item.kind in _ARGUMENTS:
        message = f"{item.kind} is part of a {KIND}"
        fix = (
            f"write it as args in pluginConfig: {{name: {item.kind.removesuffix('Args')}, args: …}}"
        )
        return Problem(UNKNOWN_KIND, ("kind",), message, fix)
    hint = did_you_mean(item.kind, known).removeprefix("; ")
    version = item.api_version or "no apiVersion"
    message = f"{item.kind} of {version} is not a kind that can be checked"
    return Problem(UNKNOWN_KIND, ("kind",), message, hint or f"use {listing(known)}")


def _missing(item: Item, key: str, fix: str) -> Problem:
    """Report that a field is missing, or which field only looks like it."""
    names_of_fields = list(map(str, item.value))
    for name in names_of_fields:
        if key in name and (culprit := first_culprit(name)):
            what, _, correct = culprit.partition("; ")
            message = f"{key} is missing: the name of this field contains {what}"
            return Problem(UNKNOWN_KIND, (name,), message, correct)
    for name in names_of_fields:
        if correct := _meant(name, key, names_of_fields):
            message = f'{key} is missing: this field is "{name}"'
            return Problem(UNKNOWN_KIND, (name,), message, correct)
    return Problem(UNKNOWN_KIND, (), f"{key} is missing", fix)


def _meant(name: str, key: str, names: Sequence[str]) -> str:
    """Return how to turn a misspelt field into `key`; empty: it is another field."""
    word = name.lstrip("+-> ")
    mark = name.removesuffix(word).strip()
    if mark and word == key:
        if mark.startswith("---"):
            return "write --- in a line of its own"
        every = all(other.startswith((mark, " ")) for other in names)
        return f"remove the {mark} at the beginning of {'every' if every else 'the'} line"
    if word.lower() == key.lower() or (
        name not in CONFIGURATION_FIELDS and did_you_mean(name, [key])
    ):
        return f"rename it to {key}"
    return ""


def check_definitions(items: Sequence[tuple[Item, Kind]]) -> Iterator[tuple[Item, Problem]]:
    """Yield the violations of CustomResourceDefinitions."""
    for item, kind in items:
        if kind.definition:
            # With its nulls: the API server rejects an unknown field even without a value.
            for problem in validate_object(item.document.root.data, kind.definition, kind.version):
                yield item, problem


def wrong_types(value: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the fields of an object of a known kind that have another type than its definition."""
    group, _, version = str(value.get("apiVersion") or "").rpartition("/")
    kind = KINDS.get((group, str(value.get("kind"))))
    if kind is not None and kind.definition and kind.version == version:
        for problem in validate_object(value, kind.definition, version):
            if problem.reason == INVALID_TYPE:
                yield problem
