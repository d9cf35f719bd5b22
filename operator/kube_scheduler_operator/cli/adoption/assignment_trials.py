"""Tries what applies `spec.assign`: creates Pods that SecondarySchedulers select, as a dry run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from ...base import names
from ...base.objects import Object, mapping
from ...base.platform import Platform
from ...config.language.schema import DEFAULT_SCHEDULER
from ...kube import resource as kinds
from ...kube.errors import KubeError
from ...kube.label_selector import EXISTS, IN, requirements
from ...operator.secondary.assignment import CLASSES, PODS, chosen, in_effect
from ..checks.check import AssignmentTrial
from ..checks.small_pod import small_pod
from ..console.errors import error_message

if TYPE_CHECKING:
    from ...kube.client import ApiClient

_NAME: Final = "scheduler-check"

_NAMESPACES: Final = 5
"""The most namespaces that are tried, until one accepts the Pod."""

_ATTEMPTS: Final = 2
"""A webhook is passed over after a second, also by an API server that is busy for a moment."""


async def try_assignments(
    api: ApiClient, dry: ApiClient, platform: Platform, schedulers: Sequence[Object]
) -> dict[str, AssignmentTrial]:
    """Try each assignment in effect, by the name of its SecondaryScheduler; `dry` has dryRun.

    Raises:
        KubeError: namespaces cannot be listed.
    """
    assigning = [obj for obj in schedulers if in_effect(obj)]
    if not assigning:
        return {}
    namespaces = {
        str(item["metadata"]["name"]): mapping(item["metadata"].get("labels"))
        for item in (await api.list(kinds.NAMESPACES)).items
        if item["metadata"]["name"] not in platform.unassigned_namespaces
    }
    trials = {}
    for obj in assigning:
        assignment = in_effect(obj)
        pod = _pod(mapping(assignment.get("pods")))
        expected = str(assignment.get("schedulerName") or "")
        selected = islice(_selecting(namespaces, assigning, pod, expected), _NAMESPACES)
        trials[str(obj["metadata"]["name"])] = await _try(dry, pod, list(selected), expected)
    return trials


def _pod(selected: Mapping[str, Any]) -> Object:
    """Return a Pod that meets the selector of Pods and has one of the PriorityClasses, if it can.

    A label that must exist is empty.
    """
    labels = {
        requirement.key: (requirement.values or ("",))[0]
        for requirement in requirements(selected.get(PODS))
        if requirement.operator in (IN, EXISTS)
    }
    pod = small_pod(_NAME, "", labels, DEFAULT_SCHEDULER)
    if classes := selected.get(CLASSES):
        pod["spec"]["priorityClassName"] = classes[0]
    return pod


def _selecting(
    namespaces: Mapping[str, Mapping[str, str]],
    schedulers: Sequence[Object],
    pod: Object,
    expected: str,
) -> Iterator[str]:
    """Yield the namespaces in which a Pod should get the schedulerName `expected`."""
    labels, class_ = pod["metadata"]["labels"], str(pod["spec"].get("priorityClassName") or "")
    for namespace, of_namespace in sorted(namespaces.items()):
        never = of_namespace.get(names.ASSIGN_LABEL) == names.ASSIGN_NEVER
        if not never and chosen(schedulers, of_namespace, labels, class_) == expected:
            yield namespace


async def _try(
    dry: ApiClient, pod: Object, namespaces: Sequence[str], expected: str
) -> AssignmentTrial:
    """Create the Pod where it is accepted."""
    refusal = "it selects Pods of no namespace that exists"
    for namespace in namespaces:
        placed = {**pod, "metadata": {**pod["metadata"], "namespace": namespace}}
        try:
            for _ in range(_ATTEMPTS):
                created = await dry.create(kinds.PODS, placed)
                scheduler = str(mapping(created.get("spec")).get("schedulerName") or "")
                if scheduler == expected:
                    break
        except KubeError as error:
            refusal = f"namespace {namespace} refuses the Pod: {error_message(error)}"
            continue
        return AssignmentTrial(expected, namespace, scheduler)
    return AssignmentTrial(expected, unanswered=refusal)
