"""Checks of KubeSchedulerConfigurations."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from ...base.findings import Path, Problem
from ...base.objects import entries, mapping
from ...base.source.reader import Document, read
from ..language.plugins.effective_plugins import configured_plugins
from ..language.plugins.in_tree_plugins import PLUGINS
from ..language.schema import args_struct
from ..language.validation.configuration import UNKNOWN_PLUGIN, Target, validate_config
from ..language.warnings.configuration import (
    SECOND_DEFAULT_SCHEDULER,
    ConfiguredScheduler,
    config_warnings,
    file_warnings,
    standalone_warnings,
)
from .checks import (
    OTHER_SCHEDULER,
    Checked,
    CheckOptions,
    Item,
    election_of,
    has_unknown_election,
    is_read_by_volcano,
    stock_of,
    target_of,
)
from .command_lines import check_named_files
from .forms.form import CommandLine
from .forms.kubeadm import KUBECONFIG
from .places import refused

_REMOVE: Final = "; remove it"


def check_configurations(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check KubeSchedulerConfigurations as kube-scheduler does, then for risky settings."""
    checked = Checked()
    for item in items:
        if is_read_by_volcano(item):
            checked.problems.append((item, _not_volcanos()))
            continue
        target = target_of(item, options)
        unknown = has_unknown_election(item.reader)
        election = {} if unknown else election_of(item.value, item.reader)
        # With its nulls: kube-scheduler rejects an unknown field even without a value.
        problems = validate_config(item.document.root.data, target, election)
        if not problems:
            config = {**item.value, "leaderElection": election} if election else item.value
            problems = [
                warning
                for warning in _warnings(item, config, target, options)
                if not unknown or warning.path[:1] != ("leaderElection",)
            ]
            process = ConfiguredScheduler(item.label, config, target)
            checked.processes.append((item, process))
        checked.problems += [(item, _of_unknown_image(item, problem)) for problem in problems]
        place = item.place.place if item.place and not options.place else options.place
        checked.problems += [(item, problem) for problem in refused(place, item.value)]
    return checked


_PUBLISHERS: Final = ("registry.k8s.io/", "k8s.gcr.io/", "ghcr.io/koordinator-sh/")
"""Where projects publish their images; elsewhere one of the same name may be an own build."""


def _of_unknown_image(item: Item, problem: Problem) -> Problem:
    """Name the flag with which the plugins of another image pass, if it may be another one."""
    image = item.reader.image if item.reader is not None else ""
    is_known = bool(image) and (stock_of(item.reader) or image.startswith(_PUBLISHERS))
    if problem.reason != UNKNOWN_PLUGIN or is_known or not problem.message.endswith(_REMOVE):
        return problem
    fix = "; use --custom-image if the scheduler's image has it, or remove it"
    return replace(problem, message=problem.message.removesuffix(_REMOVE) + fix)


def _not_volcanos() -> Problem:
    return Problem(
        OTHER_SCHEDULER,
        ("kind",),
        "Volcano's vc-scheduler reads no KubeSchedulerConfiguration: it finds no action in it and "
        "keeps its built-in configuration",
        "write actions and tiers in Volcano's format, or let kube-scheduler read the file",
    )


_PROVIDERS_OWN: Final = ("aks", "eks", "gardener")
"""Places where profiles become a part of the provider's own scheduler, with its Lease."""


def _warnings(
    item: Item, config: Mapping[str, Any], target: Target, options: CheckOptions
) -> Iterator[Problem]:
    """Yield the warnings that apply to how a configuration is used."""
    if is_run_by_provider(item, options):
        yield from standalone_warnings(config, target)
        return
    problems = (
        file_warnings(config, target, _kubeconfig_of(item.reader))
        if needs_kubeconfig(item)
        else config_warnings(config, target)
    )
    is_static = item.reader is not None and not item.reader.account
    for problem in problems:
        # A static Pod is the control plane's scheduler, whatever its leader election.
        if not (is_static and problem.reason == SECOND_DEFAULT_SCHEDULER):
            yield problem
    if item.reader is not None:
        yield from check_named_files(config, item.reader)


def is_run_by_provider(item: Item, options: CheckOptions) -> bool:
    """Report whether a configuration is for a provider's scheduler, of which a cluster has one."""
    place = options.place or (item.place.place if item.place else "")
    return place in _PROVIDERS_OWN


def needs_kubeconfig(item: Item) -> bool:
    """Report whether neither a ServiceAccount nor a product gives the reader its credentials."""
    place = item.place
    if place is not None and (place.is_part or place.place):
        return False  # the product that makes the file of it sets the kubeconfig
    if item.reader is not None:
        return not item.reader.account
    return place is None or (place.text is not None and not place.text.has_credentials)


def _kubeconfig_of(reader: CommandLine | None) -> str:
    """Return the kubeconfig on the node of a kube-scheduler without a ServiceAccount.

    Empty: the files do not show the kube-scheduler, or --master is its API server.
    """
    if reader is None or reader.last("master") is not None:
        return ""
    flags = (reader.last(name) for name in ("kubeconfig", "authentication-kubeconfig"))
    named = (flag.value for flag in flags if flag is not None and flag.is_known)
    return next(filter(None, named), "") or reader.given.get("kubeconfig", KUBECONFIG)


# --- arguments that kube-scheduler cannot print --------------------------------------------------
# With -v=2 or more, kube-scheduler encodes the completed configuration as JSON, reads that as YAML,
# and exits if it cannot (cmd/kube-scheduler/app/options, LogOrWriteConfig). Decoded values are
# valid YAML, apart from control characters. Arguments of plugins without a type are printed as
# they were written, and not all JSON is YAML: `\/`, `\ud83d`, bytes that are not UTF-8, and keys
# of 1,023 characters are not.

_TEXT_OR_SPACE: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[ \t\r\n]+', re.DOTALL)
_ESCAPED: Final = {
    b"<": rb"\u003c", b">": rb"\u003e", b"&": rb"\u0026",
    "\u2028".encode(): rb"\u2028", "\u2029".encode(): rb"\u2029",
}  # fmt: skip
"""Characters that Go's JSON encoder escapes."""


def unprintable_arguments(document: Document, minor: int) -> list[tuple[Path, str]]:
    """Return (path, error) of each value that kube-scheduler 1.`minor` cannot print."""
    problems: list[tuple[Path, str]] = []
    for number, profile in enumerate(entries(mapping(document.root.data).get("profiles"))):
        for path, entry in configured_plugins(mapping(profile)):
            name, where = entry.get("name"), ("profiles", number, *path, "args")
            if not isinstance(name, str) or name not in PLUGINS or args_struct(name, minor):
                continue
            text = document.json_text(where)
            if text is None:
                value = entry.get("args")
                text = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")
            _, error = read(b'--- {"args":' + _compact(text) + b"}")
            if error is not None:
                problems.append((where, error.message))
    return problems


def _compact(text: bytes) -> bytes:
    """Format JSON as Go's encoder writes a json.RawMessage."""
    text = _TEXT_OR_SPACE.sub(lambda part: part[0] if part[0].startswith(b'"') else b"", text)
    for character, escaped in _ESCAPED.items():
        text = text.replace(character, escaped)
    return text
