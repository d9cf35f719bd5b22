"""`spec.unsupportedConfigOverrides`: the last layer of configuration and flags.

`arguments` are flags, `servingInfo` becomes flags, everything else is merged over the
configuration. Some settings cannot be overridden, because a scheduler that looks healthy would then
schedule nothing, or two would be active at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ....base import names
from ....base.findings import Finding, Path, format_path, listing
from ....base.go_values import boolean
from ....base.limits import FLAGS
from ....base.platform import Platform
from ....base.spec_limits import limit_problems
from ...language.command_line import FLAG_NAME, Flags, flag_text, normalized_name
from ...language.merging.merge import TypeMetaError, normalized_json, validate_type_meta
from ...language.schema import API_VERSION, KIND

ROOT: Final[Path] = ("spec", "unsupportedConfigOverrides")

ARGUMENTS: Final = "arguments"
SERVING_INFO: Final = "servingInfo"
SERVING_FLAGS: Final = {"cipherSuites": "tls-cipher-suites", "minTLSVersion": "tls-min-version"}
"""Field of servingInfo -> its flag."""
_SERVING_TYPES: Final = {
    "cipherSuites": "a list of names",
    "minTLSVersion": "a string such as VersionTLS12",
}


@dataclass(frozen=True, slots=True)
class Overrides:
    """The readable part of the overrides."""

    config: Mapping[str, Any] = field(default_factory=dict)  # merged over the configuration
    arguments: Flags = field(default_factory=dict)  # a flag without values is removed
    serving: Flags = field(default_factory=dict)  # the flags from `servingInfo`
    findings: tuple[Finding, ...] = ()  # errors, and the fact that overrides are set


def read_overrides(value: Any, platform: Platform) -> Overrides:
    if value is None or value == {}:
        return Overrides()
    if not isinstance(value, Mapping):
        return Overrides(
            findings=(_malformed((), "overrides must be an object; write YAML, not a string"),)
        )
    beyond = limit_problems(value)
    findings = [_malformed(p.path, p.message, reason=p.reason) for p in beyond]
    keys = list(value) if beyond else set_keys(value)
    if keys:
        message = f"setting: [{' '.join(keys)}]"
        findings.append(
            Finding(
                names.OVERRIDES_UPGRADEABLE,
                "UnsupportedConfigOverridesSet",
                format_path(ROOT),
                message,
                blocking=False,
            )
        )
    if beyond:
        return Overrides(findings=tuple(findings))
    config = normalized_json(
        {key: item for key, item in value.items() if key not in (ARGUMENTS, SERVING_INFO)}
    )
    try:
        validate_type_meta({"apiVersion": API_VERSION, "kind": KIND}, config)
    except TypeMetaError:
        path = ("kind",) if config.get("apiVersion") in (None, "", API_VERSION) else ("apiVersion",)
        findings.append(
            _malformed(
                path,
                f"overrides are for {API_VERSION} {KIND}; write that or leave both out",
                reason="TypeMetaMismatch",
            )
        )
        config = {}
    # apiVersion and kind add nothing to the default configuration.
    config = {key: item for key, item in config.items() if key not in ("apiVersion", "kind")}
    arguments, problems = read_flags(value.get(ARGUMENTS))
    findings += problems
    serving, problems = read_serving(value.get(SERVING_INFO))
    findings += problems
    findings += _owned_settings(config, platform)
    findings += _owned_flags(arguments, platform)
    return Overrides(config, arguments, serving, tuple(findings))


def read_flags(value: Any) -> tuple[dict[str, list[str]], list[Finding]]:
    """Read the map `arguments`: flag -> string, number, boolean, or a list; null removes a flag."""
    if value is None:
        return {}, []
    if not isinstance(value, Mapping):
        return {}, [_malformed((ARGUMENTS,), "arguments must be a map from flags to values")]
    if len(value) > FLAGS:
        message = f"there are {len(value)} flags, and the limit is {FLAGS}; remove some"
        return {}, [_malformed((ARGUMENTS,), message)]
    flags: dict[str, list[str]] = {}
    findings: list[Finding] = []
    for key, item in value.items():
        path: Path = (ARGUMENTS, key)
        if not FLAG_NAME.fullmatch(key):
            bare = key.lstrip("-").partition("=")[0]
            findings.append(_malformed(path, f'"{key}" is not a flag name; write {bare or "one"}'))
            continue
        if normalized_name(key) in flags:
            findings.append(_malformed(path, f"--{normalized_name(key)} is set twice; remove one"))
            continue
        values = item if isinstance(item, list) else [] if item is None else [item]
        texts = [flag_text(entry) for entry in values]
        for index, text in enumerate(texts):
            if text is None:
                at = (*path, index) if isinstance(item, list) else path
                findings.append(
                    _malformed(
                        at, "a flag's value must be a string, number, boolean or list of those"
                    )
                )
        flags[normalized_name(key)] = [text for text in texts if text is not None]
    return flags, findings


def read_serving(value: Any) -> tuple[dict[str, list[str]], list[Finding]]:
    """Read `servingInfo` as flags: kube-scheduler's configuration file has no such field."""
    if value is None:
        return {}, []
    if not isinstance(value, Mapping):
        return {}, [_malformed((SERVING_INFO,), "servingInfo must be an object")]
    flags: dict[str, list[str]] = {}
    findings: list[Finding] = []
    for key, item in value.items():
        if item is None:
            continue
        texts = item if key == "cipherSuites" else [item]
        problem = ""
        if key not in SERVING_FLAGS:
            problem = f"only {listing(SERVING_FLAGS)} can be set here; set other flags in arguments"
        elif not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            problem = f"{key} must be {_SERVING_TYPES[key]}"
        elif text := ",".join(texts):
            flags[SERVING_FLAGS[key]] = [text]
        if problem:
            findings.append(_malformed((SERVING_INFO, key), problem))
    return flags, findings


