"""Rules for top-level fields of a KubeSchedulerConfiguration: numbers, leader election, extenders.

They restate config/language/validation/configuration.py and
config/effective/control_plane/overrides.py where a single object is sufficient; values that another
layer (the profile, a SchedulerProfile) may set are accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube_scheduler_operator.base.platform import PLATFORMS
from kube_scheduler_operator.config.language.flags import ON_RECORD, flag_names
from kube_scheduler_operator.config.language.schema import API_VERSION, KIND

from .cel import at, each, get, joined, let, lines, problem, text, when
from .confinement import unsafe

_TIMINGS: Final = ("leaseDuration", "renewDeadline", "retryPeriod")
_DEFAULTS: Final = ("15s", "10s", "2s")  # kube-scheduler's, for null and zero
_LABEL: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_DNS: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
QUALIFIED: Final = f"^({_DNS}/)?{_LABEL}$"
LABEL_VALUE: Final = f"^({_LABEL})?$"
_SCALARS: Final = ("string", "bool", "int", "double")
_FLAG: Final = "^[A-Za-z0-9][A-Za-z0-9_-]*$"

OPERATOR_FLAGS: Final = {
    "config": "the operator renders this file; put its content next to arguments",
    "kubeconfig": "it is ignored if there is a configuration file",
    "write-config-to": "the scheduler would write its configuration and exit",
    "help": "the scheduler would print its help and exit",
    "version": "the scheduler would print its version and exit",
}
"""Flags that cannot be overridden, and why."""
SERVING: Final = ("cipherSuites", "minTLSVersion")
"""Fields of servingInfo that become flags."""


def type_meta(config: str, path: str) -> str:
    """ApiVersion and kind are correct if they are set."""
    version, kind = (get(config, key, '""') for key in ("apiVersion", "kind"))
    right = f"{version} == {text(API_VERSION)} && {kind} == {text(KIND)}"
    unsaid = f'{version} == "" && {kind} == ""'
    message = f"overrides are for {API_VERSION} {KIND}; write that or leave both out"
    return when(f"!({unsaid}) && !({right})", problem(at(path, "apiVersion"), message))


def numbers(config: str, path: str) -> str:
    """Ranges of the settings for all profiles."""
    initial = get(config, "podInitialBackoffSeconds", "1")
    longest = get(config, "podMaxBackoffSeconds", "10")
    connection = get(config, "clientConnection", "{}")
    return lines([
        when(
            f"{get(config, 'parallelism', '16')} <= 0",
            problem(at(path, "parallelism"), "must be greater than 0; use 1 or more (default: 16)"),
        ),
        percentage(config, path),
        when(
            f"{initial} <= 0",
            problem(at(path, "podInitialBackoffSeconds"), "must be greater than 0"),
        ),
        when(
            f"{longest} < {initial}",
            problem(
                at(path, "podMaxBackoffSeconds"),
                "must not be less than podInitialBackoffSeconds; raise it",
            ),
        ),
        when(
            let(connection, "c", f"{get('c', 'burst', '0')} < 0"),
            problem(at(path, "clientConnection", "burst"), "must not be negative; use 0 or more"),
        ),
    ])  # fmt: skip


def percentage(owner: str, path: str) -> str:
    """percentageOfNodesToScore, of all profiles or of one."""
    value = get(owner, "percentageOfNodesToScore", "0")
    message = problem(at(path, "percentageOfNodesToScore"), "is out of range; use 0 to 100")
    return when(f"{value} < 0 || {value} > 100", message)


def election(config: str, path: str, defaults: Sequence[Sequence[str]]) -> str:
    """The relations of the three timings, refused only if they fail with all defaults.

    Args:
        config: the configuration.
        path: where it is.
        defaults: lease, deadline and period where a timing is not set, for every platform.
    """
    where = at(path, "leaderElection")
    timings = [
        f"({text(name)} in l ? (l[{text(name)}] == null || duration(l[{text(name)}]) == "
        f'duration("0s") ? duration({text(own)}) : duration(l[{text(name)}])) : '
        f"duration(d[{index}]))"
        for index, (name, own) in enumerate(zip(_TIMINGS, _DEFAULTS, strict=True))
    ]
    lease, renew, retry = timings
    # 1.2 times in integers; equality is left to the operator, which computes like Go.
    five = " + ".join(["r"] * 5)
    six = " + ".join(["t"] * 6)
    jitter = let(renew, "r", let(retry, "t", f"{five} < {six}"))
    negative = " || ".join(
        f'duration({get("l", name, text("0s"))}) < duration("0s")' for name in _TIMINGS
    )
    every = text([list(one) for one in defaults])
    body = lines([
        when(negative, problem(where, "every timing must be greater than 0")),
        when(
            f"{every}.all(d, {lease} <= {renew})",
            problem(at(where, "leaseDuration"), "must be greater than renewDeadline; raise it"),
        ),
        when(
            f"{every}.all(d, {jitter})",
            problem(
                at(where, "renewDeadline"), "must be greater than 1.2 times retryPeriod; raise it"
            ),
        ),
    ])  # fmt: skip
    return let(get(config, "leaderElection", "{}"), "l", body)


def platform_timings() -> list[tuple[str, str, str]]:
    """The timings of all platforms' default configurations, without duplicates."""
    leases = (platform.operand_lease for platform in PLATFORMS.values())
    return list(dict.fromkeys((e.lease_duration, e.renew_deadline, e.retry_period) for e in leases))


