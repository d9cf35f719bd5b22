"""An agent: one or several policies that kube-scheduler calls as one extender."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...base.klog import kv
from ..policies.arrays import Ints, np
from ..policies.pods import Pod
from ..policies.policy import BEST, Policy, Rejections
from .config import FAIL, AgentSpec, PodSelector
from .wire import Args, unformatted

log = logging.getLogger(__name__)

_QUIET: Final = 60.0
"""Seconds between two logged errors of a policy; all errors are counted."""

_TEXTS: Final = 10_000
"""Cached reasons per policy; the reason of a node rarely changes."""


class PolicyFailedError(Exception):
    """A policy raised, and the agent's failure policy is FAIL."""


@dataclass(slots=True)
class Member:
    name: str  # name in responses and logs
    policy: Policy
    weight: int = 1  # weight of its score; 0: the score is ignored
    errors: int = 0
    rejected: int = 0
    logged: float = float("-inf")  # when its last error was logged
    _texts: dict[str, str] = field(default_factory=dict)

    def formatted(self, reasons: Mapping[int, str]) -> dict[int, str]:
        """Return the reasons as they appear in responses."""
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
    known: Ints  # score 0..BEST of each of `args.indices` (intp[k])
    unknown: int = 0  # score of each node that is not in the cluster
    # (policy, weight, scores as in `known`) of each policy that scored
    parts: list[tuple[str, int, Ints]] = field(default_factory=list)

    def all(self, args: Args) -> list[int]:
        """Return the scores in the order of the request."""
        if args.positions is None:
            return [int(score) for score in self.known]
        scores = [self.unknown] * len(args.names)
        for position, score in zip(args.positions.tolist(), self.known.tolist(), strict=True):
            scores[position] = score
        return scores


class PolicyAgent:
    """Calls its policies and combines their results.

    A policy that raises or returns an invalid result is skipped, so a bug affects the quality of
    placement but does not fail a scheduling cycle. With the failure policy FAIL the call fails
    instead, for policies that must not be skipped.
    """

    def __init__(
        self,
        spec: AgentSpec,
        members: list[Member],
        selector: PodSelector,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = spec.name  # name in URLs
        self.members = members
        self._filtering = [member for member in members if member.policy.filters]
        self._scoring = [member for member in members if member.policy.scores and member.weight]
        # whether a policy counts the Pods of nodes
        self.counts_pods = any(member.policy.pods for member in members)
        self._fail = spec.failure_policy == FAIL
        self._selector = selector if selector != PodSelector() else None
        self._clock = clock

    def selects(self, pod: Pod) -> bool:
        """Return whether the agent applies to the Pod."""
        selector = self._selector
        if selector is None:
            return True
        if selector.scheduler_names and pod.scheduler_name not in selector.scheduler_names:
            return False
        labels: Mapping[str, str] = pod.labels
        return all(labels.get(key) == value for key, value in selector.match_labels.items())

    def filter(self, args: Args) -> Rejections | None:
        """Return the rejected nodes by their position in the request; None: none.

        Raises PolicyFailedError.
        """
        pod = args.pod
        if not self.selects(pod) or not len(args.indices):
            return None
        total: Rejections | None = None
        for member in self._filtering:
            rejections = self._filter(member, pod, args.indices)
            if rejections is None or not rejections.reasons:
                continue
            member.rejected += len(rejections.reasons)
            reasons = member.formatted(rejections.reasons)
            if total is None:
                total = Rejections(reasons, rejections.unresolvable, rejections.figures)
                continue
            total.reasons = _joined(total.reasons, reasons)
            total.figures = _joined(total.figures, rejections.figures)
            total.unresolvable = total.unresolvable | rejections.unresolvable
        if total is not None and args.positions is not None:
            positions = args.positions.tolist()
            total.figures = {
                positions[at]: figures
                for at, figures in total.figures.items()
                if at in total.reasons
            }
            total.reasons = {positions[at]: reason for at, reason in total.reasons.items()}
            total.unresolvable = {positions[at] for at in total.unresolvable}
        return total

    def score(self, args: Args) -> Scores:
        """Return the scores of the nodes of a request.

        Nodes that are not in the cluster get the median score, which neither favours nor penalizes
        them. Raises PolicyFailedError.
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
        """Return each policy's inputs for each node."""
        inputs: dict[str, list[dict[str, Any]]] = {}
        for member in self.members:
            try:
                inputs[member.name] = member.policy.explain(args.pod, args.indices)
            except Exception as error:
                self._failed(member, error)
        return inputs

    def _filter(self, member: Member, pod: Pod, indices: Ints) -> Rejections | None:
        try:
            rejections = member.policy.filter(pod, indices)
            if rejections is not None and rejections.reasons:
                low, high = min(rejections.reasons), max(rejections.reasons)
                if low < 0 or high >= len(indices):
                    raise IndexError(
                        f"position {high if low >= 0 else low} of {len(indices)} nodes"
                    )
        except Exception as error:
            self._failed(member, error)
            return None
        return rejections

    def _score(self, member: Member, pod: Pod, indices: Ints) -> Ints | None:
        try:
            scores = member.policy.score(pod, indices)
            return None if scores is None else _in_range(scores, len(indices))
        except Exception as error:
            self._failed(member, error)
            return None

    def _failed(self, member: Member, error: Exception) -> None:
        member.errors += 1
        now = self._clock()
        if now - member.logged >= _QUIET:
            member.logged = now
            values = kv(agent=self.name, policy=member.name, errors=member.errors)
            log.error("A policy failed", extra=values, exc_info=error)
        if self._fail:
            raise PolicyFailedError(f"policy {member.name} failed: {error!r}") from error


def _in_range(scores: Any, count: int) -> Ints:
    """Round scores to integers 0..BEST, one for each of `count` nodes.

    Raises:
        ValueError: the number of scores is wrong.
    """
    checked = np.asarray(scores)
    if checked.shape != (count,):
        raise ValueError(f"{checked.shape} scores for {count} nodes")
    if checked.dtype.kind in "iu":
        exact: Ints = checked.astype(np.intp)
        # As unsigned integers, negative ones are huge: one comparison finds all out of range.
        if not count or np.maximum.reduce(exact.view(np.uintp)) <= BEST:
            return exact
    else:
        checked = np.rint(np.nan_to_num(checked.astype(np.float64), posinf=BEST, neginf=0))
    whole: Ints = np.minimum(np.maximum(checked, 0), BEST).astype(np.intp, copy=False)
    return whole


def _joined(before: Mapping[int, str], more: Mapping[int, str]) -> dict[int, str]:
    """Return the reasons of several policies for the same nodes."""
    return {
        at: "; ".join(reason for reason in (before.get(at), more.get(at)) if reason)
        for at in {**before, **more}
    }
