"""The Helm chart as Helm packages it, but the same bytes each time.

`helm push` uploads it to a registry. Its values name the image of the release; Artifact Hub reads
the annotations (https://artifacthub.io/docs/topics/annotations/helm/).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from cluster import paths
from cluster.console import SandboxError
from releasing import notes, tarballs
from releasing.source import Source

CHART: Final = paths.REPOSITORY / "deploy" / "helm"
_NAME: Final = "kube-scheduler-operator"
_CHANGES_SHOWN: Final = 40
_KINDS_OF_CHANGE: Final = {"added", "changed", "deprecated", "removed", "fixed", "security"}
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


def package(source: Source, folder: Path, changes: str) -> Path:
    """Write the chart's archive.

    Raises:
        SandboxError: values.yaml does not have the lines that the release replaces.
    """
    target = folder / f"{_NAME}-{source.version}.tgz"
    files = _files()
    files["Chart.yaml"] = _metadata(source, changes)
    files["values.yaml"] = _values((CHART / "values.yaml").read_text(), source).encode()
    named = {f"{_NAME}/{name}": content for name, content in files.items()}
    tarballs.write(target, named, source.epoch)
    return target


def _files() -> dict[str, tarballs.Content]:
    """The chart's files; links are followed, and .helmignore holds."""
    ignored = [
        line
        for line in (CHART / ".helmignore").read_text().splitlines()
        if line and not line.startswith("#")
    ]
    found: dict[str, tarballs.Content] = {}
    for name, file in sorted(_walk(CHART, "")):
        parents = [name, *(str(parent) for parent in Path(name).parents)]
        if not any(fnmatch.fnmatch(one, pattern) for one in parents for pattern in ignored):
            found[name] = file.read_bytes()
    return found


def _walk(folder: Path, prefix: str) -> list[tuple[str, Path]]:
    found = []
    for child in folder.iterdir():
        if child.is_dir():  # through links: crds, admission, assignment and monitoring
            found += _walk(child, f"{prefix}{child.name}/")
        else:
            found.append((f"{prefix}{child.name}", child))
    return found


def _metadata(source: Source, changes: str) -> bytes:
    chart: dict[str, Any] = yaml.safe_load((CHART / "Chart.yaml").read_text())
    image = f"{source.repository}:{source.tag}"
    if source.digest:
        image = f"{source.repository}@{source.digest}"
    generated = {
        "artifacthub.io/changes": _document(_changes(changes)),
        "artifacthub.io/crds": _document(_definitions()),
        "artifacthub.io/images": _document([{"name": _NAME, "image": image}]),
        "artifacthub.io/prerelease": str(not source.version.replace(".", "").isdigit()).lower(),
    }
    chart["annotations"] = {**chart["annotations"], **generated}
    return _document(chart).encode()


def _document(value: Any) -> str:
    text: str = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=1000)
    return text


def _changes(text: str) -> list[dict[str, str]]:
    return [
        {"kind": kind, "description": _LINK.sub(r"\1", entry).replace("`", "")}
        for kind, entry in notes.changes(text)
        if kind in _KINDS_OF_CHANGE
    ][:_CHANGES_SHOWN]


def _definitions() -> list[dict[str, str]]:
    """The kinds of the chart, as Artifact Hub lists them."""
    found = []
    for file in sorted((CHART / "crds").glob("*.yaml")):
        definition: Mapping[str, Any] = yaml.safe_load(file.read_text())
        if definition.get("kind") != "CustomResourceDefinition":
            continue
        spec = definition["spec"]
        (version,) = [one for one in spec["versions"] if one["storage"]]
        schema = version["schema"]["openAPIV3Schema"]
        kind = spec["names"]["kind"]
        found.append(
            {
                "kind": kind,
                "version": version["name"],
                "name": definition["metadata"]["name"],
                "displayName": kind,
                "description": " ".join(str(schema.get("description") or kind).split()),
            }
        )
    return found


def _values(text: str, source: Source) -> str:
    """values.yaml with the image of the release as default."""
    edits = {
        r"^  # Repository without tag\. .*$": "  # Repository without tag.",
        r"^  repository: .*$": f"  repository: {source.repository}",
        r"^  tag: .*$": f"  tag: {source.tag}",
        r"^  digest: .*$": f'  digest: "{source.digest}"',
    }
    for pattern, line in edits.items():
        text, count = re.subn(pattern, line, text, count=1, flags=re.MULTILINE)
        if not count:
            raise SandboxError(f"deploy/helm/values.yaml has no line that matches {pattern}")
    return text
