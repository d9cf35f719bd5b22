"""Rules for profiles: plugins and their extension points, queueSort and bind, unique arguments.

They restate config/language/validation/profiles.py where a single object is sufficient. A list
replaces that of an earlier layer, so a list that is set is final; a missing one may come from
another layer and is accepted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube_scheduler_operator.config.language.plugins.in_tree_plugins import (
    INVALID_PLUGINS,
    NEWEST_RELEASE,
    OLDEST,
    PLUGINS,
)
from kube_scheduler_operator.config.language.schema import POINTS

from .cel import at, before, each, get, joined, let, lines, problem, text, when
from .settings import percentage

_REMOVED: Final = 32  # since then INVALID_PLUGINS are rejected even as names of arguments
_EVERYWHERE: Final = "multiPoint"
_STOCK: Final = "variables.checkNames && variables.extraPlugins.size() == 0"


def table() -> dict[str, dict[str, tuple[int, int]]]:
    """Plugin -> extension point -> first and last minor in which it implements the point.

    "multiPoint" stands for the plugin itself.
    """
    found: dict[str, dict[str, tuple[int, int]]] = {}
    minors = range(OLDEST.minor, NEWEST_RELEASE.minor + 1)
    for name, plugin in PLUGINS.items():
        there = [minor for minor in minors if plugin.exists(minor)]
        found[name] = {_EVERYWHERE: (there[0], there[-1])}
        for point in plugin.points:
            has = [minor for minor in there if plugin.implements(point, minor)]
            if has:
                found[name][point] = (has[0], has[-1])
    return found


def there(name: str, point: str) -> str:
    """Whether a plugin of the table implements a point in the operand's version."""
    of = f"variables.plugins[{name}]"
    return (
        f"({point} in {of} && (variables.minor < 0 || "
        f"{of}[{point}][0] <= variables.minor && variables.minor <= {of}[{point}][1]))"
    )


def profiles(path: str, *, alone: bool = False, first_is_named: bool = False) -> str:
    """The lines of all profiles.

    Args:
        path: an expression: where their list is.
        alone: whether there is one profile, which is the object at `path` itself.
        first_is_named: whether the first one gets a name if it has none.
    """
    where = path if alone else at(path, "[i]")
    parts = [percentage("f", where), _lists(where), _framework(where), _arguments_once(where)]
    if not alone:
        parts.append(_names(where, first_is_named=first_is_named))
    return each("variables.profiles", lines(parts), "i", "f")


def same_queue(path: str) -> str:
    """Profiles that list queueSort plugins list the same ones."""
    listed = (
        'variables.profiles.map(f, "plugins" in f && f.plugins != null && '
        '"queueSort" in f.plugins && f.plugins.queueSort != null && '
        '"enabled" in f.plugins.queueSort && '
        "f.plugins.queueSort.enabled != null, "
        f"f.plugins.queueSort.enabled.map(e, {get('e', 'name', text(''))}))"
    )
    message = problem(path, "all profiles share one queue; use the same queueSort plugin in all")
    return let(listed, "q", when("q.exists(o, o != q[0])", message))


def _names(where: str, *, first_is_named: bool) -> str:
    name = get("f", "schedulerName", '""')
    missing = (
        f'i > 0 && {name} == ""'
        if first_is_named
        else f'{name} == "" && ("schedulerName" in f && f.schedulerName != null || '
        "variables.profiles.size() > 1)"
    )
    again = f'{name} != "" && {before("variables.profiles", "i", "schedulerName", name)}'
    place = at(where, "schedulerName")
    return lines(
        [
            when(missing, problem(place, "is required; give every profile a name of its own")),
            when(again, problem(place, "is also the name of an earlier profile; rename one")),
        ]
    )


