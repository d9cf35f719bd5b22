"""What users may set for the Pods of a SecondaryScheduler beyond its configuration.

Its Pods have the rights of a scheduler, so they only run a kube-scheduler that an administrator
allowed. Containers and volumes that users add meet Pod Security "restricted"
(kubernetes/pod-security-admission, policy/), even in a namespace that enforces less. They also use
no Secrets, no claims and none of the operator's volumes: the Pod runs a scheduler, whose token and
account are not theirs. Tests compare `restricted` with the API server's implementation.

An image is allowed with its programs: the operator's own image, which has an interpreter, runs the
extender only, and no sidecar has commands or variables that make another program of an image.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from ....base import names
from ....base.environment import chooses_code, is_of_the_process
from ....base.findings import ERROR, NOT_ALLOWED, Finding, Path, Problem, format_path, listing
from ....base.images import AllowedImages, is_own_image
from ....base.objects import entries, mapping
from ..extenders.agent import CONFINEMENT
from ..facts import Permissions
from .request import SchedulerRequest

OWN_VOLUMES: Final = frozenset({"api-access", "config", "preflight"})
"""The volumes of the scheduler: its token, its configuration, and the file of the preflight."""
VOLUMES: Final = ("configMap", "downwardAPI", "emptyDir", "projected")
"""Without `ephemeral`: it makes a claim, which can name a volume of others, or clone a claim."""
_PROJECTED: Final = ("configMap", "downwardAPI")
_SELINUX: Final = ("", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
_SECCOMP: Final = ("RuntimeDefault", "Localhost")
_APPARMOR: Final = ("RuntimeDefault", "Localhost")
_WORD: Final = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./-]*")
EXTENDER: Final = "extender"
"""The program of the operator's own image that a sidecar may run."""
_BIN: Final = "/usr/local/bin/"
_EXTENDER_FLAGS: Final = ("--config", "--policy", "--port", "--logging-format")
_EXTENDER_FLAG: Final = re.compile(rf"--no-watch|({'|'.join(_EXTENDER_FLAGS)})=[^$]*")
"""Complete names, because the program takes abbreviations, and no variables of the container."""
_DATA: Final = ("/config", "/data", "/etc/kube-scheduler-operator", "/tls", "/tmp")  # noqa: S108
_TERMINATION_LOG: Final = "/dev/termination-log"
_AS_AGENT: Final = "or make it the agent of a SchedulerExtender"
_ELSEWHERE: Final = "run this extender as a workload of its own and name its URL in extenders"


def refused_settings(
    request: SchedulerRequest, operand: str, permissions: Permissions
) -> Iterator[Finding]:
    """Yield an error for each setting that is not permitted.

    The repository of `operand`, the control plane's image, is always allowed.
    """
    images = permissions.images.with_repositories_of(operand)
    problems: list[Problem] = []
    if request.image and is_own_image(request.image, permissions.own_image):
        message = "the operator's own image has no kube-scheduler; name another one"
        problems.append(Problem(NOT_ALLOWED, ("image",), message))
    elif request.image:
        problems += images.problems(("image",), request.image)
    for index, word in enumerate(request.command):
        if not _WORD.fullmatch(word):
            message = (
                f'"{word}" is not the path or name of a program; write flags into '
                "spec.extraArguments"
            )
            problems.append(Problem(NOT_ALLOWED, ("command", index), message))
    problems += confinement_problems(
        request.sidecars, request.volumes, permissions.agent_images, permissions.own_image
    )
    for problem in problems:
        path = format_path(("spec", *problem.path))
        blocking = problem.severity == ERROR
        condition = names.DEGRADED if blocking else names.WARNINGS
        yield Finding(condition, problem.reason, path, problem.sentence, blocking=blocking)


def confined(container: Mapping[str, Any]) -> dict[str, Any]:
    """Return the security context of a sidecar: the scheduler's, with its own settings."""
    own = mapping(container.get("securityContext"))
    return {**CONFINEMENT, **{key: value for key, value in own.items() if value is not None}}


