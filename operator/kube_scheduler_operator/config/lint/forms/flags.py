"""Flags as forms write them: words of a command line with variables, maps, lists of pairs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ....base.decoding import INVALID_TYPE
from ....base.findings import Path, Problem
from ....base.objects import entries, mapping
from ...language.command_line import flag_text, normalized_name
from ...language.flags import BOOLEANS, INVALID_ARGUMENT, UNKNOWN_ARGUMENT
from ...language.literal_fixes import type_fix
from .document_fields import objects, text
from .form import CONFIG_FLAGS, KUBE_SCHEDULER, CommandLineFlag

_LEVEL: Final = re.compile(r"-v\d+")
_OPERATOR: Final = re.compile(r"[;|&<>()]+")
DASHES: Final = "-\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d"
"""The hyphen, and what word processors make of one or two."""
_WITHOUT_VALUE: Final = frozenset({*BOOLEANS, "version"})
"""Flags whose value is optional: the next word is not theirs (pflag's NoOptDefVal)."""
_SHORT: Final = "hv"
"""The flags of one letter."""
_QUOTES: Final = "\"'`\u2018\u2019\u201c\u201d"
_KUBECONFIGS: Final = tuple(
    f"/etc/kubernetes/{name}.conf" for name in ("admin", "kubelet", "scheduler", "super-admin")
)
"""The kubeconfigs that kubeadm writes."""
_COMMAND: Final = re.compile(r"(?:^|/)(?:kube-scheduler|koord-scheduler)\s+-")


def of_words(
    words: Sequence[tuple[str, Path]], booleans: Collection[str] = BOOLEANS
) -> Iterator[CommandLineFlag]:
    """Yield the flags of a command line; other words, such as the program's name, are ignored.

    What `word_problems` reports is read as intended, so that the rest can be checked. `booleans`
    take no value from the next word.
    """
    pending: CommandLineFlag | None = None
    parts = ((part, path) for word, path in words for part in flags_in(word))
    for word, path in parts:
        if pending is not None:
            yield CommandLineFlag(pending.name, word, pending.path)
            pending = None
        elif word.startswith("-") and word.strip("-"):
            name, equals, value = word.lstrip(DASHES).partition("=")
            if name.split()[1:]:  # the flag and its value in one word, without =
                name, rest = name.split(maxsplit=1)
                equals, value = "=", f"{rest}{equals}{value}"
            if _LEVEL.fullmatch(word):
                name, equals, value = "v", "=", word[2:]
            elif name == "h":
                name = "help"
            name = normalized_name(name.strip())
            if equals:
                yield CommandLineFlag(name, value, path)
            elif name in booleans:
                yield CommandLineFlag(name, "true", path)
            else:
                pending = CommandLineFlag(name, "", path)


def with_unknown_values(
    words: Sequence[tuple[str, Path]],
    is_unknown: Callable[[str], bool],
    booleans: Collection[str] = BOOLEANS,
) -> tuple[CommandLineFlag, ...]:
    """Return the flags in words; `is_unknown` recognizes values that the document does not have."""
    flags = of_words(words, booleans)
    return tuple(replace(flag, is_known=not is_unknown(flag.value)) for flag in flags)


def flags_in(word: str) -> list[str]:
    """Split a word into the flags that it contains, separated by spaces."""
    return re.split(r"\s+(?=--)", word) if word.startswith("-") else [word]


def of_pairs(value: Any, path: Path) -> Iterator[CommandLineFlag]:
    """Yield flags of a list of `NAME=VALUE`, with or without dashes, or of a single string."""
    pairs = value if isinstance(value, list) else [value]
    for index, entry in enumerate(pairs):
        if isinstance(entry, str):
            at = (*path, index) if isinstance(value, list) else path
            name, equals, rest = entry.lstrip("-").partition("=")
            if name:
                yield CommandLineFlag(normalized_name(name), rest if equals else "true", at)


def of_map(value: Any, path: Path) -> Iterator[CommandLineFlag]:
    """Yield flags of a map NAME -> VALUE; a list as value repeats the flag."""
    for key, setting in mapping(value).items():
        name, at = normalized_name(str(key).lstrip("-")), (*path, key)
        if isinstance(setting, Mapping):  # kops and Gardener write gates as a map
            gates = ",".join(f"{gate}={flag_text(on)}" for gate, on in setting.items())
            yield CommandLineFlag(name, gates, at)
            continue
        is_list = isinstance(setting, list)
        for index, item in enumerate(setting if is_list else [setting]):
            text = flag_text(item)
            if text is not None:
                yield CommandLineFlag(name, text, (*at, index) if is_list else at)


def of_names(value: Any, path: Path, key: str = "name") -> Iterator[CommandLineFlag]:
    """Yield flags of a list of {name: NAME, value: VALUE}."""
    for index, entry in enumerate(map(mapping, entries(value))):
        name, text = flag_text(entry.get(key)), flag_text(entry.get("value"))
        if name:
            flag = normalized_name(name.lstrip("-"))
            yield CommandLineFlag(flag, text or "", (*path, index, "value" if text else key))


def split(text: str) -> list[str]:
    """Split a shell's text into words and operators; at spaces if quotes are unbalanced.

    A line break is the operator `;`.
    """
    lexer = shlex.shlex(
        text.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True
    )
    lexer.whitespace_split = True
    try:
        return list(lexer)
    except ValueError:
        return text.split()


def first_command(words: Sequence[tuple[str, Path]]) -> list[tuple[str, Path]]:
    """Return the words of `split` before the first operator, without what it redirects."""
    end = next((at for at, (word, _) in enumerate(words) if _OPERATOR.fullmatch(word)), len(words))
    redirected = end < len(words) and {"<", ">"} & set(words[end][0])
    if redirected and end and words[end - 1][0].isdigit():
        end -= 1
    return list(words[:end])


# --- what does not become the flags that were intended ------------------------------------------
# kube-scheduler parses its command line with pflag and rejects whatever is not a flag:
# github.com/spf13/pflag v1.0.10, `FlagSet.parseArgs`; k8s.io/kubernetes v1.35.4,
# cmd/kube-scheduler/app/server.go, `NewSchedulerCommand` (`Args`).


def type_problems(container: Mapping[str, Any], path: Path) -> Iterator[Problem]:
    """Report `command` and `args` of a container that are not lists of strings."""
    refused = "the kubelet and the API server reject the Pod"
    for key in ("command", "args"):
        value = container.get(key)
        if value is None:
            continue
        if not isinstance(value, list):
            written = value if isinstance(value, str) else ""
            fix = f"write {_as_list(written.split())}" if written else "write a list of strings"
            message = f"must be a list of strings, not {_type_name(value)}: {refused}"
            yield Problem(INVALID_TYPE, (*path, key), message, fix)
            continue
        for index, word in enumerate(value):
            if word is None or isinstance(word, str):
                continue
            message = f"must be a string, not {_type_name(word)}"
            fix = type_fix(word, "a string")
            if isinstance(word, Mapping) and len(word) == 1:
                name, text = next((str(key), flag_text(value)) for key, value in word.items())
                message += ", which is what YAML reads where a space follows a colon"
                fix = f"write {name}={text}" if text else "write it in quotes"
            yield Problem(INVALID_TYPE, (*path, key, index), f"{message}: {refused}", fix)


def _type_name(value: Any) -> str:
    names = {bool: "a boolean", str: "a string", dict: "a map", list: "a list"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "a number")


def _as_list(words: Sequence[str]) -> str:
    return f"[{', '.join(words)}]"


def word_problems(words: Sequence[tuple[str, Path]]) -> Iterator[Problem]:
    """Report words that kube-scheduler rejects; the command line begins with the program's name.

    `validate_flags` reports unknown flags and wrong values.
    """
    rest = iter(words)
    previous = ""
    for number, (word, path) in enumerate(rest):
        if not word or (number == 0 and not _is_flag(word)):
            if is_command(word):
                parts = _as_list(word.split())
                message = "this is one word: no program has such a name, and the Pod does not start"
                yield Problem(INVALID_ARGUMENT, path, message, f"write {parts}")
            continue
        if word == "--":
            if any(following for following, _ in words[number + 1 :]):
                message = "kube-scheduler does not start: what follows -- is not read as flags"
                yield Problem(INVALID_ARGUMENT, path, message, "remove the --")
            return
        if not _is_flag(word):
            yield _argument(word, path, previous)
            previous = ""
            continue
        name, equals, _ = word.lstrip(DASHES).partition("=")
        problem = _malformed_flag(word, path)
        if problem is not None:
            yield problem
        elif not equals and not _takes_no_value(word, name) and next(rest, None) is None:
            message = f"kube-scheduler does not start: {word} has no value"
            yield Problem(INVALID_ARGUMENT, path, message, f"write {word}=VALUE, or remove it")
        previous = "" if equals or normalized_name(name) not in BOOLEANS else word


def _malformed_flag(word: str, path: Path) -> Problem | None:
    """Report why a word is not one flag."""
    name, equals, value = word.lstrip(DASHES).partition("=")
    several = flags_in(word)
    if len(several) > 1:
        message = "kube-scheduler does not start: several flags are one word"
        fix = f"write one entry for each: {', '.join(several)}"
        return Problem(INVALID_ARGUMENT, path, message, fix)
    if not word.startswith("--") and name[:1] not in _SHORT:
        message = f"kube-scheduler does not start: {word} does not begin with two hyphens"
        return Problem(UNKNOWN_ARGUMENT, path, message, f"write --{word.lstrip(DASHES)}")
    if re.search(r"\s", name):
        flag, _, rest = name.partition(" ")
        message = f"kube-scheduler does not start: --{flag} and its value are one word without ="
        fix = f"write --{flag}={rest.strip()}{equals}{value}"
        return Problem(UNKNOWN_ARGUMENT, path, message, fix)
    return None


def is_command(word: str) -> bool:
    """Report whether a word is a whole command line of a kube-scheduler, which is an error."""
    return bool(_COMMAND.search(word))


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word != "-"


def _takes_no_value(word: str, name: str) -> bool:
    if word.startswith("--"):
        return normalized_name(name) in _WITHOUT_VALUE
    return name != "v"  # -v4 has its value, -h none


def _argument(word: str, path: Path, previous: str) -> Problem:
    """Report that a word is not a flag, and which one was meant."""
    message = f"kube-scheduler does not start: it takes no arguments, but is given {word}"
    stripped = word.strip(_QUOTES)
    if previous:
        message = f"{message}: {previous} takes its value only after ="
        return Problem(INVALID_ARGUMENT, path, message, f"write {previous}={word}")
    if stripped != word and _is_flag(stripped):
        message = f"kube-scheduler does not start: quotes are a part of {word}, so it is not a flag"
        return Problem(INVALID_ARGUMENT, path, message, f"write {stripped}")
    if word[0] in DASHES:
        message = f"kube-scheduler does not start: {word} begins with U+{ord(word[0]):04X}, "
        meant = f"--{word.lstrip(DASHES)}"
        return Problem(INVALID_ARGUMENT, path, f"{message}not with hyphens", f"write {meant}")
    return Problem(INVALID_ARGUMENT, path, message, "remove it")


def config_problems(flags: Sequence[CommandLineFlag]) -> Iterator[Problem]:
    """Report that --config names a kubeconfig."""
    last = {flag.name: flag for flag in flags}
    config = last.get(CONFIG_FLAGS[KUBE_SCHEDULER])
    if config is None:
        return
    others = [name for name, flag in last.items() if name.endswith("kubeconfig")]
    same = next((name for name in others if last[name].value == config.value), "")
    if same or config.value in _KUBECONFIGS:
        as_named = f", as in --{same}" if same else ""
        message = f"kube-scheduler does not start: {config.value} is a kubeconfig{as_named}"
        fix = "name a file with a KubeSchedulerConfiguration, or remove --config"
        yield Problem(INVALID_ARGUMENT, config.path, message, fix)


# --- variables -----------------------------------------------------------------------------------
# The kubelet replaces them in the words of a command line. Sources: k8s.io/kubernetes v1.35.4,
# third_party/forked/golang/expansion/expand.go and pkg/kubelet/kubelet_pods.go,
# `makeEnvironmentVariables`.

_REFERENCE: Final = re.compile(r"\$(?:\$|\(([^)]*)\))")
LONGEST: Final = 128 * 1024
"""The longest argument or variable of a program on Linux, in bytes (MAX_ARG_STRLEN, execve(2))."""
_OF_SERVICES: Final = ("_SERVICE_HOST", "_SERVICE_PORT", "_PORT")
"""What the names of variables have that the kubelet adds for each Service."""


@dataclass(frozen=True, slots=True)
class Variables:
    values: Mapping[str, str | None]  # None: only the cluster has the value
    has_others: bool = False  # whether ConfigMaps or Secrets add variables of unknown names

    def expanded(self, word: str) -> str:
        """Return a word with the values in it; a variable without a known value stays as $(NAME).

        No program starts with a longer word than LONGEST: the rest of one is cut off.
        """
        parts: list[str] = []
        length = end = 0
        for match in _REFERENCE.finditer(word):
            name = match[1]
            value = "$" if name is None else self.values.get(name)
            parts += (word[end : match.start()], match[0] if value is None else value)
            length += len(parts[-2]) + len(parts[-1])
            end = match.end()
            if length > LONGEST:
                break
        return "".join((*parts, word[end:]))[: LONGEST + 1]

    def is_unknown(self, word: str) -> bool:
        """Report whether only the cluster knows the value of a variable in an expanded word."""
        return any(self._is_elsewhere(name) for name in _references(word))

    def is_unresolved(self, word: str) -> bool:
        """Report whether an expanded word has a variable without a value in the file."""
        return self.is_unknown(word) or bool(self.undefined(word))

    def undefined(self, word: str) -> str:
        """Return the first variable of an expanded word that the container does not have, or ""."""
        return next(
            (
                name
                for name in _references(word)
                if name not in self.values and not self._is_elsewhere(name)
            ),
            "",
        )

    def _is_elsewhere(self, name: str) -> bool:
        if name in self.values:
            return self.values[name] is None
        return self.has_others or any(part in name for part in _OF_SERVICES)


def variables_of(container: Mapping[str, Any]) -> Variables:
    """Return the variables of a container, the last one of a name; each may use those before it."""
    values: dict[str, str | None] = {}
    has_others = bool(container.get("envFrom"))
    for _, variable in objects(container.get("env")):
        name = text(variable.get("name"))
        if not name:
            continue
        if variable.get("valueFrom") is not None:
            values[name] = None
            continue
        before = Variables(values, has_others)
        value = before.expanded(flag_text(variable.get("value")) or "")
        values[name] = None if before.is_unknown(value) or len(value) > LONGEST else value
    return Variables(values, has_others)


def _references(word: str) -> Iterator[str]:
    return (match[1] for match in _REFERENCE.finditer(word) if match[1])
