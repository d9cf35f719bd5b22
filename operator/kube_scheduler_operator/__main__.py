"""The program `kube-scheduler-operator COMMAND`; as a kubectl plugin, `kubectl scheduler COMMAND`.

Only the module of the chosen command is imported, which keeps `--help` fast.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import Final, NamedTuple

from . import __version__
from .base.installation import InstallationError
from .cli.console.parser import CommandParser
from .cli.console.progress_line import LINE
from .cli.console.visible_stream import guard_streams

LIBRARIES: Final = frozenset(
    {
        "aiohttp",
        "httptools",
        "jinja2",
        "jsonmerge",
        "jsonschema",
        "kopf",
        "kubernetes",
        "numpy",
        "orjson",
        "prometheus_client",
        "uvloop",
    }
)
"""What the extras of this package install; without them, PyYAML is the only dependency."""


class Command(NamedTuple):
    """A command, as `--help` lists it."""

    name: str  # as users type it
    help: str  # one line
    program: str = ""  # the module of a program, below `cli.programs`; empty: a command
    alias: str = ""  # another name, which the command had before

    @property
    def module(self) -> str:
        """The module that adds its parser, below `cli`."""
        command = f"commands.{self.name.replace('-', '_')}"
        return f"programs.{self.program}" if self.program else command

    @property
    def extra(self) -> str:
        """The extra of this package with all that the command may import."""
        if self.program == "operator":
            return "operator"
        return "extender" if self.program else "cluster"

    def load(self) -> ModuleType:
        """Import the module."""
        return import_module(f".cli.{self.module}", __package__)


PLUGIN_COMMANDS: Final = (
    Command("check", "check whether the operator can be installed, and whether all is well"),
    Command("status", "show the state of the scheduler, its problems and the next steps"),
    Command("console", "show the scheduler on pages in a browser, on this machine"),
    Command("report", "write what the pages show as one file, to attach to a ticket"),
    Command("history", "list the revisions and what each one changed"),
    Command("diff", "compare two revisions, or a file with the cluster"),
    Command("plugins", "show the plugins of each extension point, with their weights and origins"),
    Command(
        "why", "show why a pod waits and what would help, or why it is on its node", "", "explain"
    ),
    Command("pending", "list the pods that wait by cause, and what would help"),
    Command("nodes", "show what nodes have free, the biggest Pod that fits, and fragmentation"),
    Command("simulate", "show where pods would be placed, in the cluster or in a changed one"),
    Command("rollout", "watch a rollout, or undo an edit"),
    Command("pprof", "fetch a profile of a running scheduler"),
    Command("dump-cache", "compare a scheduler's cache and queue with the API"),
    Command("must-gather", "collect diagnostic data for a bug report"),
    Command("compose", "show the configuration that the operator would create from objects"),
    Command("validate", "check configuration files for errors and risky settings"),
    Command("schema", "print a JSON Schema, with which editors complete and check files"),
    Command("convert", "convert an old scheduler configuration to the current version"),
    Command("adopt", "show what adoption does with the schedulers that a cluster has"),
    Command(
        "version", "show the versions of client, operator and schedulers, and whether they fit"
    ),
    Command("completion", "print the completion script of a shell"),
)
"""The commands of the kubectl plugin, in the order of `--help`."""

COMMANDS: Final = (
    Command("operator", "run the operator", "operator"),
    *PLUGIN_COMMANDS,
    Command("render", "write the manifests and the configuration of a bootstrap node's scheduler"),
    Command("uninstall", "restore the previous scheduler on every node and remove the operator"),
    Command("installer", "install a revision on this node (runs in installer pods)", "node"),
    Command(
        "restore", "restore the previous scheduler of this node (runs in restore pods)", "node"
    ),
    Command("guard", "report changes of the scheduler's kubeconfig (runs in guard pods)", "node"),
    Command(
        "read-config",
        "read the configuration file of the scheduler that predates the operator (runs in pods)",
        "node",
    ),
    Command(
        "signal",
        "make the scheduler on this node dump its cache (runs in pods of dump-cache)",
        "node",
    ),
    Command(
        "cert-syncer",
        "update the scheduler's certificates on this node (runs in the static pod)",
        "node",
    ),
    Command(
        "simulation", "answer a simulating command (runs in pods of simulations)", "simulation"
    ),
    Command(
        "simulation-launcher",
        "copy what starts kube-scheduler in its own image (runs in pods of simulations)",
        "simulation",
    ),
    Command(
        "simulation-certificate",
        "make the certificate of a simulation (runs in pods of simulations)",
        "simulation",
    ),
    Command("node-metrics", "export the load of this node (runs in pods)", "node_metrics"),
    Command(
        "annotator", "write the load of nodes into their annotations (runs in pods)", "annotator"
    ),
    Command("extender", "serve policies as an HTTP extender (runs in pods)", "extender"),
    Command(
        "rl-monitor",
        "learn the best nodes of pods for the policy rl-priority (runs in pods)",
        "rl_monitor",
    ),
)
"""All commands, in the order of `--help`."""


def _chosen(commands: Sequence[Command], argv: Sequence[str]) -> Command | None:
    name = next((word for word in argv if not word.startswith("-")), "")
    return next((one for one in commands if name and name in (one.name, one.alias)), None)


def _parser(
    program: str, description: str, commands: Sequence[Command], argv: Sequence[str]
) -> CommandParser:
    parser = CommandParser(prog=program, description=description)
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND")
    chosen = _chosen(commands, argv)
    if chosen is not None:
        chosen.load().add_parser(subparsers)
    for command in commands:  # the others, for the list in --help
        if chosen is None or command.module != chosen.module:
            subparsers.add_parser(command.name, help=command.help)
    return parser


_PLUGIN: Final = "kubectl scheduler"
_PLUGIN_DESCRIPTION: Final = (
    "Inspects and manages the scheduler of a cluster and its configuration."
)

COMPLETE: Final = "__complete"
"""The first word of the command line with which a shell requests completions."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `kube-scheduler-operator`; the exit code is 0 for success, 1 for failure, 2 for usage."""
    return _run(
        "kube-scheduler-operator",
        "Manages kube-scheduler: its configuration and the rollout of revisions as static pods.",
        COMMANDS,
        argv,
    )


