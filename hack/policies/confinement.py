"""Rules for the Pods of SecondarySchedulers, as in config/effective/secondary/confinement.py.

Those for flags are in config/language/warnings/unsafe_flags.py.

Images are left to the operator, whose settings allow them, as are the programs of its own image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube_scheduler_operator.base.environment import CODE_NAMES, CODE_PREFIXES
from kube_scheduler_operator.config.effective.secondary.compose import RESERVED
from kube_scheduler_operator.config.effective.secondary.confinement import OWN_VOLUMES, VOLUMES
from kube_scheduler_operator.config.language.warnings.unsafe_flags import (
    ALWAYS_ALLOWED,
    KUBECONFIGS,
    MASTER,
    PUBLIC_PATHS,
    TRUSTING,
)

from .cel import at, each, get, let, lines, problem, text, when

_ELSEWHERE: Final = "run this extender as a workload of its own and name its URL in extenders"
_RESTRICTED: Final = 'because sidecars meet Pod Security "restricted"; remove it'
_PROFILES: Final = ["RuntimeDefault", "Localhost"]
_PROBES: Final = ("livenessProbe", "readinessProbe", "startupProbe")
_LOCAL: Final = r"^https://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]{1,5})?/?$"
_CONTROL: Final = r"[\x00-\x1f\x7f]"
_TRUE: Final = ("1", "t", "T", "true", "TRUE", "True")
_WORD: Final = "^[A-Za-z0-9_./][A-Za-z0-9_./-]*$"
_CODE: Final = f"(?i)^({'|'.join(CODE_PREFIXES)}|({'|'.join(sorted(CODE_NAMES))})$)"
_FLAG: Final = "^[A-Za-z0-9][A-Za-z0-9_-]*$"


def sidecars(spec: str, path: str) -> str:
    """Containers that users add."""
    where = at(path, "sidecars", "[i]")
    body = lines([
        let(get("e", "securityContext", "{}"), "s",
            _security_context(at(where, "securityContext"))),
        _list("volumeMounts", where, 'q.name in variables.volumeNames ? "" : ', "the volume is not "
              "in spec.volumes; add it there", ".name"),
        _list("ports", where, f'{get("q", "hostPort", "0")} == 0 ? "" : ',
              "a sidecar uses no port of its node; remove this", ".hostPort"),
        _list("env", where,
              f'{let(get("q", "valueFrom", "{}"), "r", _unset("r", "secretKeyRef"))} ? "" : ',
              f"sidecars use no Secrets; {_ELSEWHERE}", ".valueFrom.secretKeyRef"),
        _list("envFrom", where, f'{_unset("q", "secretRef")} ? "" : ',
              f"sidecars use no Secrets; {_ELSEWHERE}", ".secretRef"),
        *(
            _list(field, where,
                  f'!{get("q", key, text(""))}.matches({text(_CODE)}) ? "" : ',
                  "it chooses the code of a program; remove it", f".{key}")
            for field, key in (("env", "name"), ("envFrom", "prefix"))
        ),
        when(f'!({_unset("e", "volumeDevices")}) && e.volumeDevices.size() > 0',
             problem(at(where, "volumeDevices"), "a sidecar has no block devices; remove this")),
        *(
            let(get("e", probe, "{}"), "r", _handler("r", at(where, probe)))
            for probe in _PROBES
        ),
        let(get("e", "lifecycle", "{}"), "q", lines(
            let(get("q", hook, "{}"), "r", _handler("r", at(where, "lifecycle", hook)))
            for hook in ("postStart", "preStop")
        )),
    ])  # fmt: skip
    return let(get(spec, "sidecars", "[]"), "l", each("l", body, "i", "e"))


def volumes(spec: str, path: str) -> str:
    """Volumes that users add."""
    where = at(path, "volumes", "[i]")
    kinds = problem(
        f'{where} + "." + k',
        f"volumes of this type are not allowed; use {', '.join(VOLUMES)}; {_ELSEWHERE}",
    )
    source = problem(
        f'{where} + ".projected.sources[" + string(j) + "]." + k',
        f"this source is not allowed; use configMap or downwardAPI; {_ELSEWHERE}",
    )
    inside = f'q.map(k, !(k in ["configMap", "downwardAPI"]) && q[k] != null, {source}).join("\\n")'
    body = lines([
        when(f"e.name in {text(sorted(OWN_VOLUMES))}",
             problem(at(where, "name"), "the operator has a volume of this name; use another one")),
        f'e.map(k, !(k in {text(["name", *VOLUMES])}) && e[k] != null, {kinds}).join("\\n")',
        let(get("e", "projected", "{}"), "r",
            let(get("r", "sources", "[]"), "m", each("m", inside, "j", "q"))),
    ])  # fmt: skip
    return let(get(spec, "volumes", "[]"), "l", each("l", body, "i", "e"))


def command(spec: str, path: str) -> str:
    """How the image is started."""
    where = at(path, "command", "[i]")
    message = "is not the path or name of a program; write flags into spec.extraArguments"
    body = when(f"!e.matches({text(_WORD)})", problem(where, message))
    return let(get(spec, "command", "[]"), "l", each("l", body, "i", "e"))


def extra_arguments(spec: str, path: str) -> str:
    """Flags of a SecondaryScheduler."""
    return let(get(spec, "extraArguments", "{}"), "a", _flags(at(path, "extraArguments"), RESERVED))


def unsafe(path: str, kubeconfigs: Sequence[str]) -> str:
    """Unsafe flags among the overrides of a KubeScheduler; `a` are its arguments."""
    where = f'{path} + "." + f'
    normal = 'f.replace("_", "-")'
    allowed = " or ".join(kubeconfigs)
    file = problem(where, f"this must stay {allowed}: the Pod has no other; remove it")
    other = f"a[f] != null && !(a[f] in {text(kubeconfigs)})"
    changed = f"{normal} in {text(list(KUBECONFIGS))} && {other}"
    return lines([_unsafe(where, normal), f'a.map(f, {changed}, {file}).join("\\n")'])


def _flags(path: str, reserved: dict[str, str] | object) -> str:
    where = f'{path} + "." + f'
    normal = 'f.replace("_", "-")'
    because = f'" : this flag cannot be set here: " + {text(reserved)}[{normal}]'
    return lines([
        f'a.map(f, !f.matches({text(_FLAG)}), '
        f'{problem(where, "is not a flag name; write it without dashes and value")}).join("\\n")',
        f'a.map(f, {normal} in {text(reserved)}, {where} + {because}).join("\\n")',
        _unsafe(where, normal),
    ])  # fmt: skip


def _unsafe(where: str, normal: str) -> str:
    """Flags that choose whom a scheduler trusts, and values with control characters."""
    skip = "authentication-skip-lookup"
    trusting = {name: why for name, why in TRUSTING.items() if name != skip}
    because = f'": this flag cannot be set here: " + {text(trusting)}[{normal}] + "; remove it"'
    is_text = "type(a[f]) == string"
    rows = (
        (
            f"{normal} == {text(skip)} && (type(a[f]) == bool && a[f] || "
            f"{is_text} && a[f] in {text(list(_TRUE))})",
            f"this flag cannot be set here: {TRUSTING[skip]}; remove it",
        ),
        (
            f"{normal} == {text(MASTER)} && {is_text} && !a[f].matches({text(_LOCAL)})",
            "the scheduler would send its credentials to this address; remove it",
        ),
        (
            f"{normal} == {text(ALWAYS_ALLOWED)} && {is_text} && "
            f'!a[f].split(",").all(p, p in {text(["", *PUBLIC_PATHS])})',
            f"a path would be served without authorization; use {', '.join(PUBLIC_PATHS)}",
        ),
        (
            f"{is_text} && a[f].matches({text(_CONTROL)})",
            "the value has a line break or control character; remove it",
        ),
    )
    return lines([
        f'a.map(f, a[f] != null && {normal} in {text(trusting)}, {where} + {because}).join("\\n")',
        *(
            f'a.map(f, {wrong}, {problem(where, message)}).join("\\n")'
            for wrong, message in rows
        ),
    ])  # fmt: skip


def _security_context(path: str) -> str:
    """The rules for the security context `s`."""
    capabilities = (
        f'(!("ALL" in {get("r", "drop", "[]")}) || '
        f'!{get("r", "add", "[]")}.all(k, k == "NET_BIND_SERVICE"))'
    )
    rules = (
        ("privileged", f'{get("s", "privileged", "false")} == true', "must not be true"),
        ("runAsNonRoot", f'{get("s", "runAsNonRoot", "true")} == false', "must not be false"),
        ("runAsUser", f'{get("s", "runAsUser", "1")} == 0', "must not be 0"),
        (
            "allowPrivilegeEscalation",
            f'{get("s", "allowPrivilegeEscalation", "false")} == true',
            "must be false",
        ),
        (
            "procMount",
            f'!({get("s", "procMount", text(""))} in ["", "Default"])',
            "must be Default",
        ),
        *(
            (
                name,
                let(
                    get("s", name, "{}"),
                    "r",
                    f'!({get("r", "type", text("RuntimeDefault"))} in {text(_PROFILES)})',
                ),
                "must have type RuntimeDefault or Localhost",
            )
            for name in ("seccompProfile", "appArmorProfile")
        ),
        (
            "seLinuxOptions",
            let(
                get("s", "seLinuxOptions", "{}"),
                "r",
                f'{get("r", "user", text(""))} != "" || {get("r", "role", text(""))} != "" || '
                f'!{get("r", "type", text(""))}.matches("^(container_(|init_|kvm_|engine_)t)?$")',
            ),
            "must not set user, role or another type than container_t",
        ),
        (
            "windowsOptions",
            let(
                get("s", "windowsOptions", "{}"), "r", f'{get("r", "hostProcess", "false")} == true'
            ),
            "must not set hostProcess",
        ),
        (
            "capabilities",
            f'"capabilities" in s && s.capabilities != null && '
            f'{let("s.capabilities", "r", capabilities)}',
            "must drop ALL and add nothing but NET_BIND_SERVICE",
        ),
    )  # fmt: skip
    return lines(
        when(wrong, problem(at(path, key), f"{what}, {_RESTRICTED}")) for key, wrong, what in rules
    )


def _list(field: str, where: str, condition: str, message: str, rest: str) -> str:
    """The line for each entry `q` of a list of the container `e`; the condition ends with `:`."""
    place = f'{where} + ".{field}[" + string(j) + "]{rest}"'
    body = f"({condition}{problem(place, message)})"
    return let(get("e", field, "[]"), "m", each("m", body, "j", "q"))


def _unset(owner: str, key: str) -> str:
    return f"!({text(key)} in {owner} && {owner}[{text(key)}] != null)"


def _handler(owner: str, path: str) -> str:
    commands = "probes and hooks of a sidecar run no commands; use httpGet or tcpSocket"
    return lines([
        when(f'!({_unset(owner, "exec")})', problem(at(path, "exec"), commands)),
        *(
            when(
                let(get(owner, kind, "{}"), "h", f'{get("h", "host", text(""))} != ""'),
                problem(at(path, kind, "host"), "the kubelet asks the Pod only; remove this"),
            )
            for kind in ("httpGet", "tcpSocket")
        ),
    ])  # fmt: skip
