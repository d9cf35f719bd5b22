"""Pods, static Pods and workloads that run a kube-scheduler.

Source: Kubernetes 1.35, core/v1 and apps/v1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ....base.decoding import INVALID_VALUE
from ....base.findings import ERROR, WARNING, Path, Problem, Severity, listing
from ....base.images import repository
from ....base.objects import entries, mapping
from ....base.source.reader import Document
from ...language.command_line import BIND_ADDRESS, DEFAULT_PORT, flag_text
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
    Variables,
    config_problems,
    first_command,
    is_command,
    split,
    type_problems,
    variables_of,
    with_unknown_values,
    word_problems,
)
from .form import KUBE_SCHEDULER, CommandLine, CommandLineFlag, Contents, Mount
from .volcano import PROGRAM as VC_SCHEDULER
from .volcano import is_volcano_image

_PROGRAM: Final = re.compile(
    r"(^|/)(kube-scheduler|koord-scheduler|scheduler-plugins|vc-scheduler)$"
)
_IMAGES: Final = re.compile(
    r"(^|/)(kube-scheduler|koord-scheduler|vc-scheduler|crane-scheduler)$|scheduler-plugins"
)
"""crane-scheduler starts as `/scheduler`."""
_STOCK: Final = ("kube-scheduler", "hardened-kubernetes", "hyperkube")
"""Images with Kubernetes' own program; RKE2 and RKE1 start all of Kubernetes from one image."""
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
_CONFIG: Final = "--config"
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


@dataclass(frozen=True, slots=True)
class SchedulerContainer:
    """A container that runs a scheduler."""

    value: Mapping[str, Any]
    path: Path  # of the container in the document
    words: Sequence[tuple[str, Path]]  # of the scheduler's command line, from its name on
    variables: Variables
    in_shell: bool  # whether a shell starts it

    @property
    def image(self) -> str:
        return text(self.value.get("image"))

    @property
    def program(self) -> str:
        """The first word of the command line, or the program of its image."""
        named = self.words[0][0].rpartition("/")[2]
        volcanos = not _PROGRAM.search(named) and is_volcano_image(self.image)
        return VC_SCHEDULER if named == VC_SCHEDULER or volcanos else KUBE_SCHEDULER

    @property
    def flags(self) -> tuple[CommandLineFlag, ...]:
        """Its flags, of which some values may be unknown."""
        booleans = BOOLEANS if self.program == KUBE_SCHEDULER else _VOLCANOS_BOOLEANS
        return with_unknown_values(self.words, self.variables.is_unresolved, booleans)

    def problems(self) -> Iterator[Problem]:
        """Report problems of its words and probes.

        Of several rejected words in one text, only the first one is reported. Other schedulers
        ignore words that are not their flags.
        """
        if self.program != KUBE_SCHEDULER:
            return
        words, variables = self.words, self.variables
        if self.in_shell:
            words = [(word, at) for word, at in words if not _EXPANDED.search(word)]
        flags = with_unknown_values(words, variables.is_unresolved)
        unknown = {at for word, at in words if variables.is_unknown(word)}
        rejected = {problem.path: problem for problem in _undefined_variables(flags, variables)}
        for problem in word_problems(words):
            if problem.path not in unknown:
                rejected.setdefault(problem.path, problem)
        types = type_problems(self.value, self.path)
        yield from (problem for problem in types if problem.path not in rejected)
        yield from rejected.values()
        yield from config_problems(flags)
        if _STARTS_GO_RUNNER.match(self.image) and not self.value.get("command"):
            yield from _command_problems(words, (*self.path, "args"))
        if is_stock(self.image):
            yield from probe_problems(self.value, self.path, flags, version_of_image(self.image))


