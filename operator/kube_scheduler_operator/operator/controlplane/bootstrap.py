"""The scheduler of a node that bootstraps a cluster: configuration and manifests, before any API.

It uses the same Lease as its successors. Two schedulers with different Leases are both active, and
overcommit the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import jinja2
import yaml

from ...base.findings import format_path
from ...base.foreign_text import foreign_lines
from ...base.go_values import without_nulls
from ...base.limits import MESSAGE_LENGTH
from ...base.platform import Platform
from ...base.templates import render_documents
from ...config.effective.attachment import CONTROL_PLANE
from ...config.effective.profiles.check import first_profile
from ...config.effective.profiles.validate import validate_profiles
from ...config.language.feature_gates import Gates
from ...config.language.merging.merge import TypeMetaError, merge_semantically, without_empty_values
from ...config.language.merging.presets import default_config, profile_fragment
from ...config.language.plugins.in_tree_plugins import NEWEST
from ...config.language.validation.configuration import Target, validate_config
from ...config.language.versions import Version
from ...kube.resource import SCHEDULER_PROFILES

FEATURE_SET_ANNOTATION: Final = "release.openshift.io/feature-set"
DEFAULT_FEATURE_SET: Final = "Default"

_SECRETS_DIRECTORY: Final = "/etc/kubernetes/secrets"
_KUBECONFIG: Final = f"{_SECRETS_DIRECTORY}/kubeconfig"
_CONFIG_DIRECTORY: Final = "/etc/kubernetes/config"
_LEASE: Final = ("leaderElect", "resourceLock", "resourceNamespace", "resourceName")

# The version that will read the configuration is unknown: newer fields must not be refused.
_SOME_VERSION: Final = Version(NEWEST.major, NEWEST.minor + 1)


class BootstrapError(ValueError):
    """An input that cannot be rendered; each line of the message names one and the fix."""

    def __init__(self, *lines: str) -> None:
        super().__init__(foreign_lines(lines, MESSAGE_LENGTH))


@dataclass(frozen=True, slots=True)
class Template:
    name: str  # in messages
    text: str


@dataclass(frozen=True, slots=True)
class ManifestFile:
    name: str  # in messages
    documents: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class BootstrapPod:
    image: str
    image_pull_policy: str
    config_host_path: str  # directory of the bootstrap node with the rendered configuration
    config_file_name: str  # name of the configuration there
    secrets_host_path: str  # directory of the bootstrap node with the file `kubeconfig`

    def values(self, platform: Platform) -> dict[str, Any]:
        return {
            **asdict(self),
            "platform": platform,
            "secrets_directory": _SECRETS_DIRECTORY,
            "kubeconfig": _KUBECONFIG,
            "config": f"{_CONFIG_DIRECTORY}/{self.config_file_name}",
        }


def bootstrap_config(
    platform: Platform,
    pod: BootstrapPod,
    template: Template,
    overrides: Sequence[ManifestFile],
    manifests: Sequence[ManifestFile] = (),
) -> dict[str, Any]:
    """The configuration of the bootstrap scheduler.

    The default configuration and the SchedulerProfiles among the manifests, then the template, then
    each override, merged like `spec.unsupportedConfigOverrides`.

    Raises:
        BootstrapError: a document is of another kind, a SchedulerProfile is invalid, kube-scheduler
            would refuse the result, or it would use another Lease than its successors.
    """
    common = default_config(platform)
    config = merge_semantically([_with_profiles(profile_fragment(""), manifests), common])
    for file in (_render(template, platform, pod), *overrides):
        for document in file.documents:
            try:
                config = merge_semantically([config, document])
            except TypeMetaError as error:
                raise BootstrapError(f"{file.name}: {error}") from error
    config = without_nulls(config)
    problems = [
        f"{format_path(('config', *problem.path))}: {problem.sentence}"
        for problem in validate_config(config, Target(Gates(_SOME_VERSION), stock=False))
    ]
    problems = problems or list(_other_lease(config, common))
    if problems:
        raise BootstrapError(*problems)
    return without_empty_values(config)


def _with_profiles(base: dict[str, Any], manifests: Sequence[ManifestFile]) -> dict[str, Any]:
    """The base with the SchedulerProfiles of the control plane: Pods use them from the start."""
    objects = {
        str((document.get("metadata") or {}).get("name") or ""): document
        for file in manifests
        for document in file.documents
        if _key(document)[:2] == (SCHEDULER_PROFILES.group, SCHEDULER_PROFILES.kind)
    }
    first = first_profile(base)
    target = Target(Gates(_SOME_VERSION), stock=False)
    profiles, results = validate_profiles(CONTROL_PLANE, objects.values(), first, target)
    problems = [finding.text for result in results for finding in result.findings]
    if problems:
        raise BootstrapError(*problems)
    return {**base, "profiles": list(profiles)} if profiles != (first,) else base


def _other_lease(config: Mapping[str, Any], common: Mapping[str, Any]) -> Iterable[str]:
    election = config.get("leaderElection") or {}
    for key in _LEASE:
        configured, desired = election.get(key), common["leaderElection"][key]
        if configured != desired:
            yield (
                f"config.leaderElection.{key}: {configured!r} would make two schedulers active, "
                f"because the schedulers that follow use {desired!r}; remove it"
            )


def bootstrap_manifests(
    platform: Platform, pod: BootstrapPod, templates: Iterable[Template], feature_set: str
) -> list[ManifestFile]:
    """The rendered manifests, without those for other feature sets.

    Raises:
        BootstrapError: a template cannot be rendered.
    """
    files = []
    for template in templates:
        rendered = _render(template, platform, pod)
        documents = tuple(
            document for document in rendered.documents if _is_for(document, feature_set)
        )
        if documents:
            files.append(ManifestFile(rendered.name, documents))
    return files


def _is_for(document: Mapping[str, Any], feature_set: str) -> bool:
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    listed = annotations.get(FEATURE_SET_ANNOTATION)
    return listed is None or feature_set in (name.strip() for name in str(listed).split(","))


def _render(template: Template, platform: Platform, pod: BootstrapPod) -> ManifestFile:
    try:
        documents = render_documents(template.text, **pod.values(platform))
        return ManifestFile(template.name, tuple(documents))
    except jinja2.TemplateSyntaxError as error:
        raise BootstrapError(
            f"{template.name}, line {error.lineno}: {error.message}; templates are "
            "Jinja2: write values as {{ image | tojson }}"
        ) from error
    except jinja2.TemplateError as error:
        known = ", ".join(sorted(pod.values(platform)))
        raise BootstrapError(
            f"{template.name}: {error.message}; the variables are {known}"
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        raise BootstrapError(f"{template.name} does not render to YAML objects: {error}") from error


def feature_set_of(manifests: Iterable[ManifestFile]) -> str:
    """`spec.featureSet` of the FeatureGate `cluster` among manifests; `Default` without one."""
    for file in manifests:
        for document in file.documents:
            if _key(document) == ("config.openshift.io", "FeatureGate", "", "cluster"):
                return str((document.get("spec") or {}).get("featureSet") or DEFAULT_FEATURE_SET)
    return DEFAULT_FEATURE_SET


def contradictions(manifests: Iterable[ManifestFile]) -> list[str]:
    first: dict[tuple[str, str, str, str], tuple[str, Mapping[str, Any]]] = {}
    messages = []
    for file in manifests:
        for document in file.documents:
            key = _key(document)
            where, known = first.setdefault(key, (file.name, document))
            if known != document and key[-1]:
                _, kind, namespace, name = key
                place = f" in {namespace}" if namespace else ""
                messages.append(
                    f"{file.name} and {where} define {kind} {name}{place} differently; "
                    "keep one of them"
                )
    return messages


def _key(document: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """(group, kind, namespace, name); no name if the API generates it."""
    group, slash, _ = str(document.get("apiVersion") or "").rpartition("/")
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return (
        group if slash else "",
        str(document.get("kind") or ""),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
    )
