"""The extender API v1: what kube-scheduler sends and what it wants to hear.

https://pkg.go.dev/k8s.io/kube-scheduler/extender/v1. Its Go structs have no JSON tags, so keys are
capitalised; Go reads them in any case, and so does this module. Objects of Kubernetes inside keep
their own keys.

kube-scheduler sends filter and then prioritize for a pod, with a body that begins with the same
bytes, and is the same altogether if no node was rejected; if some were, its names are those that
filter left. `Reader` therefore keeps the last one and parses only what is new; lists of names are
kept for longer (names.py). With node names on the wire a body is
`{"Pod":{…},"Nodes":null,"NodeNames":[…]}`, which is parsed in two parts: JSON that is valid in each
part is valid as a whole, and whatever looks different takes the long way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import orjson

from ...policies.pods import Pod, read_pod
from .node_names import LastNames, Names, NamesError, without

if TYPE_CHECKING:
    from ...policies.arrays import Ints
    from ...policies.cluster import Cluster

_BEFORE_NAMES: Final = b',"Nodes":null,"NodeNames":['
_BEFORE_NODES: Final = b',"Nodes":'
_AFTER_NODES: Final = b',"NodeNames":null}'
_KEPT: Final = 1024 * 1024
"""A body of more bytes is not kept for the next request: such bodies hold whole nodes."""

_ALL_ACCEPTED: Final = b',"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}'


class WireError(ValueError):
    """The request is none of the extender API; the text says what is wrong with it."""


class Args:
    """ExtenderArgs: a pod, and nodes it could go to, by name or as whole objects.

    Attributes:
        object: the pod as it was sent.
        source: `{"Pod":…}`, the bytes that it was read from; empty if it was not by itself.
        nodes: the names of the nodes, in the order of the request.
        items: the nodes themselves; None in the form with names.
        items_json: the NodeList as the request has it; empty if it was not by itself.
        left: the names that a filter has left, which are probably asked about next.
    """

    __slots__ = ("_pod", "items", "items_json", "left", "nodes", "object", "source")

    def __init__(
        self,
        obj: Mapping[str, Any],
        nodes: Names,
        items: list[dict[str, Any]] | None = None,
    ) -> None:
        self.object = obj
        self.nodes = nodes
        self.items = items
        self.left: Names | None = None
        self._pod: Pod | None = None
        self.source = b""
        self.items_json = b""

    @property
    def pod(self) -> Pod:
        """The pod, read when it is first asked for.

        Raises:
            WireError: the object is no pod.
        """
        if self._pod is None:
            try:
                self._pod = read_pod(self.object)
            except (TypeError, ValueError, AttributeError, KeyError, OverflowError) as error:
                raise WireError(f"Pod cannot be read: {error}") from error
        return self._pod

    @property
    def names(self) -> list[str]:
        """Of the nodes."""
        return self.nodes.texts

    @property
    def indices(self) -> Ints:
        """See Names, after `locate`."""
        return self.nodes.indices

    @property
    def positions(self) -> Ints | None:
        """See Names, after `locate`."""
        return self.nodes.positions

    def with_nodes(self, nodes: Names) -> Args:
        """The same pod and other nodes."""
        other = Args(self.object, nodes)
        other._pod, other.source = self._pod, self.source
        return other

    def locate(self, cluster: Cluster) -> None:
        """Find the nodes in the cluster.

        Raises:
            WireError: a name is no text.
        """
        try:
            self.nodes.locate(cluster)
        except NamesError as error:
            raise WireError(str(error)) from error


class Reader:
    """Reads ExtenderArgs, remembering the last ones."""

    def __init__(self) -> None:
        self._body = b""
        self._prefix = b""
        self._last: Args | None = None
        self._names = LastNames()

    def read(self, body: bytes) -> Args:
        """What a body says.

        Raises:
            WireError: what is wrong with it.
        """
        last = self._last
        if last is not None and body == self._body:
            return last
        cut = body.rfind(_BEFORE_NAMES)
        if cut > 0 and body.endswith(b"]}"):
            args = self._quick(body, cut)
            if args is not None:
                return args
        elif body.endswith(_AFTER_NODES):
            args = _whole_nodes(body)
            if args is not None:
                return args
        return _read(body)

    def _quick(self, body: bytes, cut: int) -> Args | None:
        """The form with names, as Go writes it; None if it only looks like that."""
        names_json = body[cut + len(_BEFORE_NAMES) - 1 : -1]
        last, prefix = self._last, self._prefix
        try:
            if last is not None and len(prefix) == cut and body.startswith(prefix):
                left = last.left
                if left is None or left.json != names_json:
                    left = self._names.get(names_json)
                args = last.with_nodes(left)
            else:
                names = self._names.get(names_json)
                prefix = body[:cut]
                source = prefix + b"}"
                found = orjson.loads(source)
                if len(found) != 1 or not isinstance(found.get("Pod"), dict):
                    return None
                args = Args(found["Pod"], names)
                args.source = source
        except orjson.JSONDecodeError:
            return None
        if len(body) <= _KEPT:
            self._body, self._prefix, self._last = body, prefix, args
        return args


def _whole_nodes(body: bytes) -> Args | None:
    """The form with nodes, as Go writes it; None if it only looks like that."""
    cut = body.find(_BEFORE_NODES + b"{")
    if cut < 0:
        return None
    source, nodes_json = body[:cut] + b"}", body[cut + len(_BEFORE_NODES) : -len(_AFTER_NODES)]
    try:
        found, nodes = orjson.loads(source), orjson.loads(nodes_json)
    except orjson.JSONDecodeError:
        return None
    items = nodes.get("items") if isinstance(nodes, dict) else None
    if len(found) != 1 or not isinstance(found.get("Pod"), dict) or not isinstance(items, list):
        return None
    args = Args(found["Pod"], Names([_node_name(item) for item in items]), items)
    args.source, args.items_json = source, nodes_json
    return args


def _read(body: bytes) -> Args:
    """Any spelling and order of the keys."""
    given = document(body)
    pod = pod_of(given)
    names, nodes = given.get("nodenames"), given.get("nodes")
    if names is not None:
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise WireError("NodeNames must be a list of texts")
        return Args(pod, Names(names))
    if not isinstance(nodes, dict):
        raise WireError("there is neither NodeNames nor Nodes")
    found = {key.lower(): value for key, value in nodes.items()}.get("items")
    items = [] if found is None else found
    if not isinstance(items, list):
        raise WireError("Nodes.items must be a list of nodes")
    return Args(pod, Names([_node_name(item) for item in items]), items)


def pod_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The pod of a request, whose keys are in lower case. Raises WireError."""
    pod = given.get("pod")
    if not isinstance(pod, dict):
        raise WireError("Pod is missing, or is no object")
    return pod


