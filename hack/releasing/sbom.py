"""Software bills of materials: SPDX 2.3 as JSON (https://spdx.github.io/spdx-spec/v2.3/)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from releasing import debian
from releasing.source import Source

_LOCKED: Final = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)", re.MULTILINE)
_UNKNOWN: Final = "NOASSERTION"


@dataclass(frozen=True, slots=True)
class Component:
    """One package of an artefact."""

    name: str
    version: str
    purl: str  # its package URL (https://github.com/package-url/purl-spec)
    sha256: str = ""  # the hash of its file; empty if several files have this version
    license: str = _UNKNOWN  # its SPDX expression, if it is known


def python_components(lock: str) -> list[Component]:
    """The packages of a requirements file, which pins them by version and hash."""
    return [_python(name, version) for name, version in _LOCKED.findall(lock)]


def debian_components(lock: debian.Lock, distribution: str) -> list[Component]:
    """The packages of the image's Debian."""
    return [
        Component(
            one.name,
            one.version,
            f"pkg:deb/debian/{quote(one.name)}@{quote(one.version, safe='')}"
            f"?arch={one.architecture}&distro={distribution}",
            one.sha256,
        )
        for one in lock.packages
    ]


def installed_components(versions: Mapping[str, str]) -> list[Component]:
    """Python packages by their names and versions."""
    return [_python(name, version) for name, version in versions.items()]


def _python(name: str, version: str) -> Component:
    return Component(name, version, f"pkg:pypi/{name.lower().replace('_', '-')}@{version}")


def write(source: Source, artefact: Path, components: Iterable[Component]) -> Path:
    """Write the bill of an artefact beside it."""
    digest = hashlib.sha256(artefact.read_bytes()).hexdigest()
    target = artefact.with_name(f"{artefact.name}.spdx.json")
    document = bill(source, artefact.name, digest, components)
    target.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    return target


def bill(
    source: Source, artefact: str, digest: str, components: Iterable[Component]
) -> dict[str, Any]:
    """The bill as data."""
    own = Component(
        artefact,
        source.version,
        f"pkg:generic/kube-scheduler-operator@{source.version}",
        digest,
        "Apache-2.0",
    )
    packages = {_identifier(one): _package(one) for one in components}
    time = datetime.fromtimestamp(source.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": artefact,
        "documentNamespace": f"{source.download(artefact)}.spdx#{digest}",
        "creationInfo": {
            "created": time,
            "creators": ["Tool: kube-scheduler-operator-hack-release"],
        },
        "documentDescribes": ["SPDXRef-artefact"],
        "packages": [
            {**_package(own), "SPDXID": "SPDXRef-artefact", "packageFileName": artefact},
            *(packages[name] for name in sorted(packages)),
        ],
        "relationships": [
            {
                "spdxElementId": "SPDXRef-artefact",
                "relationshipType": "CONTAINS",
                "relatedSpdxElement": name,
            }
            for name in sorted(packages)
        ],
    }


def _identifier(component: Component) -> str:
    kind = component.purl.partition(":")[2].partition("/")[0]
    return f"SPDXRef-{kind}-" + re.sub(r"[^A-Za-z0-9.-]", "-", component.name)


def _package(component: Component) -> dict[str, Any]:
    package: dict[str, Any] = {
        "SPDXID": _identifier(component),
        "name": component.name,
        "versionInfo": component.version,
        "downloadLocation": _UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": _UNKNOWN,
        "licenseDeclared": component.license,
        "copyrightText": _UNKNOWN,
        "externalRefs": [
            {
                "referenceCategory": "PACKAGE-MANAGER",
                "referenceType": "purl",
                "referenceLocator": component.purl,
            }
        ],
    }
    if component.sha256:
        package["checksums"] = [{"algorithm": "SHA256", "checksumValue": component.sha256}]
    return package
