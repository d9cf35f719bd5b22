"""Checks of OperatorSettings."""

from __future__ import annotations

from collections.abc import Sequence

from ...base import names
from ...base.findings import WARNING, Problem
from ...base.objects import mapping
from ..effective.settings.requested_pod import OWN_RESOURCES
from ..effective.settings.validate import PodDefaults, settings_problems, settings_warnings
from .checks import NOT_READ, Checked, CheckOptions, Item


def check_operator_settings(items: Sequence[Item], options: CheckOptions) -> Checked:
    """Check OperatorSettings as the operator does; what was adopted is unknown."""
    checked = Checked()
    # An adopted request may differ, so a limit below the default request need not be an error.
    defaults = PodDefaults(OWN_RESOURCES if not options.platform.adopts_pods else {})
    for index, item in enumerate(items):
        problems = list(settings_problems(item.document.root.data, defaults))
        if not problems:
            spec = mapping(item.value.get("spec"))
            problems = [
                Problem(warning.reason, warning.path, warning.message, warning.fix, WARNING)
                for warning in settings_warnings(spec, options.platform, defaults)
            ]
        path = ("metadata", "name")
        if item.name != names.CLUSTER:
            message = f'the API server rejects {item.kind} "{item.name}"; a cluster has one'
            problems.insert(0, Problem(NOT_READ, path, message, f'rename it to "{names.CLUSTER}"'))
        elif index:
            message = f"{item.kind} is already defined, and a cluster has one"
            problems.insert(0, Problem(NOT_READ, path, message, "remove one of them"))
        checked.problems += [(item, problem) for problem in problems]
    return checked
