"""What a release consists of, and that the same commit makes the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml

from cluster import paths
from cluster.console import SandboxError
from releasing import chart, debian, krew, notes, provenance, sbom, signatures, tarballs
from releasing import source as sources
from releasing.cli import build_parts, parser
from releasing.sbom import Component
from releasing.source import Source

SOURCE = Source("0.1.0", "c" * 40, 1_700_000_000, "https://example.com/files", "example.com/o")
CHANGELOG = """\
# Changelog

## Unreleased

### Fixed

- a defect that
  is repaired

## 0.1.0 - 2026-01-02

### Added

**Command line**
- `version` shows [versions](docs/versions.md)
- another:
  - a detail
"""


# --- notes ------------------------------------------------------------------------------------
def test_notes_are_the_section_of_the_version() -> None:
    assert notes.notes(CHANGELOG, "0.1.0").startswith("### Added\n")
    assert "defect" not in notes.notes(CHANGELOG, "0.1.0")


def test_notes_of_a_version_without_a_section_are_the_unreleased_changes() -> None:
    assert notes.notes(CHANGELOG, "0.2.0") == "### Fixed\n\n- a defect that\n  is repaired\n"


def test_a_changelog_without_changes_makes_no_release() -> None:
    with pytest.raises(SandboxError, match=r"no section 0\.2\.0 and no unreleased changes"):
        notes.notes("# Changelog\n\n## Unreleased\n\n## 0.1.0\n\n- x\n", "0.2.0")


def test_entries_are_one_line_each_with_their_kind() -> None:
    assert list(notes.changes(notes.notes(CHANGELOG, "0.2.0"))) == [
        ("fixed", "a defect that is repaired")
    ]
    assert [kind for kind, _ in notes.changes(notes.notes(CHANGELOG, "0.1.0"))] == ["added"] * 2


def test_the_projects_own_changelog_has_notes_and_entries() -> None:
    text = notes.notes((paths.REPOSITORY / "CHANGELOG.md").read_text(), sources.declared_version())
    assert len(list(notes.changes(text))) > 3


# --- version ----------------------------------------------------------------------------------
def test_all_files_declare_one_version() -> None:
    assert len(set(sources.declared().values())) == 1


def test_another_version_than_the_checkouts_is_refused_with_the_fix() -> None:
    with pytest.raises(SandboxError, match=r"run hack/release prepare 99\.0\.0, and commit"):
        sources.discover("v99.0.0", dirty=True)


@pytest.mark.parametrize("version", ["1", "1.2", "1.2.3-rc.1", "latest"])
def test_what_is_not_a_version_is_refused(version: str) -> None:
    with pytest.raises(SandboxError, match="is not a version such as"):
        sources.discover(version, dirty=True)


def test_prepare_writes_the_version_everywhere_and_heads_the_changelog(tmp_path: Path) -> None:
    for name in (*sources.declared(), "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paths.REPOSITORY / name, tmp_path / name)
    sources.prepare("v7.8.9", "2030-01-02", tmp_path)
    assert set(sources.declared(tmp_path).values()) == {"7.8.9"}
    assert yaml.safe_load((tmp_path / "deploy/helm/Chart.yaml").read_text())["version"] == "7.8.9"
    changelog = (tmp_path / "CHANGELOG.md").read_text()
    assert "## Unreleased\n\n## 7.8.9 - 2030-01-02\n" in changelog
    assert notes.notes(changelog, "7.8.9")


# --- archives ---------------------------------------------------------------------------------
def test_a_tarball_does_not_depend_on_times_order_or_owners(tmp_path: Path) -> None:
    made = []
    for number, names in enumerate((("b", "a"), ("a", "b"))):
        folder = tmp_path / str(number)
        folder.mkdir()
        for name in names:
            (folder / name).write_text(name)
            os.utime(folder / name, (number, number))
        (folder / "link").symlink_to("a")
        target = tmp_path / f"{number}.tar.gz"
        tarballs.write(target, tarballs.members(folder, "top"), 5)
        made.append(target.read_bytes())
    assert made[0] == made[1]
    with tarfile.open(target) as tar:
        assert [(one.name, one.mtime, one.uid) for one in tar] == [
            ("top/a", 5, 0), ("top/b", 5, 0), ("top/link", 5, 0)
        ]  # fmt: skip


def test_wheel_sdist_chart_and_their_statements_are_the_same_twice(tmp_path: Path) -> None:
    built = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        build_parts(SOURCE, folder, ("python", "chart"))
        built.append({file.name: provenance.digest(file) for file in folder.iterdir()})
    assert built[0] == built[1]
    assert {name.partition("-")[0] for name in built[0]} == {
        "RELEASE_NOTES.md",
        "SHA256SUMS",
        "kube",
        "kube_scheduler_operator",
        "provenance.intoto.json",
    }
    assert len(built[0]) == 6
    check = ["sha256sum", "--check", "--strict", signatures.SUMS]
    subprocess.run(check, cwd=tmp_path / "one", check=True, capture_output=True)


# --- chart ------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The files of the chart's archive."""
    archive = chart.package(SOURCE, tmp_path_factory.mktemp("chart"), "### Added\n\n- `x` [y](z)\n")
    with tarfile.open(archive) as tar:
        found = {}
        for entry in tar:
            file = tar.extractfile(entry)
            assert file is not None, f"{entry.name} is not a file"
            found[entry.name.removeprefix("kube-scheduler-operator/")] = file.read().decode()
    return found


