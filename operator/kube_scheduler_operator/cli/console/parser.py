"""The parser of commands: a wrong word is answered with the one that was meant; help has examples.

Standard library only, so that `--help` is instant.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

_EXAMPLES = "Examples:\n"


class _HelpFormatter(argparse.HelpFormatter):
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(_EXAMPLES):
            return text  # lines to copy must not be wrapped
        return super()._fill_text(text, width, indent)


class CommandParser(argparse.ArgumentParser):
    """The parser of a program, a command or a subcommand."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("formatter_class", _HelpFormatter)
        super().__init__(*args, **kwargs)
        self.set_defaults(used_parser=self)  # the innermost one is the command that was chosen

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse all of the arguments; a word that is left over ends the program with code 2."""
        words = list(sys.argv[1:] if args is None else args)
        parsed, left = self.parse_known_args(words, namespace)
        if left:
            used: CommandParser = parsed.used_parser
            before = words[: words.index(left[0])] if left[0] in words else []
            used.error(used._unknown(left[0], before))
        return parsed

    def format_help(self) -> str:
        from .examples import EXAMPLES

        examples = EXAMPLES.get(self.command, ())
        if examples:
            width = max(len(line) for line, _ in examples)
            program = "kubectl scheduler"
            texts = (f"  {program} {line:<{width}}  # {what}" for line, what in examples)
            self.epilog = _EXAMPLES + "\n".join(texts)
        return super().format_help()

    @property
    def command(self) -> str:
        """The command and subcommand, without the name of the program: `rollout undo`."""
        words = self.prog.split()
        return " ".join(words[2:] if words[:1] == ["kubectl"] else words[1:])

    def error(self, message: str) -> NoReturn:
        self.print_usage(None)
        self.exit(2, f"error: {message}\nSee `{self.prog} --help`.\n")

    def print_usage(self, file: Any = None) -> None:
        """Print the usage on standard error: standard output may be read by a program."""
        super().print_usage(file or sys.stderr)

    def options(self) -> dict[str, argparse.Action]:
        return dict(self._option_string_actions)

    def subcommands(self) -> dict[str, argparse.ArgumentParser]:
        """Return the parsers of commands by name and alias; empty if this one has none."""
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                return dict(action.choices)
        return {}

    def positionals(self) -> list[argparse.Action]:
        """Return the positional arguments without commands, in their order."""
        return [
            action
            for action in self._actions
            if not action.option_strings and not isinstance(action, argparse._SubParsersAction)
        ]

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        if isinstance(action, argparse._SubParsersAction):
            text = f'"{value}" is not a command'
        else:
            text = f'"{value}" is not one of {", ".join(map(str, action.choices))}'
        raise argparse.ArgumentError(action, text + meant(str(value), map(str, action.choices)))

    def _unknown(self, word: str, before: Sequence[str]) -> str:
        """Say what is wrong with a word; `before` has those before it."""
        if not word.startswith("-"):
            flag = next((one for one in reversed(before) if one.startswith("-")), "")
            repeats = isinstance(self.options().get(flag), argparse._AppendAction)
            more = f"; {flag} takes one value: write {flag} {word}" if repeats else ""
            return f'unexpected argument "{word}"{more}'
        name = word.partition("=")[0]
        return f"unknown flag {name}{meant(name, self.options())}"


def meant(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean "status"?` if a known word is close; otherwise empty."""
    import difflib

    similar: Sequence[str] = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f'; did you mean "{similar[0]}"?' if similar else ""
