"""Rules for plugin arguments, as in config/language/validation/plugin_args.py.

Only values that are set are refused, never missing ones, which another layer may set. Rules that
depend on feature gates are left to the operator, which knows them.
"""

from __future__ import annotations

from typing import Final

from kube_scheduler_operator.config.language.schema import API_VERSION, ARGS, ARGS_SINCE, Struct

from .cel import at, before, decode, each, get, joined, let, lines, problem, text, when
from .settings import LABEL_VALUE, QUALIFIED

_RATIO: Final = "RequestedToCapacityRatio"
_RATIO_ALONE: Final = 36
_STRATEGIES: Final = ["LeastAllocated", "MostAllocated", _RATIO]
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_LOCKED: Final = 35  # since then DynamicResources cannot be disabled, so its rules apply


PLACE: Final = "c.p"
"""Path of an element of `entries`; `c.a` are its arguments, `c.f` is its profile."""


def entries(listed: str, path: str, *, alone: bool = False) -> str:
    """All arguments of all profiles: a list, for every profile, of plugin, arguments and place.

    Args:
        listed: the variable with the profiles.
        path: an expression: where their list is.
        alone: whether there is one profile, which is the object at `path` itself.
    """
    place = at(path if alone else at(path, "[i]"), "pluginConfig", "[j]", "args")
    parts = {"p": place, "n": get("e", "name", '""'), "a": get("e", "args", "{}"), "f": "f"}
    entry = "{" + ", ".join(f"{text(key)}: dyn({value})" for key, value in parts.items()) + "}"
    of_one = let("l[j]", "e", entry)
    of_all = let(
        get("f", "pluginConfig", "[]"), "l",
        f"variables.indices.map(j, j < l.size(), {of_one})",
    )  # fmt: skip
    items = f"variables.{listed}"
    return f"variables.indices.map(i, i < {items}.size(), {let(f'{items}[i]', 'f', of_all)})"


def types(variable: str) -> dict[str, str]:
    """Errors of strict decoding of arguments, by plugin."""
    found = {}
    for plugin, struct in ARGS.items():
        since = ARGS_SINCE.get(plugin, 0)
        condition = f" && variables.minor >= {since}" if since else ""
        found[plugin] = _of(plugin, variable, _types(plugin, struct), condition)
    return found


def rules(variable: str) -> dict[str, str]:
    """Violated rules of arguments, by plugin."""
    return {plugin: _of(plugin, variable, rule) for plugin, rule in _rules(PLACE).items()}


def _of(plugin: str, variable: str, body: str, condition: str = "") -> str:
    """The lines for all arguments of one plugin."""
    mine = f"l.map(c, c.n == {text(plugin)}{condition}, {let('c.a', 'a', body)})"
    return joined(f"variables.{variable}.map(l, {joined(mine)})")


def _types(plugin: str, struct: Struct) -> str:
    expected = [("apiVersion", API_VERSION), ("kind", f"{plugin}Args")]
    meta = [
        when(
            f"!({get('a', key, text(''))} in {text(['', value])})",
            problem(at(PLACE, key), f"must be {value}; correct it or remove it"),
        )
        for key, value in expected
    ]
    wrong = problem(PLACE, "must be an object")
    return f"(type(a) != map ? {wrong} : {lines([decode(struct, 'a', PLACE), *meta])})"


def _rules(place: str) -> dict[str, str]:
    return {
        "DefaultPreemption": _preemption(place),
        "DynamicResources": _dynamic_resources(place),
        "InterPodAffinity": _range(place, "hardPodAffinityWeight", 0, 100),
        "NodeAffinity": _node_affinity(place),
        "NodeResourcesBalancedAllocation": _balanced(place),
        "NodeResourcesFit": _fit(place),
        "PodTopologySpread": _spread(place),
        "VolumeBinding": _range(place, "bindTimeoutSeconds", 0, None),
    }


def _range(place: str, field: str, low: int, high: int | None, of: str = "a") -> str:
    value = get(of, field, str(low))
    beyond = f"{value} < {low}" + ("" if high is None else f" || {value} > {high}")
    allowed = f"{low} or more" if high is None else f"from {low} to {high}"
    return when(beyond, problem(at(place, field), f"is out of range; use {allowed}"))


def _one_of(value: str, place: str, choices: list[str]) -> str:
    shown = [choice for choice in choices if choice]
    names = f"{', '.join(shown[:-1])} or {shown[-1]}"
    return when(f"!({value} in {text(choices)})", problem(place, f"is not supported; use {names}"))


