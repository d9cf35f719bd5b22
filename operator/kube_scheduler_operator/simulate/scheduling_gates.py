"""Who removes a scheduling gate from a pod, and where to see what it does.

Sources: the documentation of Kueue, OpenShift's multiarch tuning operator, NVIDIA Grove and
Keptn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ..base.foreign_text import foreign
from ..base.limits import FOREIGN_NAME

_MOST: Final = 5
"""Gates that are explained."""
_KNOWN: Final[Mapping[str, tuple[str, str]]] = {
    "kueue.x-k8s.io/": ("Kueue", "kubectl describe workloads.kueue.x-k8s.io -n {namespace}"),
    "multiarch.openshift.io/": (
        "the multiarch tuning operator",
        "kubectl describe pod -n {namespace} {pod}",
    ),
    "keptn-prechecks-gate": (
        "Keptn",
        "kubectl describe keptnworkloadversions.lifecycle.keptn.sh -n {namespace}",
    ),
    "grove.io/": ("Grove", "kubectl describe podgangs.scheduler.grove.io -n {namespace}"),
}
"""By the beginning of the gate's name: who removes it, and the command that shows what it does."""


def removers(pod: Mapping[str, Any], gates: Sequence[str]) -> list[str]:
    """Say of each gate who removes it, as a sentence."""
    metadata = pod["metadata"]
    found = []
    for gate in gates[:_MOST]:
        shown = foreign(gate, FOREIGN_NAME)
        for prefix, (who, command) in _KNOWN.items():
            if gate.startswith(prefix):
                asked = command.format(namespace=metadata["namespace"], pod=metadata["name"])
                found.append(f"{who} removes the gate {shown}: {asked}")
                break
        else:
            domain = foreign(gate.partition("/")[0], FOREIGN_NAME) if "/" in gate else ""
            whose = (
                f"a controller of {domain}, by its name" if domain else "the client that has set it"
            )
            found.append(
                f"the gate {shown} is to be removed by {whose}; see whether it runs, and its log"
            )
    return found
