"""The answer of `kubectl scheduler pending`, as text and JSON, once or again when it changes."""

from __future__ import annotations

import argparse
from contextlib import aclosing
from typing import Final

from ...base.field_types import document_of
from ...simulate.decided_by import framed
from ...simulate.missing_pods import missing_pods
from ...simulate.pending import WaitingPods, waiting_groups
from ...simulate.world import content_hash
from ..cluster.answers import ClusterAnswer, ClusterQuestion, answering, refuse_contexts
from ..cluster.connection import ClusterConnection
from ..console.output import print_document, text_of
from .explanation_text import waiting_lines
from .run import Simulation, from_cluster, run_on_files

_READING: Final = 180.0
"""Seconds for reading one of several clusters, besides those of its simulation."""
_AT_ONCE: Final = 3
"""Contexts at once: each has a copy of its cluster in memory and a kube-scheduler over it."""


def show_waiting(args: argparse.Namespace) -> int:
    if not args.from_files:
        return answering(_QUESTION)(args)
    refuse_contexts(args)
    return run_on_files(args, lambda simulation: _print(simulation, args))


async def _print(simulation: Simulation, args: argparse.Namespace) -> int:
    answer = await _answer(simulation, args)
    print_document(answer.document, args.output, answer.text)
    return answer.code


async def _ask(connection: ClusterConnection) -> ClusterAnswer:
    """Ask kube-scheduler, unless all that was read is as it was for the last answer."""
    args, platform = connection.args, await connection.platform()
    async with aclosing(await from_cluster(connection.api, platform, args, None)) as simulation:
        read = _read(simulation) if args.watch else None
        if read is None or connection.last is None or connection.last[0] != read:
            connection.last = read, await _answer(simulation, args)
        answer: ClusterAnswer = connection.last[1]
        return answer


def _read(simulation: Simulation) -> str | None:
    """Return the hash of all that an answer depends on; None: it depends on the time as well."""
    options = simulation.options
    if options.extenders or any(other.extenders for other in options.others):
        return None  # measured loads are valid for minutes
    others = [(one.title, one.names, one.config, one.flags, one.problem) for one in options.others]
    decided = document_of(simulation.decided_by)
    own = (decided, options.config, options.flags, others, options.unread, options.refused)
    return content_hash(simulation.world, [own, simulation.idle, simulation.notes])


async def _answer(simulation: Simulation, args: argparse.Namespace) -> ClusterAnswer:
    waiting = await waiting_pods(simulation, args.namespace, args.fixes)
    text = framed(waiting.decided_by, waiting_lines(waiting), waiting.notes)
    return ClusterAnswer(document_of(waiting), text_of(text))


async def waiting_pods(simulation: Simulation, namespace: str | None, fixes: int) -> WaitingPods:
    """Return all that wait in a namespace (None: in the cluster).

    Raises:
        CommandError: kube-scheduler could not be run.
    """
    groups = await simulation.ask(
        waiting_groups, namespace=namespace, fixes=fixes, idle=dict(simulation.idle)
    )
    missing = missing_pods(simulation.world, namespace)
    return WaitingPods(groups, missing, simulation.decided_by, simulation.notes)


_QUESTION: Final = ClusterQuestion(
    _ask, at_once=_AT_ONCE, seconds=lambda args: _READING + float(args.timeout)
)