def owned(config: str, path: str) -> str:
    """Settings with which a scheduler is healthy but schedules no pods."""
    leases = {
        "resourceLock": ["leases"],
        "resourceName": _of_platforms("operand_lease_name"),
        "resourceNamespace": _of_platforms("operand_lease_namespace"),
    }
    where = at(path, "leaderElection")
    parts = [
        when(
            f"{get('l', 'leaderElect', 'true')} == false",
            problem(
                at(where, "leaderElect"),
                "leaderElect must stay true: several schedulers would be active at once; remove it",
            ),
        ),
        *(
            when(
                f"!({get('l', key, text(''))} in {text(['', *allowed])})",
                problem(
                    at(where, key),
                    f"{key} must stay {' or '.join(allowed)}: no scheduler would become active; "
                    "remove it",
                ),
            )
            for key, allowed in leases.items()
        ),
    ]
    files = _of_platforms("scheduler_kubeconfig")
    file = when(
        let(
            get(config, "clientConnection", "{}"),
            "c",
            f"!({get('c', 'kubeconfig', text(''))} in {text(['', *files])})",
        ),
        problem(
            at(path, "clientConnection", "kubeconfig"),
            "kubeconfig must not change: the pod has no other file; remove it",
        ),
    )
    return lines([let(get(config, "leaderElection", "{}"), "l", lines(parts)), file])


def _of_platforms(attribute: str) -> list[str]:
    return list(dict.fromkeys(getattr(platform, attribute) for platform in PLATFORMS.values()))


