"""One extender as kube-scheduler sees it: one policy, or several that decide together."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ...base.klog import kv
from ...policies.arrays import np
from ...policies.policy import BEST, Policy, Rejections
from .config import FAIL, AgentSpec, PodSelector
from .wire import unformatted

if TYPE_CHECKING:
    from ...policies.arrays import Ints
    from ...policies.pods import Pod
    from .wire import Args

log = logging.getLogger(__name__)

_QUIET: Final = 60.0
"""Seconds for which a policy's further errors are only counted."""

_TEXTS: Final = 10_000
"""Reasons that are kept in words, for each policy; those of a node stay the same for a while."""


class PolicyFailedError(Exception):
    """A policy raised, and the agent is to fail then."""


@dataclass(slots=True)
class Member:
    """A policy within an agent.

    Attributes:
        name: what it is called.
        policy: itself.
        weight: of its score; 0: that does not count.
        errors: how often it raised.
        rejected: how many nodes it rejected.
        complained: when its last error was logged.
    """

    name: str
    policy: Policy
    weight: int = 1
    errors: int = 0
    rejected: int = 0
    complained: float = float("-inf")
    _texts: dict[str, str] = field(default_factory=dict)

    def told(self, reasons: Mapping[int, str]) -> dict[int, str]:
        """The reasons as others get to read them."""
        texts = self._texts
        try:
            return {at: texts[reason] for at, reason in reasons.items()}
        except KeyError:
            if len(texts) > _TEXTS:
                texts.clear()
            for reason in reasons.values():
                texts[reason] = unformatted(f"{self.name}: {reason}")
            return {at: texts[reason] for at, reason in reasons.items()}


@dataclass(slots=True)
class Scores:
    """What was said of the nodes of a request.

    Attributes:
        known: of each of `args.indices`: 0..BEST (intp[k]).
        unknown: of each node that the cluster does not know.
        parts: (policy, weight, scores as in `known`) of each policy that had an opinion.
    """

    known: Ints
    unknown: int = 0
    parts: list[tuple[str, int, Ints]] = field(default_factory=list)

    def all(self, args: Args) -> list[int]:
        """In the order of the request."""
        if args.positions is None:
            return [int(score) for score in self.known]
        scores = [self.unknown] * len(args.names)
        for position, score in zip(args.positions.tolist(), self.known.tolist(), strict=True):
            scores[position] = score
        return scores


