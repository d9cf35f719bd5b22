"""The question of `kubectl scheduler nodes`: from its flags to the answer."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Final

from ...base.field_types import document_of
from ...base.quantities import CPU, EPHEMERAL_STORAGE, MEMORY, amount, quantity
from ...kube.client import ApiClient
from ...kube.errors import Forbidden
from ...kube.resource import PODS
from ...simulate.node_answer import NodesAnswer
from ...simulate.node_room import nodes_answer
from ...simulate.read_cluster import read_nodes
from ...simulate.world import World
from ..cluster.answers import ClusterAnswer, ClusterQuestion, answering, refuse_contexts
from ..cluster.connection import ClusterConnection
from ..console.errors import CommandError, UsageError, error_message
from ..console.output import print_document, text_of
from ..console.parser import meant
from .nodes_text import nodes_lines
from .run import files_with_nodes

_PLAIN: Final = (CPU, MEMORY, EPHEMERAL_STORAGE)
_HUGE_PAGES: Final = "hugepages-"
_MOST_REQUESTS: Final = 32
_EXAMPLE: Final = "cpu=500m,memory=1Gi"


def show_nodes(args: argparse.Namespace) -> int:
    """Print the answer about the files, or about the cluster.

    Raises:
        UsageError: a flag or a file cannot be used.
    """
    shape = None if args.fits is None else shape_of(args.fits)
    if args.sort == "fits" and shape is None:
        raise UsageError(f"--sort fits needs --fits REQUESTS, such as --fits {_EXAMPLE}")
    if args.from_files:
        refuse_contexts(args)
        world = files_with_nodes(args.from_files).world
        if not world.objects[PODS]:
            world.notes.append("the files have no Pod on a node, so all nodes count as empty")
        answer = _answer(args, world, shape, datetime.now(UTC))
        print_document(answer.document, args.output, answer.text)
        return answer.code
    return answering(ClusterQuestion(partial(_ask, shape)))(args)


async def _ask(shape: dict[str, int] | None, connection: ClusterConnection) -> ClusterAnswer:
    api, args = connection.api, connection.args
    return _answer(args, await _read(api, args.namespace), shape, api.clock.now())


async def _read(api: ApiClient, namespace: str) -> World:
    try:
        return await read_nodes(api, namespace or None)
    except Forbidden as error:
        if error.request.resource is not PODS or namespace:
            raise
        raise CommandError(
            error_message(error),
            "with the right to list Pods in one namespace, -n NAMESPACE shows what its Pods "
            "request; what is free is not known then",
        ) from None


def _answer(
    args: argparse.Namespace, world: World, shape: dict[str, int] | None, now: datetime
) -> ClusterAnswer:
    answer: NodesAnswer = nodes_answer(
        world, now, shape=shape, namespace=args.namespace, sort=args.sort
    )
    return ClusterAnswer(document_of(answer), text_of(nodes_lines(answer, args.nodes)))


def shape_of(text: str) -> dict[str, int]:
    """Return the requests that `--fits` names.

    Raises:
        UsageError: it is not a list of resources and quantities.
    """
    requests: dict[str, int] = {}
    for part in text.split(","):
        name, equals, value = part.strip().partition("=")
        if not equals or not name:
            raise UsageError(f'--fits: "{part}" is not RESOURCE=QUANTITY, such as {_EXAMPLE}')
        if problem := _not_requested(name):
            raise UsageError(f"--fits: {problem}")
        if name in requests:
            raise UsageError(f"--fits: {name} is there twice; name each resource once")
        requests[name] = _amount(name, value)
    if len(requests) > _MOST_REQUESTS:
        raise UsageError(f"--fits: {len(requests)} resources; name at most {_MOST_REQUESTS}")
    return requests


def _not_requested(name: str) -> str:
    """Return why a container cannot request a resource of this name; empty if it can."""
    if name in _PLAIN or name.startswith(_HUGE_PAGES) or "/" in name:
        return ""
    if name == "pods":
        return "pods cannot be requested: each Pod counts as one"
    known = f"{', '.join(_PLAIN)}, {_HUGE_PAGES}SIZE"
    similar = "" if "gpu" in name else meant(name, _PLAIN)  # it is close to cpu by chance
    return f"{name} is none of {known} or a name with a domain, such as nvidia.com/gpu{similar}"


def _amount(name: str, value: str) -> int:
    try:
        found = int(amount(name, value))
        whole = name in _PLAIN or Decimal(quantity(value, milli=True)) % 1000 == 0
    except ValueError as error:
        raise UsageError(f"--fits: {name}: {error}") from None
    if found <= 0:
        raise UsageError(f"--fits: {name}: {value} is not more than 0")
    if not whole:
        raise UsageError(f"--fits: {name}: {value} is not a whole number, as it has to be")
    return found
