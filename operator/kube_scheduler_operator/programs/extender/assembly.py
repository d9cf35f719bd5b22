"""Builds agents from a configuration; unchanged policies survive a reload."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from ...base.klog import kv
from ...policies import policy as policies
from ...policies.cluster import Cluster
from ...policies.policy import Policy
from .agent import Member, PolicyAgent
from .config import Config, MemberSpec
from .routes import Verb, verbs_of
from .verbs import Bind, VerbContext

log = logging.getLogger(__name__)

_ROOM: Final = 10_000
"""Nodes that are used from earlier requests in addition to those of the last one."""


class Assembly:
    """The agents of the current configuration.

    Attributes:
        agents: in the order of the configuration.
        verbs: path to verb.
    """

    def __init__(
        self, cluster: Cluster, context: VerbContext, bind: Bind, environ: Mapping[str, str]
    ) -> None:
        self.agents: list[PolicyAgent] = []
        self.verbs: dict[bytes, Verb] = {}
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
                    what = _policy_key(entry)
                    if what not in used:
                        used[what] = before.get(what) or self._make(entry)
                    key = json.dumps([spec.name, position, entry.name, entry.weight, what])
                    member = self._members.get(key)
                    if member is None:
                        name = entry.name or entry.policy
                        member = Member(name, used[what], entry.weight)
                    members[key] = member
                    chosen.append(member)
                agents.append(PolicyAgent(spec, chosen, config.pod_selector))
        except Exception:
            _close(policy for what, policy in used.items() if what not in before)
            raise
        _close(policy for what, policy in before.items() if what not in used)
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
        """All policies."""
        return self._policies.values()

    def _make(self, entry: MemberSpec) -> Policy:
        return policies.make(entry.policy, entry.arguments, self._cluster, self._environ)


class NodeLearner:
    """Updates a cluster from the complete nodes of requests, in place of watches."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._versions: dict[str, str] = {}

    def __call__(self, items: list[dict[str, Any]]) -> None:
        """Take the complete nodes of a request."""
        versions = self._versions
        for item in items:
            metadata = item["metadata"]
            name, version = metadata["name"], metadata.get("resourceVersion")
            if version is None or versions.get(name) != version:
                versions[name] = version
                try:
                    self._cluster.set_node(item)
                except (TypeError, ValueError, AttributeError) as error:
                    log.debug("A node cannot be parsed", extra=kv(node=name, err=str(error)))
        if len(versions) > len(items) + _ROOM:
            here = {item["metadata"]["name"] for item in items}
            for name in [name for name in versions if name not in here]:
                del versions[name]
                self._cluster.remove_node(name)


def _policy_key(entry: MemberSpec) -> str:
    return json.dumps([entry.policy, entry.arguments], sort_keys=True, default=str)


def _close(gone: Iterable[Policy]) -> None:
    for policy in gone:
        policy.close()