def confinement_problems(
    sidecars: Sequence[Mapping[str, Any]],
    volumes: Sequence[Mapping[str, Any]],
    images: AllowedImages,
    own_image: str = "",
) -> Iterator[Problem]:
    """Report settings of sidecars and their volumes that are not allowed; paths are in the spec.

    `own_image` is the operator's, which has an interpreter and programs for other Pods.
    """
    for index, volume in enumerate(volumes):
        if str(volume.get("name")) in OWN_VOLUMES:
            message = "the operator has a volume of this name; use another one"
            yield Problem(NOT_ALLOWED, ("volumes", index, "name"), message)
        yield from _volume(volume, ("volumes", index))
    known = {str(volume.get("name")) for volume in volumes} - OWN_VOLUMES
    for index, sidecar in enumerate(sidecars):
        path: Path = ("sidecars", index)
        image = str(sidecar.get("image") or "")
        yield from images.problems((*path, "image"), image)
        yield from _container(sidecar, path, known)
        if is_own_image(image, own_image):
            yield from _own_program(sidecar, path)
            yield from _own_environment(sidecar, path)
            yield from _own_mounts(sidecar, path)


def _container(container: Mapping[str, Any], path: Path, volumes: set[str]) -> Iterator[Problem]:
    yield from _security_context(container, (*path, "securityContext"))
    yield from _mounts(container, path, volumes)
    yield from _host_ports(container, path)
    yield from _secrets(container, path)
    yield from _variables(container, path)
    yield from _handlers(container, path)


