"""Rules for profiles: which plugins there are and where, who sorts and binds, arguments once.

They restate schedulerconfig/check.py as far as one object alone can be validated. Lists of a later
layer replace those of an earlier one, so a list that is there is final; one that is missing may
come from another layer, and what it would complete is let through.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kube_scheduler_operator.schedulerconfig.catalogue import NEVER_IN_V1, NEWEST, OLDEST, PLUGINS
from kube_scheduler_operator.schedulerconfig.schema import POINTS

from .cel import at, before, each, get, joined, let, lines, said, text, when
from .settings import percentage

_REMOVED: Final = 32  # since when NEVER_IN_V1 are refused, even as names of arguments
_EVERYWHERE: Final = "multiPoint"
_STOCK: Final = "variables.checkNames && variables.extraPlugins.size() == 0"


def table() -> dict[str, dict[str, tuple[int, int]]]:
    """Plugin -> extension point -> first and last minor version that has it there.

    The point "multiPoint" stands for the plugin itself.
    """
    found: dict[str, dict[str, tuple[int, int]]] = {}
    minors = range(OLDEST.minor, NEWEST.minor + 1)
    for name, plugin in PLUGINS.items():
        there = [minor for minor in minors if plugin.exists(minor)]
        found[name] = {_EVERYWHERE: (there[0], there[-1])}
        for point in plugin.points:
            has = [minor for minor in there if plugin.implements(point, minor)]
            if has:
                found[name][point] = (has[0], has[-1])
    return found


def there(name: str, point: str) -> str:
    """Whether the version of the operand has a plugin, that is in the table, at a point."""
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
    """Profiles that say how their common queue is sorted say the same."""
    listed = (
        'variables.profiles.map(f, "plugins" in f && f.plugins != null && '
        '"queueSort" in f.plugins && f.plugins.queueSort != null && '
        '"enabled" in f.plugins.queueSort && '
        "f.plugins.queueSort.enabled != null, "
        f"f.plugins.queueSort.enabled.map(e, {get('e', 'name', text(''))}))"
    )
    message = said(
        path, "all profiles share one queue, so queueSort must be the same in all; make them equal"
    )
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
            when(missing, said(place, "this is missing; every profile needs a name of its own")),
            when(again, said(place, "an earlier profile has this name as well; rename one")),
        ]
    )


def _lists(where: str) -> str:
    """Which plugins are enabled at every point."""
    name = get("n", "name", '""')
    place = f'{where} + ".plugins." + t + ".enabled[" + string(j) + "].name"'
    known = "n in variables.plugins"
    short = 'n.lowerAscii().replace("s", "")'
    same = f'variables.pluginNames.filter(o, o.lowerAscii().replace("s", "") == {short})'
    hint = f'({same}.size() > 0 ? "; did you mean " + {same}[0] + "?" : "; remove it")'
    no_such = f'{place} + ": kube-scheduler" + variables.version + " has no plugin " + n + {hint}'
    points = "variables.points.filter(o, " + there("n", "o") + ').join(", ")'
    elsewhere = (
        f'{place} + ": plugin " + n + " does not extend " + t + "; it can be at " + {points}'
    )
    twice = before("l", "j", "name", "n")
    again = said(place, "the plugin is enabled twice here; remove one")
    looked_at = "variables.checkNames && !(n in variables.extraPlugins)"
    star = said(place, "* is only for disabled; name the plugins to enable")
    # At multiPoint a plugin that is there twice may still be nowhere twice.
    judged = (
        f'(n == "*" ? {star} : '
        f"{looked_at} && !({known} && {there('n', text(_EVERYWHERE))}) ? {no_such} : "
        f'{looked_at} && t != "{_EVERYWHERE}" && !{there("n", "t")} ? {elsewhere} : '
        f'(t != "{_EVERYWHERE}" && {twice} ? {again} : ""))'
    )
    entry = let(name, "n", judged)
    enabled = let(get("g[t]", "enabled", "[]"), "l", each("l", entry, "j", "n"))
    # The loop's own variable is rebound to the name, which is all that counts.
    all_points = text([*POINTS, _EVERYWHERE])
    return let(
        get("f", "plugins", "{}"),
        "g",
        joined(f"{all_points}.map(t, t in g && g[t] != null, {enabled})"),
    )


def _framework(where: str) -> str:
    """A queue that nobody sorts, and pods that nobody binds."""
    parts = []
    for point, fix in (("queueSort", "PrioritySort"), ("bind", "DefaultBinder")):
        message = said(
            at(where, "plugins", point), f"nothing is left at this extension point; enable {fix}"
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
            when(again, said(place, "this plugin is there already; merge the two")),
            when(
                f"variables.minor >= {_REMOVED} && {name} in {text(list(NEVER_IN_V1))}",
                said(place, f"this plugin was removed in Kubernetes 1.{_REMOVED}; remove it"),
            ),
        ]
    )
    return let(get("f", "pluginConfig", "[]"), "l", each("l", body, "j", "c"))


def known_points(sequence: Sequence[str] = POINTS) -> str:
    """The extension points, in the order in which a message lists them."""
    return text(list(sequence))