def test_the_chart_has_files_in_place_of_links(packaged: dict[str, str]) -> None:
    assert "crds/secondaryschedulers.kube-scheduler-operator.dev.yaml" in packaged
    assert "admission/node.yaml" in packaged
    assert "crds/kustomization.yaml" not in packaged  # by .helmignore
    assert not [name for name in packaged if name.startswith("assignment/openshift-webhook")]


def test_the_chart_installs_the_image_of_the_release(packaged: dict[str, str]) -> None:
    image = yaml.safe_load(packaged["values.yaml"])["image"]
    assert (image["repository"], image["tag"], image["digest"]) == ("example.com/o", "v0.1.0", "")
    assert "hack/sandbox" not in packaged["values.yaml"]


def test_artifact_hub_finds_changes_kinds_and_images(packaged: dict[str, str]) -> None:
    metadata = yaml.safe_load(packaged["Chart.yaml"])
    annotations = metadata["annotations"]
    assert all(isinstance(value, str) for value in annotations.values())
    assert yaml.safe_load(annotations["artifacthub.io/changes"]) == [
        {"kind": "added", "description": "x y"}
    ]
    assert (
        yaml.safe_load(annotations["artifacthub.io/images"])[0]["image"] == "example.com/o:v0.1.0"
    )
    kinds = {one["kind"] for one in yaml.safe_load(annotations["artifacthub.io/crds"])}
    assert {"SecondaryScheduler", "SchedulerProfile", "LoadPolicy"} <= kinds
    assert annotations["artifacthub.io/prerelease"] == "false"
    assert metadata["kubeVersion"] == ">=1.29.0-0"


# --- krew -------------------------------------------------------------------------------------
def test_the_krew_manifest_has_a_platform_for_each_archive(tmp_path: Path) -> None:
    archives = [
        tmp_path / f"kubectl-scheduler-v0.1.0-linux-{one}.tar.gz" for one in ("amd64", "arm64")
    ]
    for archive in archives:
        archive.write_text(archive.name)
    manifest = yaml.safe_load(krew.write(SOURCE, archives, tmp_path).read_text())
    assert (manifest["metadata"]["name"], manifest["spec"]["version"]) == ("scheduler", "v0.1.0")
    # krew's limit for one line of `kubectl krew search`.
    assert len(manifest["spec"]["shortDescription"]) <= 50
    amd64, arm64 = manifest["spec"]["platforms"]
    assert amd64["uri"] == (
        "https://example.com/files/v0.1.0/kubectl-scheduler-v0.1.0-linux-amd64.tar.gz"
    )
    assert arm64["selector"] == {"matchLabels": {"os": "linux", "arch": "arm64"}}
    assert arm64["sha256"] == hashlib.sha256(archives[1].read_bytes()).hexdigest()
    assert amd64["bin"] == "kubectl-scheduler"


# --- bills and provenance ---------------------------------------------------------------------
def test_a_bill_lists_every_component_once_and_relates_it() -> None:
    lock = "aiohttp==1.2 \\\n    --hash=sha256:0\nPyYAML==6.0.4 \\\n    --hash=sha256:1\n"
    python = sbom.python_components(lock)
    deb = debian.Package("libc6", "2:1+b1", "amd64", "0" * 64, "pool/x.deb")
    found = sbom.bill(
        SOURCE, "image.tar", "f" * 64,
        [*python, *sbom.debian_components(debian.Lock("amd64", "t", (deb,)), "bookworm")],
    )  # fmt: skip
    names = {one["SPDXID"] for one in found["packages"]}
    assert len(found["packages"]) == len(names) == 4
    assert {one["relatedSpdxElement"] for one in found["relationships"]} == names - {
        "SPDXRef-artefact"
    }
    purls = {one["externalRefs"][0]["referenceLocator"] for one in found["packages"]}
    assert "pkg:pypi/pyyaml@6.0.4" in purls
    assert "pkg:deb/debian/libc6@2%3A1%2Bb1?arch=amd64&distro=bookworm" in purls
    assert found["creationInfo"]["created"] == "2023-11-14T22:13:20Z"


