"""`kubectl scheduler pending`: all waiting pods by cause, and what would help."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from ...simulate.kinds import pod_name
from ..console.errors import prints_errors
from ..console.flags import add_cluster_flags, add_output_flag
from ..console.output import counted, first_names, print_document, text_of
from ..simulation.run import (
    Simulation,
    add_simulation_flags,
    from_cluster,
    missing_lines,
    run_simulating,
)

if TYPE_CHECKING:
    from ...simulate.pending import WaitingGroup

_FIXES: Final = 5


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "pending",
        description="Shows all pods without a node by cause: how many, since when, and whose they "
        "are; and the pods that a ReplicaSet may not create, for example because of a quota. For "
        "the largest groups, changes of the oldest pod are tried, as `why` does. A kube-scheduler "
        "decides, on this machine or in a Job in the cluster, over a copy of the cluster in "
        "memory; nothing else is written to the cluster.",
    )
    scope = parser.add_mutually_exclusive_group()
    scope.add_argument("-n", "--namespace", help="only the pods of this namespace")
    scope.add_argument(
        "-A", "--all-namespaces", action="store_true", help="all namespaces (the default)"
    )
    parser.add_argument(
        "--fixes",
        type=int,
        default=_FIXES,
        metavar="N",
        help="number of groups for which changes are tried (default: %(default)s)",
    )
    add_simulation_flags(parser)
    add_cluster_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=run)


@prints_errors()
def run(args: argparse.Namespace) -> int:
    return run_simulating(
        args,
        lambda simulation: _show(simulation, args),
        lambda api, platform: from_cluster(api, platform, args, None),
    )


async def _show(simulation: Simulation, args: argparse.Namespace) -> int:
    from ...simulate.owners import missing_pods
    from ...simulate.pending import waiting_groups

    groups = await simulation.ask(waiting_groups, namespace=args.namespace, fixes=args.fixes)
    missing = missing_pods(simulation.world, args.namespace)
    document = {
        "groups": [to_document(group) for group in groups],
        "missing": [asdict(pods) for pods in missing],
        "notes": simulation.notes,
    }
    text = list(lines(groups))
    for pods in missing:
        text += ["", *missing_lines(pods)]
    text += (f"note: {note}" for note in simulation.notes)
    print_document(document, args.output, text_of(text))
    return 0


def to_document(group: WaitingGroup) -> dict[str, Any]:
    return {
        "kind": group.kind,
        "cause": group.cause,
        "since": group.since,
        "owners": group.owners,
        "pods": [pod_name(pod) for pod in group.pods],
        "fix": group.fix.text if group.fix else None,
        "tried": group.tried,
    }


def lines(groups: Sequence[WaitingGroup]) -> Iterator[str]:
    total = sum(len(group.pods) for group in groups)
    if not total:
        yield "No pod waits for a node."
        return
    yield f"{counted(total, 'pod')} without a node:"
    for group in groups:
        yield ""
        since = f", oldest since {group.since}" if group.since else ""
        yield f"{counted(len(group.pods), 'pod')}{since}: {group.cause}"
        yield f"  pods    {first_names([pod_name(pod) for pod in group.pods])}"
        yield f"  owners  {first_names(group.owners)}"
        if group.fix is not None:
            yield f"  helps   {pod_name(group.pods[0])}: {group.fix.text}"
        elif group.tried:
            yield f"  helps   {pod_name(group.pods[0])}: no change was found"
