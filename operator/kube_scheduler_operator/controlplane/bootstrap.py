"""The scheduler of a node that bootstraps a cluster: configuration and manifests, before any API.

It elects where its successors do. Two schedulers that compete for different Leases are both active,
and each takes the other's decisions for its own room on the nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import jinja2
import yaml

from ..base.findings import format_path
from ..base.platform import Platform
from ..kube.resource import SCHEDULER_PROFILES
from ..manifests.pods import render_documents
from ..model.attachment import CONTROL_PLANE
from ..profiles.check import first_profile
from ..profiles.validate import profiles_of
from ..schedulerconfig.canonical import tidy
from ..schedulerconfig.catalogue import NEWEST
from ..schedulerconfig.check import Target, check_config
from ..schedulerconfig.feature_gates import Gates
from ..schedulerconfig.go_values import without_nulls
from ..schedulerconfig.merge import TypeMetaError, merge_by_meaning
from ..schedulerconfig.presets import default_config, profile_fragment
from ..schedulerconfig.versions import Version

FEATURE_SET_ANNOTATION: Final = "release.openshift.io/feature-set"
DEFAULT_FEATURE_SET: Final = "Default"

_SECRETS_DIRECTORY: Final = "/etc/kubernetes/secrets"
_KUBECONFIG: Final = f"{_SECRETS_DIRECTORY}/kubeconfig"
_CONFIG_DIRECTORY: Final = "/etc/kubernetes/config"
_LEASE: Final = ("leaderElect", "resourceLock", "resourceNamespace", "resourceName")

# Which version will read the configuration is not known: what may be new in it is not refused.
_SOME_VERSION: Final = Version(NEWEST.major, NEWEST.minor + 1)


class BootstrapError(ValueError):
    """Inputs from which nothing can be rendered; the message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template as it was read: what to call it, and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class File:
    """What a file holds: what to call it, and its objects."""

    name: str
    documents: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Pod:
    """What decides about the bootstrap pod.

    Attributes:
        image: the scheduler's.
        image_pull_policy: `Always`, `IfNotPresent` or `Never`.
        config_host_path: directory of the bootstrap node with the rendered configuration.
        config_file_name: its name there.
        secrets_host_path: directory of the bootstrap node with the file `kubeconfig`.
    """

    image: str
    image_pull_policy: str
    config_host_path: str
    config_file_name: str
    secrets_host_path: str

    def values(self, platform: Platform) -> dict[str, Any]:
        """The names that templates can use."""
        return {
            "platform": platform,
            "image": self.image,
            "image_pull_policy": self.image_pull_policy,
            "config_host_path": self.config_host_path,
            "config_file_name": self.config_file_name,
            "secrets_host_path": self.secrets_host_path,
            "secrets_directory": _SECRETS_DIRECTORY,
            "kubeconfig": _KUBECONFIG,
            "config": f"{_CONFIG_DIRECTORY}/{self.config_file_name}",
        }


def bootstrap_config(
    platform: Platform,
    pod: Pod,
    template: Template,
    overrides: Sequence[File],
    manifests: Sequence[File] = (),
) -> dict[str, Any]:
    """The configuration of the bootstrap scheduler.

    What schedulers have in common and the SchedulerProfiles among the manifests, with the template
    over it, with each override over that, merged as `spec.unsupportedConfigOverrides` is.

    Raises:
        BootstrapError: a document is of another kind, a SchedulerProfile cannot run, kube-scheduler
            would refuse the outcome, or it would elect somewhere else than its successors.
    """
    common = default_config(platform)
    config = merge_by_meaning([_with_profiles(profile_fragment(""), manifests), common])
    for file in (_render(template, platform, pod), *overrides):
        for document in file.documents:
            try:
                config = merge_by_meaning([config, document])
            except TypeMetaError as error:
                raise BootstrapError(f"{file.name}: {error}") from error
    config = without_nulls(config)
    problems = [
        f"{format_path(('config', *problem.path))}: {problem.message}"
        for problem in check_config(config, Target(Gates(_SOME_VERSION), stock=False))
    ]
    problems = problems or list(_other_lease(config, common))
    if problems:
        raise BootstrapError("\n".join(problems))
    return tidy(config)