def test_a_bill_has_the_hash_of_its_artefact(tmp_path: Path) -> None:
    artefact = tmp_path / "a.tar"
    artefact.write_text("x")
    bill = json.loads(
        sbom.write(SOURCE, artefact, [Component("a", "1", "pkg:pypi/a@1")]).read_text()
    )
    assert bill["packages"][0]["checksums"][0]["checksumValue"] == provenance.digest(artefact)


@pytest.mark.parametrize("architecture", debian.ARCHITECTURES)
def test_the_lock_of_an_image_has_what_the_operator_needs(architecture: str) -> None:
    lock = debian.read(architecture)
    names = {one.name for one in lock.packages}
    assert {"python3.11-minimal", "libc6", "openssl", "tzdata"} <= names
    assert len(names) == len(lock.packages)
    assert {one.architecture for one in lock.packages} == {architecture, "all"}


def test_an_architecture_without_a_lock_is_refused() -> None:
    with pytest.raises(SandboxError, match="no image for riscv64"):
        debian.read("riscv64")


@pytest.mark.parametrize("text", ["", "# no time\n", debian.HEAD + "T\nlibc6 1 amd64 short x\n"])
def test_a_damaged_lock_is_refused(text: str) -> None:
    with pytest.raises(SandboxError, match=r"debian-amd64\.lock"):
        debian.parse("amd64", text)


def test_provenance_names_the_commit_the_locks_and_all_files(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("x")
    found = json.loads(provenance.write(SOURCE, [file], tmp_path).read_text())
    assert found["subject"] == [{"name": "a", "digest": {"sha256": provenance.digest(file)}}]
    inputs = found["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert inputs[0]["digest"] == {"gitCommit": "c" * 40}
    assert {one["name"] for one in inputs[1:]} == {
        "requirements.lock", "requirements-dev.lock", "requirements-build.lock",
        "hack/releasing/debian-amd64.lock", "hack/releasing/debian-arm64.lock",
    }  # fmt: skip


# --- signatures -------------------------------------------------------------------------------
def test_without_a_key_nothing_is_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("COSIGN_KEY", raising=False)
    assert signatures.sign([tmp_path / "a"]) == []
    assert "not signed" in capsys.readouterr().err


def test_a_key_without_cosign_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("COSIGN_KEY", "cosign.key")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SandboxError, match="cosign is not on PATH"):
        signatures.sign([tmp_path / "a"])


# --- workflow ---------------------------------------------------------------------------------
WORKFLOW = paths.REPOSITORY / ".github" / "workflows" / "release.yml"


def scripts() -> str:
    """What all steps of the workflow run."""
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    return "\n".join(step.get("run", "") for job in jobs for step in job["steps"])


def test_the_workflow_calls_the_program_as_it_is() -> None:
    calls = re.findall(r"hack/release (.+)", scripts())
    assert len(calls) >= 3
    for call in calls:
        parser().parse_args(shlex.split(call))  # exits if it is wrong


def test_the_workflow_builds_on_one_digest_that_it_does_not_contain() -> None:
    assert "sha256:" not in re.sub(r"case .* in sha256:\*\)", "", WORKFLOW.read_text())
    assert '--build-arg "BASE=$BASE"' in scripts()
    recipe = (paths.REPOSITORY / "Containerfile").read_text()
    assert re.findall(r"^FROM (\S+)", recipe, re.MULTILINE) == ["${BASE}", "${BASE}"]


def test_the_image_is_built_of_nothing_without_a_hash() -> None:
    recipe = (paths.REPOSITORY / "Containerfile").read_text().replace("\\\n", " ")
    installations = re.findall(r"pip install[^&\n]*", recipe)
    assert len(installations) == 3
    for words in installations:
        assert "--require-hashes" in words or "--no-index" in words, words
        assert "--no-deps" in words, words


def test_what_builds_the_wheel_is_what_the_developers_have() -> None:
    def versions(name: str) -> set[str]:
        text = (paths.REPOSITORY / name).read_text()
        return set(re.findall(r"^[a-z0-9-]+==\S+", text, re.MULTILINE))

    build = versions("requirements-build.lock")
    assert "hatchling" in {one.partition("==")[0] for one in build}
    assert build <= versions("requirements-dev.lock")
