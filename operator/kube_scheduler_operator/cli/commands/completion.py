"""`completion`: the script that lets a shell complete command lines, and their completions.

They are commands, flags and their values, also names from the cluster.

The protocol is that of cobra, which kubectl uses with `kubectl_complete-scheduler`: one choice per
line, a tab and its description, and in the last line `:` and the sum of the directives.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ...base import assets
from ...base.foreign_text import one_line
from ...base.platform import PLATFORMS
from ...kube.errors import KubeError
from ...kube.resource import NAMESPACES, NODES, PODS, SECONDARY_SCHEDULERS, Resource
from ..console.errors import CommandError
from ..console.parser import CommandParser

if TYPE_CHECKING:
    from ...base.platform import Platform
    from ...kube.client import ApiClient

    Source = Callable[[ApiClient, Platform, str, str], Awaitable[list[str]]]

SHELLS: Final = ("bash", "zsh", "fish")

FILES: Final = 0
"""ShellCompDirectiveDefault: the shell completes names of files if there is no choice."""
NO_FILES: Final = 4
"""ShellCompDirectiveNoFileComp."""
NO_SPACE: Final = 2
"""ShellCompDirectiveNoSpace: no space follows, because the word goes on; added to NO_FILES."""
DIRECTORIES: Final = 16
"""ShellCompDirectiveFilterDirs: names of directories only."""

SECONDS = 5.0
"""For names from the cluster: a user waits for them at the prompt."""

_FILE_METAVARS: Final = ("FILE", "PATH", "[NODE=]PATH")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "completion",
        description="Prints the script with which a shell completes kubectl-scheduler: commands, "
        "flags and names from the cluster. `kubectl scheduler` is completed by kubectl's own "
        "script, which finds kubectl_complete-scheduler on the PATH.",
    )
    parser.add_argument("shell", choices=SHELLS, help="the shell")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    sys.stdout.write(assets.text("bindata", f"completion/{args.shell}"))
    return 0


# --- the completions of a command line ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Completions:
    choices: tuple[tuple[str, str], ...] = ()  # (word, description)
    directive: int = NO_FILES  # FILES, NO_FILES (with NO_SPACE) or DIRECTORIES

    def lines(self) -> list[str]:
        """Format the choices as the protocol requires."""
        shown = ((one_line(word), one_line(text)) for word, text in self.choices)
        texts = [f"{word}\t{text}" if text else word for word, text in shown]
        return [*texts, f":{self.directive}"]


@dataclass(slots=True)
class _Line:
    """The command line before the word that is completed."""

    parser: CommandParser  # of the innermost command
    awaited: argparse.Action | None  # the flag whose value comes next
    words: list[str]  # positional arguments so far
    flags: dict[str, str]  # values of flags by destination


def complete(parser: CommandParser, words: Sequence[str]) -> Completions:
    """Complete the last of `words`, which may be empty."""
    *before, current = words or ("",)
    line = _read(parser, before)
    if line.awaited is not None:
        return _values(line, line.awaited, current)
    if current.startswith("-") and "=" in current:
        name, _, value = current.partition("=")
        action = line.parser.options().get(name)
        if action is None:
            return Completions()
        values = _values(line, action, value)
        choices = tuple((f"{name}={word}", text) for word, text in values.choices)
        return Completions(choices, values.directive)
    if current.startswith("-"):
        return Completions(_beginning(current, _flags(line.parser)))
    if line.parser.subcommands():
        wrong = bool(line.words)  # a word that is not a command
        return Completions(() if wrong else _beginning(current, _commands(line.parser)))
    positionals = line.parser.positionals()
    if not positionals:
        return Completions()
    several = positionals[-1].nargs in ("*", "+")
    if len(line.words) >= len(positionals) and not several:
        return Completions()
    return _values(line, positionals[min(len(line.words), len(positionals) - 1)], current)


def _read(parser: CommandParser, words: Iterable[str]) -> _Line:
    line = _Line(parser, None, [], {})
    for word in words:
        if line.awaited is not None:
            line.flags[line.awaited.dest], line.awaited = word, None
            continue
        name, equals, value = word.partition("=")
        action = line.parser.options().get(name) if word.startswith("-") else None
        if action is not None:
            if equals:
                line.flags[action.dest] = value
            elif action.nargs != 0:
                line.awaited = action
        elif word in (commands := line.parser.subcommands()):
            chosen = commands[word]
            if isinstance(chosen, CommandParser):
                line.parser = chosen
        elif not word.startswith("-"):
            line.words.append(word)
    return line


def _flags(parser: CommandParser) -> Iterable[tuple[str, str]]:
    for name, action in parser.options().items():
        if name.startswith("--") and action.help != argparse.SUPPRESS:
            yield name, _one_line(action.help)


def _commands(parser: CommandParser) -> Iterable[tuple[str, str]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {command.dest: command.help for command in action._choices_actions}
            for name in action.choices:
                if name in helps:  # aliases are not offered
                    yield name, _one_line(helps[name])


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split()).partition(";")[0].partition(" (default")[0]


def _beginning(current: str, choices: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple(choice for choice in choices if choice[0].startswith(current))


# --- values -----------------------------------------------------------------------------------


def _values(line: _Line, action: argparse.Action, current: str) -> Completions:
    if action.choices is not None:
        return Completions(_beginning(current, ((str(choice), "") for choice in action.choices)))
    if action.metavar in _FILE_METAVARS:
        return Completions(directive=FILES)
    if action.metavar == "DIR" or action.dest == "kubeconfig":
        return Completions(directive=DIRECTORIES if action.metavar == "DIR" else FILES)
    words = _static(action.dest, line)
    if words is None:
        source = _SOURCES.get(action.dest)
        words = _from_cluster(source, line.flags, current) if source else []
    if action.dest == "context" and "," in current:
        before = current.rpartition(",")[0]
        words = [f"{before},{word}" for word in words]
    choices = _beginning(current, ((word, "") for word in words))
    unfinished = bool(choices) and all(word.endswith("/") for word, _ in choices)
    return Completions(choices, NO_FILES | NO_SPACE if unfinished else NO_FILES)


def _static(dest: str, line: _Line) -> list[str] | None:
    """Return values that need no cluster; None for another destination."""
    if dest == "platform":
        return ["auto", *PLATFORMS]
    if dest == "provider":
        from ...config.lint.providers.table import PROVIDERS

        return list(PROVIDERS)
    if dest in ("kubernetes_version", "operand_version"):
        from ...config.language.plugins.in_tree_plugins import NEWEST, OLDEST

        return [f"{NEWEST.major}.{minor}" for minor in range(NEWEST.minor, OLDEST.minor - 1, -1)]
    if dest == "context":
        return _contexts(line.flags.get("kubeconfig"))
    return None


def _contexts(kubeconfig: str | None) -> list[str]:
    from ...kube.credentials import context_names
    from ...kube.errors import CredentialsError

    try:
        return context_names(kubeconfig)
    except CredentialsError:
        return []  # a shell has no use for an error message


def _from_cluster(source: Source, flags: dict[str, str], current: str) -> list[str]:
    """Return names from the cluster; none if it does not answer in time."""
    import asyncio

    from ...base.backoff import NO_RETRIES
    from ...kube.client import ApiClient, Patience
    from ...operator.engine.detect_platform import decide_platform
    from ..cluster.connection import credentials_of
    from ..console.flags import add_cluster_flags

    parser = argparse.ArgumentParser()
    add_cluster_flags(parser)
    args = parser.parse_args([])
    vars(args).update({key: value for key, value in flags.items() if key != "as_groups"})
    args.as_groups = [flags["as_groups"]] if "as_groups" in flags else []

    async def ask() -> list[str]:
        credentials = credentials_of(args)
        await credentials.access()
        async with (
            asyncio.timeout(SECONDS),
            ApiClient(
                credentials,
                field_manager="kubectl-scheduler",
                patience=Patience(SECONDS, NO_RETRIES),
            ) as api,
        ):
            platform = PLATFORMS.get(args.platform)
            if platform is None:
                platform = (await decide_platform(api, None)).platform
            return await source(api, platform, flags.get("namespace") or "default", current)

    try:
        return sorted(asyncio.run(ask()))
    except (KubeError, CommandError, TimeoutError):
        return []


def _named(resource: Resource) -> Source:
    """List the names of all objects of a cluster-scoped kind."""

    async def names(
        api: ApiClient, _platform: Platform, _namespace: str, _current: str
    ) -> list[str]:
        from ..cluster.operator_objects import list_names

        return await list_names(api, resource)

    return names


async def _pods(api: ApiClient, _platform: Platform, namespace: str, current: str) -> list[str]:
    """List Pods and kinds of workloads; after `KIND/`, workloads of that kind."""
    from ..cluster.operator_objects import list_names
    from ..console.pod_reference import KIND_WORDS, workload_kind

    word, slash, _ = current.rpartition("/")
    kind = workload_kind(word) or PODS
    names = await list_names(api, kind, namespace)
    if slash:
        return [f"{word}/{name}" for name in names]
    return [*names, *(f"{kind_word}/" for kind_word in KIND_WORDS)]


async def _profiles(
    api: ApiClient, platform: Platform, _namespace: str, _current: str
) -> list[str]:
    from ..simulation.self_test import profiles_to_try

    return list(await profiles_to_try(api, platform))


async def _revisions(
    api: ApiClient, platform: Platform, _namespace: str, _current: str
) -> list[str]:
    from ..cluster.revisions import list_revisions

    return [str(revision.number) for revision in await list_revisions(api, platform)]


_SOURCES: Final[dict[str, Source]] = {
    "pod": _pods,
    "namespace": _named(NAMESPACES),
    "job_namespace": _named(NAMESPACES),
    "node": _named(NODES),
    "job_node": _named(NODES),
    "without_node": _named(NODES),
    "drain": _named(NODES),
    "scheduler": _named(SECONDARY_SCHEDULERS),
    "profile": _profiles,
    "old": _revisions,
    "new": _revisions,
    "to_revision": _revisions,
}
"""By the destination of the argument in the parsers of the commands."""
