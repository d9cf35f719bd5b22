"""The checks before an installation, and those of an installed operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from . import installation, operation, surroundings
from .check import Check, CheckResult, ClusterFacts, run_check

_COMMON: Final = (
    Check("api-server", surroundings.api_server),
    Check("platform", surroundings.platform),
)
_MACHINES: Final = (
    Check("nodes", surroundings.nodes),
    Check("clocks", surroundings.clocks),
    Check("connection-certificates", surroundings.connection_certificates),
)

BEFORE: Final = (
    *_COMMON,
    Check("your-rights", installation.your_rights),
    Check("crds", installation.crds),
    Check("namespace", installation.namespace),
    Check("admission", installation.admission),
    Check("webhooks", installation.webhooks),
    Check("other-programs", installation.other_programs),
    Check("static-pods", installation.static_pods),
    Check("ports", installation.ports),
    *_MACHINES,
    Check("images", installation.image_pull),
)
"""`check --pre`, in the order of the table."""

AFTER: Final = (
    *_COMMON,
    Check("operator", operation.operator),
    Check("operator-rights", operation.account_rights),
    Check("crds", installation.installed_crds),
    Check("conditions", operation.conditions),
    Check("revisions", operation.revisions),
    Check("schedulers", operation.operands),
    Check("secondary-schedulers", operation.secondary_schedulers),
    Check("assignment", operation.assignment),
    Check("objects", operation.objects),
    Check("images", operation.images),
    Check("webhooks", installation.webhooks),
    Check("certificates", surroundings.certificates),
    *_MACHINES,
)
"""`check`, in the order of the table."""


RUNNING: Final = tuple(
    check
    for check in AFTER
    if check.name in ("operator", "secondary-schedulers", "assignment", "images")
)
"""Those of `check` that `status` shows as well: what no condition of KubeScheduler reports."""

UNOBSERVED: Final = tuple(check for check in AFTER if check.name == "schedulers")
"""What `status` shows as well while no operator observes the control plane's schedulers."""


NOT_OBSERVED: Final = (Check("objects", operation.unobserved_objects),)
"""The part of a check that `status` shows as well."""


def run_checks(checks: Sequence[Check], facts: ClusterFacts) -> tuple[CheckResult, ...]:
    return tuple(result for check in checks for result in run_check(check, facts))