def kubectl_plugin(argv: Sequence[str] | None = None) -> int:
    """Run `kubectl scheduler` with the user's kubeconfig."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == [COMPLETE]:
        return kubectl_completion(argv[1:])
    return _run(_PLUGIN, _PLUGIN_DESCRIPTION, PLUGIN_COMMANDS, argv)


def kubectl_completion(argv: Sequence[str] | None = None) -> int:
    """Print the completions of a command line: `kubectl_complete-scheduler`, for kubectl."""
    from .cli.commands.completion import complete

    words = sys.argv[1:] if argv is None else argv
    parser = _parser(_PLUGIN, _PLUGIN_DESCRIPTION, PLUGIN_COMMANDS, words[:-1])
    sys.stdout.writelines(f"{line}\n" for line in complete(parser, words).lines())
    return 0


def _run(
    program: str, description: str, commands: Sequence[Command], argv: Sequence[str] | None
) -> int:
    argv = sys.argv[1:] if argv is None else argv
    terminal = guard_streams()
    chosen = _chosen(commands, argv)
    try:
        args = _parser(program, description, commands, argv).parse_args(argv)
        if not hasattr(args, "run"):  # no command, or one that has commands
            args.used_parser.print_help()
            return 0
        with LINE.on(None if chosen is None or chosen.program else terminal):
            return int(args.run(args))
    except ModuleNotFoundError as error:
        sys.stderr.write(f"error: {_missing_extra(program, commands, argv, error)}\n")
        return 1
    except InstallationError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # `... | head` closed the pipe, and an error message would fail too.
        sys.stderr.close()
        return 141


def _missing_extra(
    program: str, commands: Sequence[Command], argv: Sequence[str], error: ModuleNotFoundError
) -> str:
    """The command that needs a library which is not installed, and how to install it.

    Raises:
        ModuleNotFoundError: no extra has that module.
    """
    command, library = _chosen(commands, argv), (error.name or "").partition(".")[0]
    if command is None or library not in LIBRARIES:
        raise error
    return (
        f"`{program} {command.name}` needs the Python package {library}, which is not installed; "
        f"run: pip install 'kube-scheduler-operator[{command.extra}]'"
    )


if __name__ == "__main__":
    sys.exit(main())