def document(body: bytes) -> dict[str, Any]:
    """A JSON object by its keys in lower case. Raises WireError."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise WireError(f"the body is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise WireError("the body must be a JSON object")
    return {key.lower(): value for key, value in found.items()}


def _node_name(item: Any) -> str:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str):
        raise WireError("Nodes.items must be nodes with metadata.name")
    return name


# --- answers ------------------------------------------------------------------------------------


def accepted(args: Args) -> bytes:
    """ExtenderFilterResult: all nodes will do."""
    if args.items is None:
        return b'{"Nodes":null,"NodeNames":' + args.nodes.json + _ALL_ACCEPTED
    if args.items_json:
        return b'{"Nodes":' + args.items_json + b',"NodeNames":null' + _ALL_ACCEPTED
    return filtered(args, {}, ())


def filtered(args: Args, reasons: Mapping[int, str], unresolvable: Iterable[int]) -> bytes:
    """ExtenderFilterResult.

    Args:
        args: the request; the answer has its form.
        reasons: position of each rejected node, and why it is.
        unresolvable: positions among them where preemption would not help.
    """
    hopeless = set(unresolvable)
    failed: dict[str, str] = {}
    for_good: dict[str, str] = {}
    left, gone = args.nodes.split(reasons)
    for (at, reason), name in zip(reasons.items(), gone, strict=True):
        (for_good if at in hopeless else failed)[name] = unformatted(reason)
    if args.items is None:
        args.left = left
        kept = b'{"Nodes":null,"NodeNames":' + left.json
    else:
        items = orjson.dumps(without(args.items, reasons))
        kept = b'{"Nodes":{"metadata":{},"items":' + items + b'},"NodeNames":null'
    return b'%b,"FailedNodes":%b,"FailedAndUnresolvableNodes":%b,"Error":""}' % (
        kept,
        orjson.dumps(failed),
        orjson.dumps(for_good),
    )


def failed(message: str) -> bytes:
    """ExtenderFilterResult, and also ExtenderBindingResult: nothing came of it."""
    return orjson.dumps({"Error": unformatted(message)})


def unformatted(text: str) -> str:
    """A text without percent signs: kube-scheduler takes it as the format of an event's note.

    It would show `90 %!i(MISSING)s used`, and a doubled sign would be doubled in the pod's status.
    """
    return text.replace(" %", "%").replace("%", " percent") if "%" in text else text


def scored(names: Sequence[str], scores: Sequence[int]) -> bytes:
    """HostPriorityList, made of any names; `fragments.Fragments` is the quick way."""
    return orjson.dumps(
        [{"Host": name, "Score": score} for name, score in zip(names, scores, strict=True)]
    )