def _preemption(place: str) -> str:
    percentage, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    both = f"{get('a', percentage, '10')} == 0 && {get('a', absolute, '100')} == 0"
    return lines([
        _range(place, percentage, 0, 100),
        _range(place, absolute, 0, None),
        when(
            both,
            problem(
                at(place, percentage),
                f"{percentage} and {absolute} are both 0; raise one of them",
            ),
        ),
    ])  # fmt: skip


def _dynamic_resources(place: str) -> str:
    parts = []
    for field, least in (("filterTimeout", "0s"), ("bindingTimeout", "1s")):
        value = f"duration({get('a', field, text(least))})"
        short = f"variables.minor >= {_LOCKED} && {value} < duration({text(least)})"
        parts.append(when(short, problem(at(place, field), f"is too short; use {least} or more")))
    return lines(parts)


def _balanced(place: str) -> str:
    where = at(place, "resources", "[x]")
    name = get("r", "name", '""')
    again = before("m", "x", "name", name)
    one = lines(
        [
            when(again, problem(at(where, "name"), "is listed twice; remove one")),
            when(
                f"!({get('r', 'weight', '0')} in [0, 1])",
                problem(at(where, "weight"), "is not supported; set 1 or remove it"),
            ),
        ]
    )
    return let(get("a", "resources", "[]"), "m", each("m", one, "x", "r"))


def _fit(place: str) -> str:
    """Skipped if the plugin is not built: disabled at multiPoint and not enabled elsewhere."""
    strategy = at(place, "scoringStrategy")
    shape = _shape(at(strategy, "requestedToCapacityRatio", "shape"))
    kind = get("g", "type", text("LeastAllocated"))
    weight = when(
        f"{get('r', 'weight', '0')} < 0 || {get('r', 'weight', '0')} > 100",
        problem(at(strategy, "resources", "[x]", "weight"), "is out of range; use from 1 to 100"),
    )
    not_alone = (
        f'variables.minor >= {_RATIO_ALONE} && "requestedToCapacityRatio" in g && '
        f"g.requestedToCapacityRatio != null && {get('g', 'type', text(_RATIO))} != {text(_RATIO)}"
    )
    scoring = lines(
        [
            _one_of(kind, at(strategy, "type"), _STRATEGIES),
            let(get("g", "resources", "[]"), "m", each("m", weight, "x", "r")),
            when(
                not_alone,
                problem(
                    at(strategy, "requestedToCapacityRatio"),
                    f"only type {_RATIO} allows this since 1.{_RATIO_ALONE}; remove it",
                ),
            ),
            let(
                get("g", "requestedToCapacityRatio", "{}"),
                "o",
                f'("shape" in o && o.shape != null ? {let("o.shape", "m", shape)} : "")',
            ),
        ]
    )
    ignored = [
        let(
            get("a", field, "[]"),
            "m",
            each("m", when(wrong, problem(at(place, field, "[x]"), message)), "x", "r"),
        )
        for field, wrong, message in (
            (
                "ignoredResources",
                f"!r.matches({text(QUALIFIED)})",
                "is not a resource name; write one such as example.com/gpu",
            ),
            (
                "ignoredResourceGroups",
                f'r.contains("/") || !r.matches({text(QUALIFIED)})',
                'is not a resource group; write what comes before the "/"',
            ),
        )
    ]
    everything = lines([*ignored, let(get("a", "scoringStrategy", "{}"), "g", scoring)])
    listed = '(e.name == "NodeResourcesFit" || e.name == "*")'
    off = (
        f"{let(get('p', 'multiPoint', '{}'), 'u', get('u', 'disabled', '[]'))}"
        f'.exists(e, "name" in e && e.name != null && {listed})'
    )
    enabled = get("p[t]", "enabled", "[]")
    named = 'e, "name" in e && e.name == "NodeResourcesFit"'
    on = f"p.exists(t, p[t] != null && {enabled}.exists({named}))"
    built = let(get("c.f", "plugins", "{}"), "p", f"!({off}) || {on}")
    return f'({built} ? {everything} : "")'


def _shape(place: str) -> str:
    where = at(place, "[x]")
    now, before = get("r", "utilization", "0"), let("m[x - 1]", "o", get("o", "utilization", "0"))
    one = lines([
        when(
            f"x > 0 && {before} >= {now}",
            problem(
                at(where, "utilization"),
                "is not greater than the one before; sort the points",
            ),
        ),
        _range(where, "utilization", 0, 100, "r"),
        _range(where, "score", 0, 10, "r"),
    ])  # fmt: skip
    empty = problem(place, "the shape is empty; add at least one point")
    return f"(m.size() == 0 ? {empty} : {each('m', one, 'x', 'r')})"