def flags(overrides: str, path: str) -> str:
    """`arguments` and `servingInfo`: names of flags, and flags that cannot be overridden."""
    where = at(path, "arguments")
    here = f'{where} + "." + f'
    normal = 'f.replace("_", "-")'
    all_ever = sorted(set().union(*(flag_names(minor) for minor in ON_RECORD)))
    malformed = problem(here, "is not a flag's name; write it without dashes and without its value")
    unknown = problem(here, "kube-scheduler has no such flag; remove it")
    value = "a[f]"
    one, every = (
        "(" + " || ".join(f"type({name}) == {kind}" for kind in _SCALARS) + ")"
        for name in (value, "x")
    )
    typed = f"({value} == null || {one} || type({value}) == list && {value}.all(x, {every}))"
    wrong = problem(here, "a flag's value must be a string, number, boolean or list of those")
    because = f'" cannot be overridden: " + {text(OPERATOR_FLAGS)}[{normal}] + "; remove it"'
    why = f'{here} + ": --" + {normal} + {because}'
    stock = (
        "variables.checkNames && variables.extraPlugins.size() == 0 && "
        f"variables.minor in {text(list(ON_RECORD))}"
    )
    is_flag = f"f.matches({text(_FLAG)})"
    arguments = lines([
        f'a.map(f, !{is_flag}, {malformed}).join("\\n")',
        f'({stock} ? a.map(f, {is_flag} && !({normal} in {text(all_ever)}), {unknown})'
        '.join("\\n") : "")',
        f'a.map(f, {normal} in {text(OPERATOR_FLAGS)}, {why}).join("\\n")',
        f'a.map(f, !{typed}, {wrong}).join("\\n")',
    ])  # fmt: skip
    arguments = lines([arguments, unsafe(where, _of_platforms("scheduler_kubeconfig"))])
    no_map = problem(where, "arguments must be a map from flags to values")
    serving = at(path, "servingInfo")
    fields = list(SERVING)
    only = problem(
        f'{serving} + "." + f',
        f"only {' and '.join(fields)} can be set here; set other flags in arguments",
    )
    return lines([
        let(
            get(overrides, "arguments", "{}"),
            "a",
            f"(type(a) != map ? {no_map} : {arguments})",
        ),
        let(
            get(overrides, "servingInfo", "{}"),
            "a",
            f"(type(a) != map ? {problem(serving, 'servingInfo must be an object')} : "
            f"a.map(f, !(f in {text(fields)}) && a[f] != null, {only}).join(\"\\n\"))",
        ),
    ])  # fmt: skip


def extenders(owner: str, path: str) -> str:
    """Extenders: weights, a single bindVerb, unique extended resources."""
    where = at(path, "extenders", "[i]")
    tls = let(
        get("e", "tlsConfig", "{}"),
        "t",
        f'{get("t", "insecure", "false")} && ({get("t", "caFile", text(""))} != "" || '
        f'{get("t", "caData", text(""))} != "")',
    )
    binds = get("o", "bindVerb", '""')
    before = f'variables.indices.exists(h, h < i && {let("x[h]", "o", binds)} != "")'
    name = get("r", "name", '""')
    place = at(where, "managedResources", "[j]", "name")
    native = (
        f'!{name}.contains("/") || {name}.contains("kubernetes.io/") || '
        f'{name}.startsWith("requests.") || !{name}.matches({text(QUALIFIED)})'
    )
    times = (
        f"x.filter(o, {get('o', 'managedResources', '[]')}.exists(q, "
        f"{get('q', 'name', text(''))} == {name})).size()"
    )
    resources = let(
        get("e", "managedResources", "[]"),
        "m",
        each(
            "m",
            lines([
                when(
                    native,
                    problem(
                        place,
                        "is not an extended resource; write one such as example.com/gpu",
                    ),
                ),
                when(
                    f"{times} > 1",
                    problem(place, "is listed twice in managedResources; remove one"),
                ),
            ]),
            "j",
            "r",
        ),
    )  # fmt: skip
    one = lines([
        when(
            f"{get('e', 'prioritizeVerb', text(''))} != \"\" && {get('e', 'weight', '0')} <= 0",
            problem(
                at(where, "weight"),
                "an extender with a prioritizeVerb needs a weight; set 1 or more",
            ),
        ),
        when(
            f"{get('e', 'bindVerb', text(''))} != \"\" && {before}",
            problem(
                at(where, "bindVerb"),
                "an earlier extender has a bindVerb, and only one can; remove one",
            ),
        ),
        when(
            tls,
            problem(
                at(where, "tlsConfig", "insecure"),
                "insecure cannot be combined with a CA; remove insecure or the CA",
            ),
        ),
        resources,
    ])  # fmt: skip
    return let(get(owner, "extenders", "[]"), "x", each("x", one, "i", "e"))


__all__ = [
    "LABEL_VALUE", "QUALIFIED", "election", "extenders", "flags", "joined", "numbers", "owned",
    "percentage", "platform_timings", "type_meta",
]  # fmt: skip
