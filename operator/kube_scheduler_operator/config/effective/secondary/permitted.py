"""What users may set for the process of a SecondaryScheduler: its image and its command.

Its Pods have the rights of a scheduler, so they only run a kube-scheduler that an administrator
allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ....base import names
from ....base.findings import ERROR, NOT_ALLOWED, Finding, Problem, format_path
from ....base.images import AllowedImages
from .confinement import confinement_problems
from .request import SchedulerRequest

_WORD: Final = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./-]*")


def refused_settings(
    request: SchedulerRequest, operand: str, allowed: AllowedImages, agents: AllowedImages
) -> Iterator[Finding]:
    """Yield an error for each setting that is not permitted.

    Args:
        request: the SecondaryScheduler.
        operand: the control plane's image, whose repository is always allowed.
        allowed: the images that the operator's settings allow.
        agents: the same images and the operator's own.
    """
    images = allowed.with_repositories_of(operand)
    problems: list[Problem] = []
    if request.image:
        problems += images.problems(("image",), request.image)
    for index, word in enumerate(request.command):
        if not _WORD.fullmatch(word):
            message = (
                f'"{word}" is not the path or name of a program; write flags into '
                "spec.extraArguments"
            )
            problems.append(Problem(NOT_ALLOWED, ("command", index), message))
    problems += confinement_problems(request.sidecars, request.volumes, agents)
    for problem in problems:
        path = format_path(("spec", *problem.path))
        blocking = problem.severity == ERROR
        condition = names.DEGRADED if blocking else names.WARNINGS
        yield Finding(condition, problem.reason, path, problem.sentence, blocking=blocking)
