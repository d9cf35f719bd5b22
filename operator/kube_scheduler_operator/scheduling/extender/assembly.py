"""Builds agents from a configuration; unchanged policies survive a reload."""

from __future__ import annotations

import json
import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from ...base.klog import kv
from ..policies import policy as policies
from ..policies.cluster import Cluster
from ..policies.policy import Policy
from .agent import Member, PolicyAgent
from .config import Config, MemberSpec
from .routes import verbs_of
from .verbs import Bind, Verb, VerbContext

log = logging.getLogger(__name__)

LEARNED_NODES: Final = 100_000
LEARNED_BYTES: Final = 64 * 1024 * 1024
"""Limits of the nodes that are known from requests; 10,000 nodes have about 30 MB."""


class Assembly:
    """The agents of the current configuration."""

    def __init__(
        self, cluster: Cluster, context: VerbContext, bind: Bind, environ: Mapping[str, str]
    ) -> None:
        self.agents: list[PolicyAgent] = []  # in the order of the configuration
        self.verbs: dict[bytes, Verb] = {}  # path to verb
        self._cluster = cluster
        self._context = context
        self._bind = bind
        self._environ = environ
        self._members: dict[str, Member] = {}
        self._policies: dict[str, Policy] = {}

    def use(self, config: Config) -> None:
        """Switch to a configuration.

        Unchanged policies keep their state, and counters continue. Agents share a policy that has
        the same arguments.

        Raises:
            Exception: a policy's constructor raised; the current configuration stays in use.
        """
        before = self._policies
        used: dict[str, Policy] = {}
        members: dict[str, Member] = {}
        agents = []
        try:
            for spec in config.agents:
                chosen = []
                for position, entry in enumerate(spec.members):
                    identity = _policy_key(entry)
                    if identity not in used:
                        used[identity] = before.get(identity) or self._make(entry)
                    key = json.dumps([spec.name, position, entry.name, entry.weight, identity])
                    member = self._members.get(key)
                    if member is None:
                        name = entry.name or entry.policy
                        member = Member(name, used[identity], entry.weight)
                    members[key] = member
                    chosen.append(member)
                agents.append(PolicyAgent(spec, chosen, config.pod_selector))
        except Exception:
            _close(policy for identity, policy in used.items() if identity not in before)
            raise
        _close(policy for identity, policy in before.items() if identity not in used)
        verbs = verbs_of(agents, self._context, self._bind)
        for path, verb in verbs.items():
            old = self.verbs.get(path)
            if old is not None:
                verb.calls = old.calls
        self.agents, self.verbs = agents, verbs
        self._members, self._policies = members, used
        for agent in agents:
            names = ", ".join(member.name for member in agent.members)
            log.info("Serving", extra=kv(agent=agent.name, policies=names))

    def policies(self) -> Iterable[Policy]:
        return self._policies.values()

    def _make(self, entry: MemberSpec) -> Policy:
        return policies.make(entry.policy, entry.arguments, self._cluster, self._environ)


class NodeLearner:
    """Updates a cluster from the complete nodes of requests, in place of watches.

    Nodes of earlier requests stay, because a request has only the candidates of one Pod. The oldest
    ones are removed when all together exceed LEARNED_NODES or LEARNED_BYTES.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._nodes: OrderedDict[str, tuple[str | None, int]] = OrderedDict()  # version, bytes
        self._bytes = 0

    def __call__(self, items: list[dict[str, Any]]) -> None:
        """Take the complete nodes of a request."""
        for item in items:
            metadata = item["metadata"]
            name, version = metadata["name"], metadata.get("resourceVersion")
            known = self._nodes.get(name)
            if known is not None and version is not None and known[0] == version:
                self._nodes.move_to_end(name)
                continue
            if known is not None:
                self._bytes -= self._nodes.pop(name)[1]
            try:
                size = _size(item)
                self._cluster.set_node(item)
            except (TypeError, ValueError, AttributeError) as error:
                log.debug("A node cannot be parsed", extra=kv(node=name, err=str(error)))
                continue
            self._nodes[name] = version, size
            self._bytes += size
        while self._bytes > LEARNED_BYTES or len(self._nodes) > LEARNED_NODES:
            name, (_, size) = self._nodes.popitem(last=False)
            self._bytes -= size
            self._cluster.remove_node(name)


def _size(item: Mapping[str, Any]) -> int:
    """Estimate the bytes that the cluster keeps of a node."""
    metadata, spec = item["metadata"], item.get("spec") or {}
    kept = metadata.get("labels"), metadata.get("annotations"), spec.get("taints")
    return len(orjson.dumps(kept))


def _policy_key(entry: MemberSpec) -> str:
    return json.dumps([entry.policy, entry.arguments], sort_keys=True, default=str)


def _close(gone: Iterable[Policy]) -> None:
    for policy in gone:
        policy.close()