def _variables(container: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Report variables that make a program run other code than its own."""
    message = "it chooses the code of a program; remove it"
    for key, field in (("env", "name"), ("envFrom", "prefix")):
        for index, entry in enumerate(map(mapping, entries(container.get(key)))):
            name = str(entry.get(field) or "")
            if chooses_code(name):
                yield Problem(NOT_ALLOWED, (*path, key, index, field), f'"{name}": {message}')


def _own_program(container: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Report what the operator's own image would run beside an extender that reads a file.

    Without --no-watch it would read a kubeconfig, which can name any program.
    """
    command, arguments = (tuple(_strings(container.get(key))) for key in ("command", "args"))
    words = (*command, *arguments)
    if command and command[0].removeprefix(_BIN) == names.PROGRAM:
        words = words[1:]
    elif command:
        words = ()
    program, flags = words[:1], words[1:]
    known = all(map(_EXTENDER_FLAG.fullmatch, flags)) and "--no-watch" in flags
    if program != (EXTENDER,) or not known:
        message = (
            f'this image runs "{names.PROGRAM} {EXTENDER} --no-watch" here, with '
            f"{listing(_EXTENDER_FLAGS)} written as --FLAG=VALUE, and nothing else"
        )
        where = "command" if command and not arguments else "args"
        yield Problem(NOT_ALLOWED, (*path, where), message, _AS_AGENT)


def _own_environment(container: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    for index, entry in enumerate(map(mapping, entries(container.get("env")))):
        if is_of_the_process(str(entry.get("name") or "")):
            message = "it is a setting of the process, not of a policy; remove it"
            yield Problem(NOT_ALLOWED, (*path, "env", index, "name"), message)
    if container.get("envFrom"):
        message = "names in a ConfigMap can be settings of the process; list variables in env"
        yield Problem(NOT_ALLOWED, (*path, "envFrom"), message)


def _own_mounts(container: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Report mounts where the image has, or the interpreter looks for, code."""
    for index, mount in enumerate(map(mapping, entries(container.get("volumeMounts")))):
        at = posixpath.normpath(str(mount.get("mountPath") or "/"))
        if not any(f"{at}/".startswith(f"{place}/") for place in _DATA):
            message = f"a volume here could replace the program; use a path below {listing(_DATA)}"
            yield Problem(NOT_ALLOWED, (*path, "volumeMounts", index, "mountPath"), message)
    if container.get("terminationMessagePath") not in (None, "", _TERMINATION_LOG):
        message = f"the kubelet mounts a file here; remove it, which means {_TERMINATION_LOG}"
        yield Problem(NOT_ALLOWED, (*path, "terminationMessagePath"), message)


def _mounts(container: Mapping[str, Any], path: Path, volumes: set[str]) -> Iterator[Problem]:
    for index, mount in enumerate(map(mapping, entries(container.get("volumeMounts")))):
        name = str(mount.get("name"))
        if name not in volumes:
            message = f'volume "{name}" is not in spec.volumes; add it there'
            yield Problem(NOT_ALLOWED, (*path, "volumeMounts", index, "name"), message)
    if container.get("volumeDevices"):
        message = "a sidecar has no block devices; remove this"
        yield Problem(NOT_ALLOWED, (*path, "volumeDevices"), message)


def _host_ports(container: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    for index, port in enumerate(map(mapping, entries(container.get("ports")))):
        for key in ("hostPort", "hostIP"):
            if port.get(key):
                message = "a sidecar uses no port of its node; remove this"
                yield Problem(NOT_ALLOWED, (*path, "ports", index, key), message)


def _secrets(container: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    for index, variable in enumerate(map(mapping, entries(container.get("env")))):
        if mapping(variable.get("valueFrom")).get("secretKeyRef") is not None:
            yield _secret((*path, "env", index, "valueFrom", "secretKeyRef"))
    for index, source in enumerate(map(mapping, entries(container.get("envFrom")))):
        if source.get("secretRef") is not None:
            yield _secret((*path, "envFrom", index, "secretRef"))


def _security_context(container: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    context = confined(container)
    capabilities = mapping(context.get("capabilities"))
    seccomp = mapping(context.get("seccompProfile") or {"type": _SECCOMP[0]})
    apparmor = mapping(context.get("appArmorProfile") or {"type": _APPARMOR[0]})
    selinux = mapping(context.get("seLinuxOptions"))
    windows = mapping(context.get("windowsOptions"))
    rules: tuple[tuple[str, bool, str], ...] = (
        ("privileged", not context.get("privileged"), "must not be true"),
        ("runAsNonRoot", context.get("runAsNonRoot", True) is True, "must not be false"),
        ("runAsUser", context.get("runAsUser") != 0, "must not be 0"),
        (
            "allowPrivilegeEscalation",
            context.get("allowPrivilegeEscalation") is False,
            "must be false",
        ),
        ("procMount", context.get("procMount") in (None, "", "Default"), "must be Default"),
        (
            "seccompProfile",
            seccomp.get("type") in _SECCOMP,
            f"must have type {listing(_SECCOMP)}",
        ),
        (
            "appArmorProfile",
            apparmor.get("type") in _APPARMOR,
            f"must have type {listing(_APPARMOR)}",
        ),
        (
            "seLinuxOptions",
            str(selinux.get("type") or "") in _SELINUX
            and not (selinux.get("user") or selinux.get("role")),
            "must not set user, role or another type than container_t",
        ),
        ("windowsOptions", not windows.get("hostProcess"), "must not set hostProcess"),
        (
            "capabilities",
            "ALL" in _strings(capabilities.get("drop"))
            and set(_strings(capabilities.get("add"))) <= {"NET_BIND_SERVICE"},
            "must drop ALL and add nothing but NET_BIND_SERVICE",
        ),
    )
    for key, fine, what in rules:
        if not fine:
            message = f'{what}, because sidecars meet Pod Security "restricted"; remove it'
            yield Problem(NOT_ALLOWED, (*path, key), message)


def _handlers(container: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Report probes and hooks that run a command, or that the kubelet sends to another host."""
    lifecycle = mapping(container.get("lifecycle"))
    handlers = [
        *(((key,), container.get(key)) for key in _PROBES),
        *((("lifecycle", key), lifecycle.get(key)) for key in ("postStart", "preStop")),
    ]
    for where, handler in handlers:
        if mapping(handler).get("exec") is not None:
            message = "probes and hooks of a sidecar run no commands; use httpGet or tcpSocket"
            yield Problem(NOT_ALLOWED, (*path, *where, "exec"), message)
        for kind in ("httpGet", "tcpSocket"):
            if mapping(mapping(handler).get(kind)).get("host"):
                message = "the kubelet asks the Pod only; remove this"
                yield Problem(NOT_ALLOWED, (*path, *where, kind, "host"), message)


_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")


def _volume(volume: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    sources = [key for key, value in volume.items() if key != "name" and value is not None]
    for source in sources:
        if source not in VOLUMES:
            message = f"volumes of this type are not allowed; use {listing(VOLUMES)}"
            yield Problem(NOT_ALLOWED, (*path, source), message, _ELSEWHERE)
    projected = entries(mapping(volume.get("projected")).get("sources"))
    for index, part in enumerate(map(mapping, projected)):
        for key, value in part.items():
            if key not in _PROJECTED and value is not None:
                message = f"this source is not allowed; use {listing(_PROJECTED)}"
                where = (*path, "projected", "sources", index, key)
                yield Problem(NOT_ALLOWED, where, message, _ELSEWHERE)


def _secret(path: Path) -> Problem:
    return Problem(NOT_ALLOWED, path, "sidecars use no Secrets", _ELSEWHERE)


def _strings(value: Any) -> Iterable[str]:
    return map(str, entries(value))
