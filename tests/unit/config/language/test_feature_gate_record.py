"""Reading of a release's feature gates from its sources, and their record."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[4] / "hack" / "feature-gates"
RECORD = Path(__file__).resolve().parents[4] / "bindata" / "feature-gates.txt"
KUBERNETES = """\
package features

import (
\tgenericfeatures "k8s.io/apiserver/pkg/features"
\t"k8s.io/component-base/featuregate"
)

const (
\tPlain featuregate.Feature = "Plain"
\tLonely featuregate.Feature = "Lonely"
\tShort = "NotAsItsConstant"
\tCast = featuregate.Feature("Cast")
\tCompatible featuregate.Feature = "OnOnceThatIsLeastCompatible"
)

var versioned = map[featuregate.Feature]featuregate.VersionedSpecs{
\tPlain: {
\t\t{Version: version.MustParse("1.30"), Default: false, PreRelease: featuregate.Alpha},
\t\t{Version: version.MustParse("1.32"), Default: true, PreRelease: featuregate.Beta},
\t\t{Version: version.MustParse("1.34"), Default: true, LockToDefault: true}, // remove {in} 1.37
\t},
\tShort: {
\t\t{Version: version.MustParse("1.0"), Default: true, PreRelease: featuregate.GA},
\t\t{Version: version.MustParse("1.31"), Default: false, LockToDefault: true},
\t},
\tCompatible: {
\t\t{Version: version.MustParse("1.31"), Default: false, PreRelease: featuregate.Beta},
\t\t{Version: version.MustParse("1.32"), Default: true, PreRelease: featuregate.Beta, \
MinCompatibilityVersion: version.MustParse("1.32")},
\t},
\t// Commented: {{Default: true}},
\tgenericfeatures.Served: {
\t\t{Version: version.MustParse("1.31"), Default: true, PreRelease: featuregate.Beta},
\t},
}

var old = map[featuregate.Feature]featuregate.FeatureSpec{
\tCast: {Default: true, PreRelease: featuregate.GA, LockToDefault: true}, // remove in 1.36
}

// Entries are alphabetized.
var defaultKubernetesFeatureGateDependencies = map[featuregate.Feature][]featuregate.Feature{
\tPlain: {},

\tShort: {Plain, genericfeatures.Served}, // {Lonely}

\tfeaturegate.Feature(genericfeatures.Served): {featuregate.Feature(Cast)},
}
"""
APISERVER = """\
const (
\tServed featuregate.Feature = "ServedByApiserver"
)
"""


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


def tree(folder: Path, minor: int, *, cached: bool, patch: str = "2") -> str:
    """Sources as the Go module cache has them, or a checkout."""
    root = folder / (f"kubernetes@v1.{minor}.{patch}" if cached else "kubernetes")
    for module in (
        "apiextensions-apiserver", "apiserver", "client-go", "component-base", "controller-manager",
    ):  # fmt: skip
        beside = folder / f"{module}@v0.{minor}.{patch}"
        made = beside if cached else root / "staging/src/k8s.io" / module
        (made / "pkg/features").mkdir(parents=True)
    (root / "pkg/features").mkdir(parents=True)
    (root / "pkg/features/kube_features.go").write_text(KUBERNETES)
    apiserver = (
        folder / f"apiserver@v0.{minor}.{patch}"
        if cached
        else root / "staging/src/k8s.io/apiserver"
    )
    (apiserver / "pkg/features/kube_features.go").write_text(APISERVER)
    return str(root) if cached else f"{root}@v1.{minor}.{patch}"


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize(
    ("minor", "plain"), [(31, "off,alpha"), (32, "on,beta"), (33, "on,beta"), (34, "on!")]
)
def test_the_gates_of_a_version_are_read_from_its_sources(
    script: dict[str, Any], tmp_path: Path, cached: bool, minor: int, plain: str
) -> None:
    found = script["Tree"](tree(tmp_path, minor, cached=cached)).gates()
    assert found == {
        "AllAlpha": "off",
        "AllBeta": "off",
        "Cast": "on!",
        # A program is compatible with the minor version before its own.
        "OnOnceThatIsLeastCompatible": "on,beta" if minor > 32 else "off,beta",
        "NotAsItsConstant": "off!,needs=Plain+ServedByApiserver",
        "Plain": plain,
        "ServedByApiserver": "on,beta,needs=Cast",
    }


@pytest.mark.parametrize("cached", [True, False])
def test_the_gates_of_a_pre_release_are_those_of_its_minor_version(
    script: dict[str, Any], tmp_path: Path, cached: bool
) -> None:
    found = script["Tree"](tree(tmp_path, 34, cached=cached, patch="0-beta.1"))
    assert (found.minor, found.version) == (34, "1.34.0-beta.1")
    assert found.gates()["Plain"] == "on!"


@pytest.mark.parametrize("argument", ["/nowhere", "/nowhere@v1.36.3", "/nowhere@main"])
def test_an_invalid_release_is_rejected(script: dict[str, Any], argument: str) -> None:
    with pytest.raises(SystemExit, match="nowhere"):
        script["Tree"](argument)


def test_versions_that_agree_share_a_field(script: dict[str, Any]) -> None:
    known = {29: {"A": "on", "B": "off"}, 30: {"A": "on"}, 31: {"A": "on!", "B": "off"}}
    versions = {29: "1.29.1", 30: "1.30.2", 31: "1.31.0-beta.3"}
    text = script["write"](versions, known)
    assert text.splitlines()[-3:] == [
        "releases 1.29.1 1.30.2 1.31.0-beta.3",
        "A 29-30:on 31:on!",
        "B 29:off 31:off",
    ]
    assert script["read"](text) == (versions, known)


def test_the_record_is_up_to_date(script: dict[str, Any]) -> None:
    text = RECORD.read_text()
    assert script["write"](*script["read"](text)) == text