def _with_profiles(base: dict[str, Any], manifests: Sequence[File]) -> dict[str, Any]:
    """The base with the SchedulerProfiles of the control plane; pods name them from the start."""
    objects = {
        str((document.get("metadata") or {}).get("name") or ""): document
        for file in manifests
        for document in file.documents
        if _key(document)[:2] == (SCHEDULER_PROFILES.group, SCHEDULER_PROFILES.kind)
    }
    first = first_profile(base)
    target = Target(Gates(_SOME_VERSION), stock=False)
    profiles, verdicts = profiles_of(CONTROL_PLANE, objects.values(), first, target)
    problems = [finding.text for verdict in verdicts for finding in verdict.findings]
    if problems:
        raise BootstrapError("\n".join(problems))
    return {**base, "profiles": list(profiles)} if profiles != (first,) else base


def _other_lease(config: Mapping[str, Any], common: Mapping[str, Any]) -> Iterable[str]:
    election = config.get("leaderElection") or {}
    for key in _LEASE:
        found, wanted = election.get(key), common["leaderElection"][key]
        if found != wanted:
            yield (
                f"config.leaderElection.{key}: {found!r} would make two schedulers active, for "
                f"those that follow have {wanted!r}; leave it out"
            )


def bootstrap_manifests(
    platform: Platform, pod: Pod, templates: Iterable[Template], feature_set: str
) -> list[File]:
    """The manifests of templates, without those that are for other feature sets.

    Raises:
        BootstrapError: a template cannot be rendered.
    """
    files = []
    for template in templates:
        rendered = _render(template, platform, pod)
        documents = tuple(one for one in rendered.documents if _is_for(one, feature_set))
        if documents:
            files.append(File(rendered.name, documents))
    return files


def _is_for(document: Mapping[str, Any], feature_set: str) -> bool:
    annotations = (document.get("metadata") or {}).get("annotations") or {}
    listed = annotations.get(FEATURE_SET_ANNOTATION)
    return listed is None or feature_set in (name.strip() for name in str(listed).split(","))


def _render(template: Template, platform: Platform, pod: Pod) -> File:
    try:
        documents = render_documents(template.text, **pod.values(platform))
        return File(template.name, tuple(documents))
    except jinja2.TemplateSyntaxError as error:
        raise BootstrapError(
            f"{template.name}, line {error.lineno}: {error.message}; templates are jinja2's, "
            "values are written as {{ image | tojson }}"
        ) from error
    except jinja2.TemplateError as error:
        known = ", ".join(sorted(pod.values(platform)))
        raise BootstrapError(f"{template.name}: {error.message}; there are {known}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise BootstrapError(f"{template.name} does not render to YAML objects: {error}") from error


def feature_set_of(manifests: Iterable[File]) -> str:
    """`spec.featureSet` of the FeatureGate `cluster` among manifests; `Default` without one."""
    for file in manifests:
        for document in file.documents:
            if _key(document) == ("config.openshift.io", "FeatureGate", "", "cluster"):
                return str((document.get("spec") or {}).get("featureSet") or DEFAULT_FEATURE_SET)
    return DEFAULT_FEATURE_SET


def contradictions(manifests: Iterable[File]) -> list[str]:
    """Objects that several files define, and not in the same way."""
    first: dict[tuple[str, str, str, str], tuple[str, Mapping[str, Any]]] = {}
    found = []
    for file in manifests:
        for document in file.documents:
            key = _key(document)
            where, known = first.setdefault(key, (file.name, document))
            if known != document and key[-1]:
                _, kind, namespace, name = key
                place = f" in {namespace}" if namespace else ""
                found.append(
                    f"{file.name} and {where} define {kind} {name}{place} differently; "
                    "keep one of them"
                )
    return found


def _key(document: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """(group, kind, namespace, name); no name for what the API is to name."""
    group, slash, _ = str(document.get("apiVersion") or "").rpartition("/")
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    return (
        group if slash else "",
        str(document.get("kind") or ""),
        str(metadata.get("namespace") or ""),
        str(metadata.get("name") or ""),
    )
