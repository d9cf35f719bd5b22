"""AKS: SchedulerConfiguration (preview) with a KubeSchedulerConfiguration as text.

Source: MicrosoftDocs/azure-aks-docs at fb060ab, articles/aks/configure-aks-scheduler.md.
"""

from __future__ import annotations

from typing import Final

from ....base.findings import WARNING, Problem
from ....base.source.reader import Document
from ...effective.profiles.aks_support import NAME
from .document_fields import at, label_of, name_of, value_of
from .form import Contents, Text

OTHER_NAME: Final = "NotRead"


def read(document: Document) -> Contents:
    value = value_of(document)
    raw = at(value, "spec", "rawConfig")
    problems = []
    if name_of(value) not in ("", NAME):
        problems.append(
            Problem(
                OTHER_NAME,
                ("metadata", "name"),
                f'AKS reads the SchedulerConfiguration "{NAME}" only, not "{name_of(value)}"',
                f"rename it to {NAME}",
                WARNING,
            )
        )
    if not isinstance(raw, str):
        problems.append(
            Problem(
                "InvalidType",
                ("spec", "rawConfig"),
                "must be a text with a KubeSchedulerConfiguration",
                "begin it with `rawConfig: |`",
            )
        )
        return Contents(problems=tuple(problems))
    text = Text(("spec", "rawConfig"), raw, label_of(value), required=True, place="aks")
    return Contents(texts=(text,), problems=tuple(problems))