def _spread(place: str) -> str:
    where = at(place, "defaultConstraints", "[x]")
    kind = get("a", "defaultingType", text("List"))
    key, reason = get("r", "topologyKey", '""'), get("r", "whenUnsatisfiable", '""')
    pair = ("topologyKey", "whenUnsatisfiable")
    same = " && ".join(
        f"{let('m[h]', 'o', get('o', name, text('')))} == {get('r', name, text(''))}"
        for name in pair
    )
    again = f"variables.indices.exists(h, h < x && {same})"
    one = lines([
        when(
            f"{get('r', 'maxSkew', '0')} <= 0",
            problem(at(where, "maxSkew"), "is out of range; use 1 or more"),
        ),
        when(
            f"!{key}.matches({text(QUALIFIED)})",
            problem(
                at(where, "topologyKey"),
                "is not a label key; write one such as example.com/rack",
            ),
        ),
        _one_of(reason, at(where, "whenUnsatisfiable"), ["DoNotSchedule", "ScheduleAnyway"]),
        when(
            '"labelSelector" in r && r.labelSelector != null',
            problem(
                at(where, "labelSelector"), "is not allowed in a default constraint; remove it"
            ),
        ),
        when(again, problem(where, "an earlier one has the same key and effect; remove one")),
    ])  # fmt: skip
    system = f'{kind} in ["", "System"] && m.size() > 0'
    constraints = lines(
        [
            when(
                system,
                problem(
                    at(place, "defaultingType"),
                    "System does not allow defaultConstraints; set List",
                ),
            ),
            each("m", one, "x", "r"),
        ]
    )
    return lines(
        [
            _one_of(kind, at(place, "defaultingType"), ["", "System", "List"]),
            let(get("a", "defaultConstraints", "[]"), "m", constraints),
        ]
    )


def _node_affinity(place: str) -> str:
    where = at(place, "addedAffinity")
    required = at(where, _REQUIRED, "nodeSelectorTerms", "[x]")
    preferred = at(where, _PREFERRED, "[x]", "preference")
    term = let(get("r", "preference", "{}"), "k", _term(preferred))
    weighted = f'({get("r", "weight", "0")} != 0 ? {term} : "")'
    return let(
        get("a", "addedAffinity", "{}"),
        "g",
        lines(
            [
                let(
                    let(get("g", _REQUIRED, "{}"), "o", get("o", "nodeSelectorTerms", "[]")),
                    "m",
                    each("m", _term(required), "x", "k"),
                ),
                let(get("g", _PREFERRED, "[]"), "m", each("m", weighted, "x", "r")),
            ]
        ),
    )


def _term(place: str) -> str:
    """The rules for the node selector term `k`."""
    by_label = at(place, "matchExpressions", "[y]")
    by_field = at(place, "matchFields", "[y]")
    one_value = 'o in ["In", "NotIn"] && w.size() != 1'
    field = lines(
        [
            _one_of("o", at(by_field, "operator"), ["In", "NotIn"]),
            when(
                one_value,
                problem(
                    at(by_field, "values"), "a field is compared with exactly one value; set one"
                ),
            ),
        ]
    )
    both = (("matchExpressions", _requirement(by_label)), ("matchFields", field))
    return lines(
        let(get("k", name, "[]"), "d", each("d", _bound(body), "y", "q")) for name, body in both
    )


def _bound(body: str) -> str:
    """`o` is the operator and `w` are the values of the requirement `q`."""
    return let(get("q", "operator", '""'), "o", let(get("q", "values", "[]"), "w", body))


def _requirement(place: str) -> str:
    values = at(place, "values")
    operators = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    key = get("q", "key", '""')
    rules_ = (
        (
            f"!{key}.matches({text(QUALIFIED)})",
            at(place, "key"),
            "is not a label key; correct it",
        ),
        (
            'o in ["In", "NotIn"] && w.size() == 0',
            values,
            "this operator requires values; add at least one",
        ),
        (
            'o in ["Exists", "DoesNotExist"] && w.size() > 0',
            values,
            "this operator does not allow values; remove them",
        ),
        (
            'o in ["Gt", "Lt"] && (w.size() != 1 || !w[0].matches("^[+-]?[0-9]+$"))',
            values,
            "this operator requires exactly one integer; set one",
        ),
        (
            f"w.exists(v, !v.matches({text(LABEL_VALUE)}))",
            values,
            "one of these is not a label value; use letters, digits, -, _ and .",
        ),
    )
    inside = lines(when(wrong, problem(where, message)) for wrong, where, message in rules_)
    known = f"o in {text(operators)}"
    return f"({known} ? {inside} : {_one_of('o', at(place, 'operator'), operators)})"
