"""Pods, static Pods and workloads that run a kube-scheduler.

Source: Kubernetes 1.35, core/v1 and apps/v1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ....base.decoding import INVALID_VALUE
from ....base.findings import ERROR, WARNING, Path, Problem, Severity, listing
from ....base.objects import entries
from ....base.source.reader import Document
from ...language.command_line import flag_text
from ...language.flags import BOOLEANS, INVALID_ARGUMENT, has_type
from ...language.versions import Version
from .document_fields import (
    at,
    count,
    group_kind,
    label_of,
    namespace_of,
    objects,
    text,
    value_of,
    version_of_image,
)
from .flags import (
    config_problems,
    first_command,
    is_command,
    split,
    type_problems,
    with_unknown_values,
    word_problems,
)
from .form import KUBE_SCHEDULER, CommandLine, CommandLineFlag, Contents, Mount
from .probes import probe_problems
from .variables import Variables, variables_of
from .volcano import PROGRAM as VC_SCHEDULER
from .volcano import is_volcano_image

_PROGRAM: Final = re.compile(
    r"(^|/)(kube-scheduler|koord-scheduler|scheduler-plugins|vc-scheduler)$"
)
_IMAGES: Final = re.compile(
    r"(^|/)(kube-scheduler|koord-scheduler|vc-scheduler)$|scheduler-plugins"
)
_VOLCANOS_BOOLEANS: Final = frozenset(
    {
        "alsologtostderr", "cache-dumper", "csi-storage", "disable-default-scheduler-config",
        "enable-healthz", "enable-metrics", "enable-pprof", "leader-elect", "logtostderr",
        "priority-class", "version",
    }
)  # fmt: skip
"""volcano-sh/volcano v1.15.1, cmd/scheduler/app/options/options.go, and klog's flags."""
_STARTS_GO_RUNNER: Final = re.compile(
    r"(registry\.k8s\.io|k8s\.gcr\.io|[^/]+/google[-_]containers)/kube-scheduler[:@]"
)
"""The images of Kubernetes and their mirrors. Source: build/server-image/Dockerfile of Kubernetes
1.36, which sets no entrypoint, and images/build/go-runner/Dockerfile of kubernetes/release."""
NO_COMMAND: Final = "NoCommand"
_OWN_FLAGS: Final = ("policy-config-file", "policy-configmap", "algorithm-provider")
"""Flags that only kube-scheduler has had."""
_EXPANDED: Final = re.compile(r"[$`*?]")
"""What a shell expands."""
_GROUPS: Final = ("", "apps", "batch", "extensions")
_TEMPLATES: Final[Mapping[str, Path]] = {
    "Pod": (),
    "PodTemplate": ("template",),
    **dict.fromkeys(
        ("ReplicationController", "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "Job"),
        ("spec", "template"),
    ),
}
"""Kind -> the path of its Pod."""
MIRROR: Final = "kubernetes.io/config.source"


def read(document: Document) -> Contents | None:
    value = value_of(document)
    group, kind = group_kind(value)
    path = _TEMPLATES.get(kind)
    if path is None or group not in _GROUPS:
        return None
    pod: Any = value
    for key in path:
        pod = at(pod, str(key))
    containers = [
        (container, (*path, "spec", "containers", index))
        for index, container in objects(at(pod, "spec", "containers"))
    ]
    return Contents(
        commands=tuple(_commands(value, pod, containers)),
        problems=tuple(
            problem
            for container, where in containers
            for problem in (
                *container_problems(container, where),
                *_without_volume(container, where, value, pod),
            )
        ),
    )


def _without_volume(
    container: Mapping[str, Any], path: Path, value: Mapping[str, Any], pod: Any
) -> Iterator[Problem]:
    """Report mounts of a kube-scheduler whose volume the Pod does not have."""
    if container_words(container, path) is None:
        return
    named = [text(volume.get("name")) for _, volume in objects(at(pod, "spec", "volumes"))]
    claims = objects(at(value, "spec", "volumeClaimTemplates"))
    named += [text(at(claim, "metadata", "name")) for _, claim in claims]
    for index, mount in objects(container.get("volumeMounts")):
        name = text(mount.get("name"))
        if name and name not in named:
            message = f'the Pod has no volume "{name}": the API server and the kubelet reject it'
            fix = f"add it to volumes, or use {listing(named)}" if named else "add it to volumes"
            yield Problem(INVALID_VALUE, (*path, "volumeMounts", index, "name"), message, fix)


def _commands(
    value: Mapping[str, Any], pod: Any, containers: Iterable[tuple[Mapping[str, Any], Path]]
) -> Iterator[CommandLine]:
    spec = at(pod, "spec")
    volumes = {text(volume.get("name")): volume for _, volume in objects(at(spec, "volumes"))}
    for container, where in containers:
        words = container_words(container, where)
        if words is None:
            continue
        image = text(container.get("image"))
        program = _program(words, image)
        yield CommandLine(
            label=label_of(value),
            arguments=container_flags(container, words, program),
            at=words[0][1] if words else where,
            mounts=(
                *container_mounts(container, volumes, where),
                *_unmounted(container, volumes),
            ),
            image=image,
            image_at=(*where, "image"),
            version=stock_version(image),
            namespace=namespace_of(value),
            account=_account(value, spec),
            replicas=count(at(value, "spec", "replicas")),
            program=program,
        )


def _program(words: Sequence[tuple[str, Path]], image: str) -> str:
    """Return the program of a command line: its first word, or that of its image."""
    named = words[0][0].rpartition("/")[2] if words else ""
    if named == VC_SCHEDULER or (not _PROGRAM.search(named) and is_volcano_image(image)):
        return VC_SCHEDULER
    return KUBE_SCHEDULER


def _account(value: Mapping[str, Any], spec: Any) -> str:
    """Return the ServiceAccount; a Pod on the host network without one counts as a static Pod."""
    named = text(at(spec, "serviceAccountName")) or text(at(spec, "serviceAccount"))
    if named:
        return named
    mirrored = str(at(value, "metadata", "annotations", MIRROR) or "")
    static = at(spec, "hostNetwork") is True or mirrored in ("file", "http")
    return "" if value.get("kind") == "Pod" and static else "default"


def container_words(container: Mapping[str, Any], path: Path) -> list[tuple[str, Path]] | None:
    """Return the words of a scheduler's command line, from its name on; None: another program."""
    words = list(_of_a_shell(_listed_words(container, path)))
    for index, (word, _) in enumerate(words):
        if _PROGRAM.search(word) or is_command(word):
            rest = words[index:]
            return first_command(rest) if _is_a_shell(_listed_words(container, path)) else rest
    image = text(container.get("image")).partition("@")[0]
    image = re.sub(r":[^:/]*$", "", image)
    named = {word.lstrip("-").partition("=")[0] for word, _ in words if word.startswith("-")}
    if _IMAGES.search(image) or named.intersection(_OWN_FLAGS):
        return words or [("kube-scheduler", path)]
    return None


def container_flags(
    container: Mapping[str, Any], words: Sequence[tuple[str, Path]], program: str = KUBE_SCHEDULER
) -> tuple[CommandLineFlag, ...]:
    """Return the flags in the words of a container, of which some values may be unknown."""
    booleans = BOOLEANS if program == KUBE_SCHEDULER else _VOLCANOS_BOOLEANS
    return with_unknown_values(words, variables_of(container).is_unresolved, booleans)


def container_problems(container: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Report problems of the words and the probes of a container with a kube-scheduler.

    Of several rejected words in one text, only the first one is reported. Other schedulers ignore
    words that are not their flags.
    """
    words, image = container_words(container, path), text(container.get("image"))
    if words is None or _program(words, image) != KUBE_SCHEDULER:
        return
    if _is_a_shell(_listed_words(container, path)):
        words = [(word, at) for word, at in words if not _EXPANDED.search(word)]
    variables = variables_of(container)
    flags = with_unknown_values(words, variables.is_unresolved)
    unknown = {at for word, at in words if variables.is_unknown(word)}
    rejected = {problem.path: problem for problem in _undefined_variables(flags, variables)}
    for problem in word_problems(words):
        if problem.path not in unknown:
            rejected.setdefault(problem.path, problem)
    yield from (
        problem for problem in type_problems(container, path) if problem.path not in rejected
    )
    yield from rejected.values()
    yield from config_problems(flags)
    if _STARTS_GO_RUNNER.match(image) and not container.get("command"):
        yield from _command_problems(words, (*path, "args"))
    if is_stock(image):
        yield from probe_problems(container, path, flags, version_of_image(image))


def _undefined_variables(
    flags: Iterable[CommandLineFlag], variables: Variables
) -> Iterator[Problem]:
    """Report flags with a variable that the container does not have."""
    for flag in flags:
        if name := variables.undefined(flag.value):
            message = (
                f"--{flag.name}: the container has no variable {name}, so kube-scheduler gets "
                f'"{flag.value}"'
            )
            fix = f"add {name} to env of the container, or write the value"
            severity: Severity = WARNING if has_type(flag.name, flag.value) else ERROR
            yield Problem(INVALID_ARGUMENT, flag.path, message, fix, severity)


def _command_problems(words: Sequence[tuple[str, Path]], args: Path) -> Iterator[Problem]:
    """Report a container without a command whose first argument is not the program's name."""
    if words and words[0][0].startswith("-"):
        message = (
            "the image starts /go-runner with these arguments, which rejects flags of "
            "kube-scheduler: the container does not start"
        )
        yield Problem(NO_COMMAND, args, message, "write command: [kube-scheduler] above args")


def _listed_words(container: Mapping[str, Any], path: Path) -> list[tuple[str, Path]]:
    """Return the words of `command` and `args`; a string, which should be a list, is split.

    Variables are replaced by their values. Numbers and booleans count as what they look like;
    `type_problems` reports them.
    """
    variables = variables_of(container)
    words: list[tuple[str, Path]] = []
    for key in ("command", "args"):
        listed, where = container.get(key), (*path, key)
        if isinstance(listed, str):
            words += ((word, where) for word in listed.split())
        for index, word in enumerate(entries(listed)):
            shown = flag_text(word)
            if shown is not None:
                words.append((variables.expanded(shown), (*where, index)))
    return words


def _is_a_shell(words: Sequence[tuple[str, Path]]) -> bool:
    return bool(words) and words[0][0].rpartition("/")[2] in ("sh", "bash", "ash")


def _of_a_shell(words: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, Path]]:
    """Yield the words, and those in the text that a shell runs (`sh -c TEXT`)."""
    shell = _is_a_shell(words)
    for index, (word, path) in enumerate(words):
        if shell and index and words[index - 1][0] in ("-c", "-ec", "-xc") and "scheduler" in word:
            yield from ((part, path) for part in split(word))
        else:
            yield word, path


def container_mounts(
    container: Mapping[str, Any], volumes: Mapping[str, Mapping[str, Any]], path: Path
) -> Iterator[Mount]:
    for index, mount in objects(container.get("volumeMounts")):
        where = (*path, "volumeMounts", index)
        target, sub = text(mount.get("mountPath")), text(mount.get("subPath"))
        volume = volumes.get(text(mount.get("name")), {})
        for kind, source, named, items in _sources(volume):
            keys = {text(item.get("path")): text(item.get("key")) for _, item in objects(items)}
            key = (keys.get(sub, "") if keys else sub) if sub else ""
            yield Mount(target, kind, text(source.get(named)), keys, key, where)
        host = text(at(volume, "hostPath", "path"))
        if host:
            yield Mount(target, "", f"{host}/{sub}" if sub else host, at=where)
        elif not any(True for _ in _sources(volume)):
            yield Mount(target, at=where)


def _unmounted(
    container: Mapping[str, Any], volumes: Mapping[str, Mapping[str, Any]]
) -> Iterator[Mount]:
    """Yield ConfigMaps and Secrets of volumes that a container does not mount, without a path."""
    mounted = {text(mount.get("name")) for _, mount in objects(container.get("volumeMounts"))}
    for name, volume in volumes.items():
        if name not in mounted:
            for kind, source, named, _ in _sources(volume):
                yield Mount("", kind, text(source.get(named)))


def _sources(volume: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str, Any]]:
    """Yield (kind, source, field of its name, items) of the ConfigMaps and Secrets of a volume."""
    projected = at(volume, "projected", "sources")
    for source in (volume, *(source for _, source in objects(projected))):
        config_map, secret = source.get("configMap"), source.get("secret")
        if isinstance(config_map, Mapping):
            yield "ConfigMap", config_map, "name", config_map.get("items")
        if isinstance(secret, Mapping):
            named = "secretName" if source is volume else "name"
            yield "Secret", secret, named, secret.get("items")


def with_image(command: CommandLine, image: str) -> CommandLine:
    """Replace the image of a workload's scheduler; those of other documents stay."""
    if image == command.image or not {"containers", "initContainers"} & set(command.image_at):
        return command
    return replace(command, image=image, version=stock_version(image), kustomized=True)


def stock_version(image: str) -> Version | None:
    """Return the version in the tag of Kubernetes' own image; None for any other image."""
    return version_of_image(image) if is_stock(image) else None


def is_stock(image: str) -> bool:
    """Report whether an image is Kubernetes' own kube-scheduler, of any registry."""
    name = re.sub(r":[^:/]*$", "", image.partition("@")[0])
    return name.rpartition("/")[2] == "kube-scheduler" and "scheduler-plugins" not in name