def scheduler_container(container: Mapping[str, Any], path: Path) -> SchedulerContainer | None:
    """Read a container of a Pod; None if it runs another program."""
    variables = variables_of(container)
    listed = _listed_words(container, path, variables)
    in_shell = bool(listed) and listed[0][0].rpartition("/")[2] in ("sh", "bash", "ash")
    words = list(_words_of_shell(listed)) if in_shell else listed
    start = next(
        (at for at, (word, _) in enumerate(words) if _PROGRAM.search(word) or is_command(word)),
        None,
    )
    debugged = _debugged(words)
    if start is not None:
        words = debugged or (first_command(words[start:]) if in_shell else words[start:])
    else:
        image = repository(text(container.get("image")))
        named = {word.lstrip("-").partition("=")[0] for word, _ in words if word.startswith("-")}
        if not (_IMAGES.search(image) or named.intersection(_OWN_FLAGS)):
            return None
        words = debugged or words or [("kube-scheduler", path)]
    return SchedulerContainer(container, path, words, variables, in_shell)


def _debugged(words: Sequence[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """Return the command line of a scheduler that Delve starts: `dlv exec PROGRAM … -- FLAGS`."""
    plain = [word.strip() for word, _ in words]
    if not plain or plain[0].rpartition("/")[2] != "dlv":
        return []
    end = plain.index("--") if "--" in plain else len(plain)
    return [(KUBE_SCHEDULER, words[0][1]), *words[end + 1 :]]


def read(document: Document) -> Contents | None:
    value = value_of(document)
    group, kind = group_kind(value)
    path = _TEMPLATES.get(kind)
    if path is None or group not in _GROUPS:
        return None
    spec = at(value, *path, "spec")
    commands: list[CommandLine] = []
    candidates: list[CommandLine] = []
    problems: list[Problem] = []
    for index, entry in objects(at(spec, "containers")):
        where = (*path, "spec", "containers", index)
        container = scheduler_container(entry, where)
        if container is not None:
            commands.append(_command(container, value, spec))
            problems += container.problems()
            problems += _without_volume(container, value, spec)
        elif (container := _configured_container(entry, where)) is not None:
            candidates.append(_command(container, value, spec))
    return Contents(
        commands=tuple(commands), candidates=tuple(candidates), problems=tuple(problems)
    )


def _configured_container(container: Mapping[str, Any], path: Path) -> SchedulerContainer | None:
    """Read a container of an unknown program with --config, which may be a kube-scheduler's."""
    variables = variables_of(container)
    words = _listed_words(container, path, variables)
    if not any(word.partition("=")[0] == _CONFIG for word, _ in words):
        return None
    return SchedulerContainer(container, path, words, variables, in_shell=False)


def _without_volume(
    container: SchedulerContainer, value: Mapping[str, Any], spec: Any
) -> Iterator[Problem]:
    """Report mounts whose volume the Pod does not have."""
    named = [text(volume.get("name")) for _, volume in objects(at(spec, "volumes"))]
    claims = objects(at(value, "spec", "volumeClaimTemplates"))
    named += [text(at(claim, "metadata", "name")) for _, claim in claims]
    for index, mount in objects(container.value.get("volumeMounts")):
        name = text(mount.get("name"))
        if name and name not in named:
            message = f'the Pod has no volume "{name}": the API server and the kubelet reject it'
            fix = f"add it to volumes, or use {listing(named)}" if named else "add it to volumes"
            path = (*container.path, "volumeMounts", index, "name")
            yield Problem(INVALID_VALUE, path, message, fix)


def _command(container: SchedulerContainer, value: Mapping[str, Any], spec: Any) -> CommandLine:
    volumes = volumes_of(spec)
    mounts = container_mounts(container.value, volumes, container.path)
    return CommandLine(
        label=label_of(value),
        arguments=container.flags,
        at=container.words[0][1],
        mounts=(*mounts, *_unmounted(container.value, volumes)),
        image=container.image,
        image_at=(*container.path, "image"),
        version=stock_version(container.image),
        namespace=namespace_of(value),
        account=_account(value, spec),
        replicas=count(at(value, "spec", "replicas")),
        program=container.program,
    )


def _account(value: Mapping[str, Any], spec: Any) -> str:
    """Return the ServiceAccount; a Pod on the host network without one counts as a static Pod."""
    named = text(at(spec, "serviceAccountName")) or text(at(spec, "serviceAccount"))
    if named:
        return named
    mirrored = str(at(value, "metadata", "annotations", MIRROR) or "")
    static = at(spec, "hostNetwork") is True or mirrored in ("file", "http")
    return "" if value.get("kind") == "Pod" and static else "default"


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


def _listed_words(
    container: Mapping[str, Any], path: Path, variables: Variables
) -> list[tuple[str, Path]]:
    """Return the words of `command` and `args`; a string, which should be a list, is split.

    Variables are replaced by their values. Numbers and booleans count as what they look like;
    `type_problems` reports them.
    """
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


def _words_of_shell(words: Sequence[tuple[str, Path]]) -> Iterator[tuple[str, Path]]:
    """Yield the words, and those in the text that a shell runs (`sh -c TEXT`)."""
    for index, (word, path) in enumerate(words):
        if index and words[index - 1][0] in ("-c", "-ec", "-xc") and "scheduler" in word:
            yield from ((part, path) for part in split(word))
        else:
            yield word, path


def volumes_of(spec: Any) -> dict[str, Mapping[str, Any]]:
    """Return the volumes of a Pod by name."""
    return {text(volume.get("name")): volume for _, volume in objects(at(spec, "volumes"))}


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
    """Report whether an image has Kubernetes' own kube-scheduler, of any registry."""
    name = repository(image)
    return name.rpartition("/")[2] in _STOCK and "scheduler-plugins" not in name


# --- probes --------------------------------------------------------------------------------------
# Since 1.23 kube-scheduler has no insecure port: it serves /healthz with HTTPS only, at
# --secure-port of --bind-address.

PROBE_FAILS: Final = "ProbeFails"

_WITHOUT_HTTP: Final = Version(1, 23)
_CONSEQUENCES: Final[Mapping[str, str]] = {
    "startupProbe": "the kubelet restarts the container again and again",
    "livenessProbe": "the kubelet restarts the container again and again",
    "readinessProbe": "the Pod never becomes ready",
}
_LOOPBACK: Final = ("127.0.0.1", "::1", "localhost")


def probe_problems(
    container: Mapping[str, Any],
    path: Path,
    flags: Sequence[CommandLineFlag],
    version: Version | None,
) -> Iterator[Problem]:
    """Warn about probes of a container of Kubernetes' own kube-scheduler."""
    if version is not None and version < _WITHOUT_HTTP:
        return
    last = {flag.name: flag.value for flag in flags}
    port = last.get("secure-port", str(DEFAULT_PORT))
    address = last.get(BIND_ADDRESS, "")
    named = {
        text(port.get("name")): port.get("containerPort")
        for _, port in objects(container.get("ports"))
    }
    for key, consequence in _CONSEQUENCES.items():
        request = mapping(mapping(container.get(key)).get("httpGet"))
        if not request:
            continue
        where = (*path, key, "httpGet")
        probed = request.get("port")
        probed = named.get(probed) if probed in named else probed
        scheme = text(request.get("scheme")) or "HTTP"
        if not isinstance(probed, int) or "$(" in port:
            continue
        if str(probed) != port or scheme != "HTTPS":
            message = f"kube-scheduler serves only HTTPS, on port {port}, not {scheme} on {probed}"
            fix = f"set port: {port} and scheme: HTTPS"
            field = "scheme" if str(probed) == port and "scheme" in request else "port"
            yield Problem(PROBE_FAILS, (*where, field), f"{message}: {consequence}", fix, WARNING)
        elif address in _LOOPBACK and text(request.get("host")) not in _LOOPBACK:
            message = (
                f"kube-scheduler listens only on {address} (--bind-address), and the probe has no "
                f"host, so it goes to the address of the Pod: {consequence}"
            )
            fix = "in a Pod with hostNetwork, set host: 127.0.0.1; else remove --bind-address"
            yield Problem(PROBE_FAILS, where, message, fix, WARNING)
