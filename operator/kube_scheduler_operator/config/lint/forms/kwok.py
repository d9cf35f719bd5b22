"""kwok: componentsPatches of a KwokctlConfiguration.

Source: kwok 0.7, pkg/apis/config/v1alpha1.
"""

from __future__ import annotations

from ....base.findings import Path
from ....base.source.reader import Document
from .document_fields import objects, value_of
from .flags import of_names
from .form import CommandLine, Contents


def read(document: Document) -> Contents:
    value = value_of(document)
    commands = []
    for index, patch in objects(value.get("componentsPatches")):
        path: Path = ("componentsPatches", index, "extraArgs")
        if patch.get("name") == "kube-scheduler":
            arguments = tuple(of_names(patch.get("extraArgs"), path, "key"))
            commands.append(CommandLine("KwokctlConfiguration", arguments, path))
    return Contents(commands=tuple(commands))
