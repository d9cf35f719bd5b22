"""From a configuration to agents that answer; what stays the same outlives a reload."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from ...base.klog import kv
from ...policies import policy as policies
from .agent import Agent, Member
from .config import Config
from .config import Member as Wanted
from .routes import Verb, verbs_of

if TYPE_CHECKING:
    from ...policies.cluster import Cluster
    from ...policies.policy import Policy
    from .verbs import Bind, Context

log = logging.getLogger(__name__)

_ROOM: Final = 10_000
"""Nodes that may be remembered of requests beyond those of the last one."""


class Assembly:
    """The agents of the configuration that is in use.

    Attributes:
        agents: by the configuration's order.
        verbs: path to verb.
    """

    def __init__(
        self, cluster: Cluster, context: Context, bind: Bind, environ: Mapping[str, str]
    ) -> None:
        self.agents: list[Agent] = []
        self.verbs: dict[bytes, Verb] = {}
        self._cluster = cluster
        self._context = context
        self._bind = bind
        self._environ = environ
        self._members: dict[str, Member] = {}
        self._policies: dict[str, Policy] = {}

    def use(self, config: Config) -> None:
        """Serve this configuration from now on.

        A policy goes on with what it has learned, and what was counted goes on being counted. What
        several agents have with the same arguments is one policy.

        Raises:
            Exception: what a policy raises when it is made; nothing has changed then.
        """
        before = self._policies
        kept: dict[str, Policy] = {}
        members: dict[str, Member] = {}
        agents = []
        try:
            for spec in config.agents:
                chosen = []
                for position, wanted in enumerate(spec.members):
                    what = _policy_key(wanted)
                    if what not in kept:
                        kept[what] = before.get(what) or self._make(wanted)
                    key = json.dumps([spec.name, position, wanted.name, wanted.weight, what])
                    member = self._members.get(key)
                    if member is None:
                        name = wanted.name or wanted.policy
                        member = Member(name, kept[what], wanted.weight)
                    members[key] = member
                    chosen.append(member)
                agents.append(Agent(spec, chosen, config.pod_selector))
        except Exception:
            _close(policy for what, policy in kept.items() if what not in before)
            raise
        _close(policy for what, policy in before.items() if what not in kept)
        verbs = verbs_of(agents, self._context, self._bind)
        for path, verb in verbs.items():
            old = self.verbs.get(path)
            if old is not None:
                verb.calls = old.calls
        self.agents, self.verbs = agents, verbs
        self._members, self._policies = members, kept
        for agent in agents:
            names = ", ".join(member.name for member in agent.members)
            log.info("Serving", extra=kv(agent=agent.name, policies=names))

    def policies(self) -> Iterable[Policy]:
        """All of them."""
        return self._policies.values()

    def _make(self, wanted: Wanted) -> Policy:
        return policies.make(wanted.policy, wanted.arguments, self._cluster, self._environ)


class Learner:
    """Keeps the nodes of a cluster by what requests say of them, for who does not watch the API."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._versions: dict[str, str] = {}

    def __call__(self, items: list[dict[str, Any]]) -> None:
        """The nodes of a request (form with whole nodes)."""
        versions = self._versions
        for item in items:
            metadata = item["metadata"]
            name, version = metadata["name"], metadata.get("resourceVersion")
            if version is None or versions.get(name) != version:
                versions[name] = version
                try:
                    self._cluster.set_node(item)
                except (TypeError, ValueError, AttributeError) as error:
                    log.debug("A node cannot be read", extra=kv(node=name, err=str(error)))
        if len(versions) > len(items) + _ROOM:
            here = {item["metadata"]["name"] for item in items}
            for name in [name for name in versions if name not in here]:
                del versions[name]
                self._cluster.remove_node(name)


def _policy_key(wanted: Wanted) -> str:
    return json.dumps([wanted.policy, wanted.arguments], sort_keys=True, default=str)


def _close(gone: Iterable[Policy]) -> None:
    for policy in gone:
        policy.close()