def set_keys(value: Any) -> list[str]:
    """Return the dotted paths of all values that are set, sorted; with list indices."""

    def walk(item: Any, path: str) -> Iterator[str]:
        parts: Sequence[tuple[Any, Any]] = ()
        if isinstance(item, Mapping):
            parts = list(item.items())
        elif isinstance(item, list):
            parts = list(enumerate(item))
        elif path:
            yield path
        for key, nested in parts:
            yield from walk(nested, f"{path}.{key}" if path else str(key))

    return sorted(set(walk(value, "")))


def _owned_settings(config: Mapping[str, Any], platform: Platform) -> Iterator[Finding]:
    owned: Mapping[tuple[str, str], tuple[Any, str]] = {
        ("leaderElection", "leaderElect"): (True, "several schedulers would be active at once"),
        ("leaderElection", "resourceLock"): ("leases", "no scheduler would become active"),
        ("leaderElection", "resourceName"): (
            platform.operand_lease_name,
            "the scheduler may not write another Lease, so none would become active",
        ),
        ("leaderElection", "resourceNamespace"): (
            platform.operand_lease_namespace,
            "the scheduler may not write another Lease, so none would become active",
        ),
        ("clientConnection", "kubeconfig"): (
            platform.scheduler_kubeconfig,
            "the pod has no other file",
        ),
    }
    for (section, key), (wanted, why) in owned.items():
        settings = config.get(section)
        value = settings.get(key) if isinstance(settings, Mapping) else None
        # Validation reports values of other types.
        if type(value) is type(wanted) and value not in (wanted, ""):
            yield _owned((section, key), f"{key} must stay {_literal(wanted)}: {why}; remove it")


def _owned_flags(flags: Flags, platform: Platform) -> Iterator[Finding]:
    ours = {
        "config": "the operator renders this file; put its content next to arguments",
        "kubeconfig": "it is ignored if there is a configuration file",
        "write-config-to": "the scheduler would write its configuration and exit",
        "help": "the scheduler would print its help and exit",
        "version": "the scheduler would print its version and exit",
    }
    wanted = {
        "leader-elect-resource-lock": "leases",
        "leader-elect-resource-name": platform.operand_lease_name,
        "leader-elect-resource-namespace": platform.operand_lease_namespace,
    }
    for name, values in flags.items():
        path = (ARGUMENTS, name)
        if name in ours:
            yield _owned(path, f"--{name} cannot be overridden: {ours[name]}; remove it")
        elif name in wanted and any(value != wanted[name] for value in values):
            yield _owned(
                path, f"--{name} must stay {wanted[name]}, the operator watches it; remove it"
            )
        elif name == "secure-port" and "0" in values:
            yield _owned(path, "--secure-port=0 disables the probes; use 1 to 65535")
        elif name == "leader-elect" and any(_is_false(value) for value in values):
            yield _owned(path, "--leader-elect=false makes several schedulers active; remove it")


def _is_false(text: str) -> bool:
    try:
        return not boolean(text)
    except ValueError:
        return False


def _literal(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def _malformed(path: Path, message: str, reason: str = "Malformed") -> Finding:
    return Finding(
        names.OVERRIDES_DEGRADED, reason, format_path((*ROOT, *path)), message, blocking=True
    )


def _owned(path: Path, message: str) -> Finding:
    return _malformed(path, message, reason="OwnedSetting")