class Agent:
    """Asks its policies and puts together what they say.

    A policy that raises, or says what makes no sense, has no opinion: the filter accepts and the
    score is that of the others. So a bug costs placement quality and never a scheduling cycle.
    With the failure policy FAIL the call fails instead, for policies that must not be passed over.

    Attributes:
        name: what it is served as.
        members: its policies.
        filters, scores: whether one of them does.
    """

    def __init__(
        self,
        spec: AgentSpec,
        members: list[Member],
        selector: PodSelector,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = spec.name
        self.members = members
        self.filters = any(member.policy.filters for member in members)
        self._filtering = [member for member in members if member.policy.filters]
        self._scoring = [member for member in members if member.policy.scores and member.weight]
        self.scores = bool(self._scoring)
        self._fail = spec.failure_policy == FAIL
        self._selector = selector if selector != PodSelector() else None
        self._clock = clock

    def selects(self, pod: Pod) -> bool:
        """Whether the pod is one that it looks at."""
        selector = self._selector
        if selector is None:
            return True
        if selector.scheduler_names and pod.scheduler_name not in selector.scheduler_names:
            return False
        labels: Mapping[str, str] = pod.labels
        return all(labels.get(key) == value for key, value in selector.match_labels.items())

    def filter(self, args: Args) -> Rejections | None:
        """Which nodes of a request are rejected, by their position in it; None: none.

        Raises:
            PolicyFailedError: a policy raised, and that is to count.
        """
        pod = args.pod
        if not self.selects(pod) or not len(args.indices):
            return None
        found: Rejections | None = None
        for member in self._filtering:
            rejections = self._filter(member, pod, args.indices)
            if rejections is None or not rejections.reasons:
                continue
            member.rejected += len(rejections.reasons)
            told = member.told(rejections.reasons)
            if found is None:
                found = Rejections(told, rejections.unresolvable, rejections.figures)
                continue
            found.reasons = _joined(found.reasons, told)
            found.figures = _joined(found.figures, rejections.figures)
            found.unresolvable = found.unresolvable | rejections.unresolvable
        if found is not None and args.positions is not None:
            positions = args.positions.tolist()
            found.figures = {
                positions[at]: figures
                for at, figures in found.figures.items()
                if at in found.reasons
            }
            found.reasons = {positions[at]: reason for at, reason in found.reasons.items()}
            found.unresolvable = {positions[at] for at in found.unresolvable}
        return found

    def score(self, args: Args) -> Scores:
        """How well the nodes of a request suit the pod.

        Nodes that the cluster does not know get the median of those that it does: nothing is known
        for them or against them.

        Raises:
            PolicyFailedError: a policy raised, and that is to count.
        """
        pod, count = args.pod, len(args.indices)
        if not count or not self.selects(pod):
            return Scores(np.zeros(count, np.intp))
        parts = []
        for member in self._scoring:
            scores = self._score(member, pod, args.indices)
            if scores is not None:
                parts.append((member.name, member.weight, scores))
        if not parts:
            return Scores(np.zeros(count, np.intp))
        total = parts[0][2]
        if len(parts) > 1:
            weights = sum(weight for _, weight, _ in parts)
            total = np.zeros(count, np.intp)
            for _, weight, scores in parts:
                total += weight * scores
            total = (2 * total + weights) // (2 * weights)  # rounded, halves up
        unknown = 0 if args.positions is None else int(np.median(total) + 0.5)
        return Scores(total, unknown, parts)

    def explain(self, args: Args) -> dict[str, list[dict[str, Any]]]:
        """For each policy, what it looks at, node by node."""
        told: dict[str, list[dict[str, Any]]] = {}
        for member in self.members:
            try:
                told[member.name] = member.policy.explain(args.pod, args.indices)
            except Exception as error:
                self._failed(member, error)
        return told

    def close(self) -> None:
        """It is not asked any more."""
        for member in self.members:
            member.policy.close()

    def _filter(self, member: Member, pod: Pod, indices: Ints) -> Rejections | None:
        try:
            found = member.policy.filter(pod, indices)
            if found is not None and found.reasons:
                low, high = min(found.reasons), max(found.reasons)
                if low < 0 or high >= len(indices):
                    raise IndexError(
                        f"position {high if low >= 0 else low} of {len(indices)} nodes"
                    )
        except Exception as error:
            self._failed(member, error)
            return None
        return found

    def _score(self, member: Member, pod: Pod, indices: Ints) -> Ints | None:
        try:
            found = member.policy.score(pod, indices)
            return None if found is None else _in_range(found, len(indices))
        except Exception as error:
            self._failed(member, error)
            return None

    def _failed(self, member: Member, error: Exception) -> None:
        member.errors += 1
        now = self._clock()
        if now - member.complained >= _QUIET:
            member.complained = now
            values = kv(agent=self.name, policy=member.name, errors=member.errors)
            log.error("A policy failed", extra=values, exc_info=error)
        if self._fail:
            raise PolicyFailedError(f"policy {member.name} failed: {error!r}") from error


def _in_range(found: Any, count: int) -> Ints:
    """Scores as integers 0..BEST, one for each of `count` nodes.

    Raises:
        ValueError: that is not what they are.
    """
    scores = np.asarray(found)
    if scores.shape != (count,):
        raise ValueError(f"{scores.shape} scores for {count} nodes")
    if scores.dtype.kind in "iu":
        exact: Ints = scores.astype(np.intp)
        # Negative ones are huge without their sign: one look finds all that is out of range.
        if not count or np.maximum.reduce(exact.view(np.uintp)) <= BEST:
            return exact
    else:
        scores = np.rint(np.nan_to_num(scores.astype(np.float64), posinf=BEST, neginf=0))
    whole: Ints = np.minimum(np.maximum(scores, 0), BEST).astype(np.intp, copy=False)
    return whole


def _joined(before: Mapping[int, str], more: Mapping[int, str]) -> dict[int, str]:
    """What several policies say of the same nodes."""
    return {
        at: "; ".join(said for said in (before.get(at), more.get(at)) if said)
        for at in {**before, **more}
    }