_SUGGESTS: Final = "see what kubectl scheduler validate FILE suggests"
_IS_SIMILAR: Final = (
    'o.lowerAscii().replace("s", "") == n.lowerAscii().replace("s", "") || '
    "n.size() > 4 && o.size() <= n.size() + 1 && n.size() <= o.size() + 1 && "
    "(o.startsWith(n.substring(0, 4)) || o.endsWith(n.substring(n.size() - 4))) && "
    "variables.indices.exists(e, (o.size() > n.size() ? e : e + 1) <= n.size() && "
    "o.startsWith(n.substring(0, e)) && o.endsWith(n.substring(o.size() > n.size() ? e : e + 1)))"
)
"""Whether the names n and o differ in case, in an s, or in one letter that is added, missing or
wrong; one half is equal then, which is tried first because it costs least. CEL has no distance of
two texts, and a policy that costs too much lets everything pass."""


def _lists(where: str) -> str:
    """The plugins that are enabled at each point."""
    name = get("n", "name", '""')
    place = f'{where} + ".plugins." + t + ".enabled[" + string(j) + "].name"'
    known = "n in variables.plugins"
    similar = f"variables.pluginNames.filter(o, {_IS_SIMILAR})"
    other = f'"; remove it, or {_SUGGESTS}"'
    hint = let(similar, "c", f'(c.size() > 0 ? "; did you mean " + c[0] + "?" : {other})')
    no_such = f'{place} + ": kube-scheduler" + variables.version + " has no plugin " + n + {hint}'
    points = "variables.points.filter(o, " + there("n", "o") + ').join(", ")'
    elsewhere = (
        f'{place} + ": plugin " + n + " does not implement " + t + "; list it at " + {points}'
    )
    twice = before("l", "j", "name", "n")
    again = problem(place, "this plugin is enabled twice; remove one")
    checked = "variables.checkNames && !(n in variables.extraPlugins)"
    star = problem(place, "* is only allowed in disabled; name the plugins to enable")
    # A duplicate at multiPoint is not always one after its expansion.
    result = (
        f'(n == "*" ? {star} : '
        f"{checked} && !({known} && {there('n', text(_EVERYWHERE))}) ? {no_such} : "
        f'{checked} && t != "{_EVERYWHERE}" && !{there("n", "t")} ? {elsewhere} : '
        f'(t != "{_EVERYWHERE}" && {twice} ? {again} : ""))'
    )
    entry = let(name, "n", result)
    enabled = let(get("g[t]", "enabled", "[]"), "l", each("l", entry, "j", "n"))
    # The loop variable is rebound to the plugin's name.
    all_points = text([*POINTS, _EVERYWHERE])
    return let(
        get("f", "plugins", "{}"),
        "g",
        joined(f"{all_points}.map(t, t in g && g[t] != null, {enabled})"),
    )


def _framework(where: str) -> str:
    """Profiles without a queueSort or bind plugin."""
    parts = []
    for point, fix in (("queueSort", "PrioritySort"), ("bind", "DefaultBinder")):
        message = problem(
            at(where, "plugins", point),
            f"no plugin is enabled at this extension point; enable {fix}",
        )
        empty = (
            f'"enabled" in g && g.enabled != null && g.enabled.size() == 0 && '
            f'{get("g", "disabled", "[]")}.exists(e, {get("e", "name", text(""))} == "*")'
        )
        parts.append(
            let(
                let(get("f", "plugins", "{}"), "p", get("p", point, "{}")),
                "g",
                when(f"{_STOCK} && {empty}", message),
            )
        )
    return lines(parts)


def _arguments_once(where: str) -> str:
    name = get("c", "name", '""')
    place = at(where, "pluginConfig", "[j]", "name")
    again = before("l", "j", "name", name)
    body = lines(
        [
            when(again, problem(place, "this plugin is listed twice; merge both entries")),
            when(
                f"variables.minor >= {_REMOVED} && {name} in {text(list(INVALID_PLUGINS))}",
                problem(place, f"this plugin was removed in Kubernetes 1.{_REMOVED}; remove it"),
            ),
        ]
    )
    return let(get("f", "pluginConfig", "[]"), "l", each("l", body, "j", "c"))


def known_points(sequence: Sequence[str] = POINTS) -> str:
    """The extension points, in the order in which a message lists them."""
    return text(list(sequence))
