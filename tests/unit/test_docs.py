"""What the documentation names exists, and the user interface is documented."""

from __future__ import annotations

import argparse
import json
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from kube_scheduler_operator.__main__ import PLUGIN_COMMANDS, kubectl_plugin
from kube_scheduler_operator.base import names
from kube_scheduler_operator.base.management import REMOVED
from kube_scheduler_operator.base.platform import KUBEADM, MANAGED, OPENSHIFT, Platform
from kube_scheduler_operator.base.quantities import CPU, MEMORY
from kube_scheduler_operator.cli.programs import operator
from kube_scheduler_operator.config.migrate.changes import Severity
from kube_scheduler_operator.config.migrate.old_defaults import WITHOUT_REPLACEMENT
from kube_scheduler_operator.config.migrate.old_schema import SOURCE_VERSIONS
from kube_scheduler_operator.scheduling.policies.pod_estimates import UNDECLARED
from pages import proofs
from pages.text import shown_in

from .operator.telemetry.exposition import helps, served_metrics

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "operator" / "kube_scheduler_operator"
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()


def _section(title: str) -> str:
    return OPERATIONS.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_every_flag_of_the_operator_is_documented() -> None:
    commands = argparse.ArgumentParser().add_subparsers()
    operator.add_parser(commands)
    flags = {
        option
        for action in commands.choices["operator"]._actions
        for option in action.option_strings
        if option.startswith("--") and option != "--help"
    }
    assert set(re.findall(r"`(--[a-z-]+)`", _section("Settings of the operator"))) == flags


def test_every_command_is_documented() -> None:
    page = (ROOT / "docs" / "kubectl-scheduler.md").read_text()
    documented = re.findall(r"^## (.+)$", page, re.MULTILINE)
    commands = argparse.ArgumentParser().add_subparsers()
    for command in PLUGIN_COMMANDS:
        command.load().add_parser(commands)
    names_ = [name for name in commands.choices if name != "rollout"]
    assert sorted(documented) == sorted(
        [*names_, "rollout watch", "rollout undo", "rollout approve"]
    )


def _leaves(parser: argparse.ArgumentParser, name: str = "") -> dict[str, argparse.ArgumentParser]:
    """The parsers of commands, by their command line; without groups."""
    groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    return {name: parser} if not groups else {
        command_line: leaf
        for group in groups
        # The same parser again is an alias; its first name counts.
        for word, below in {id(p): (w, p) for w, p in reversed(group.choices.items())}.values()
        for command_line, leaf in _leaves(below, f"{name} {word}".strip()).items()
    }  # fmt: skip


def test_the_output_page_shows_every_command_and_option() -> None:
    page = ROOT / "docs" / "kubectl-scheduler-output.md"
    assert page.exists(), "hack/cli-docs makes it"
    shown = shown_in(page.read_text())
    whole = argparse.ArgumentParser()
    commands = whole.add_subparsers()
    for command in PLUGIN_COMMANDS:
        command.load().add_parser(commands)
    for command_line, parser in _leaves(whole).items():
        line = f"kubectl scheduler {command_line}"
        runs = [one for one in shown if one == line or one.startswith(f"{line} ")]
        assert [one for one in runs if not one.endswith("--help")], f"{command_line} is not shown"
        help_text = shown[f"{line} --help"]
        options = {option for action in parser._actions for option in action.option_strings}
        assert options <= set(re.findall(r"(?<![\w-])--?[a-zA-Z][a-z-]*", help_text)), command_line


def test_every_condition_is_documented() -> None:
    conditions = {
        value
        for value in vars(names).values()
        if isinstance(value, str)
        and re.fullmatch(
            r"[A-Z]\w+(Degraded|Progressing|Available|Upgradeable|Settings|Scheduler|Warnings|Holder|Edits|Restored|Changed|Skew|Upgrade|Passed)",
            value,
        )
        and value not in ("Degraded", "Progressing", "Available", "Upgradeable")
    }
    documented = set(re.findall(r"`([A-Z]\w+)`", _section("What the conditions mean")))
    assert documented == conditions


def test_the_table_of_metrics_lists_the_served_metrics() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text().partition("## Alerts")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*?) \| .+ \|$", page, re.MULTILINE)
    documented = {
        name: (type_, set(re.findall(r"`(\w+)`", labels))) for name, type_, labels in rows
    }
    assert len(documented) == len(rows)
    assert documented == served_metrics()


def test_the_meaning_of_a_metric_is_its_help() -> None:
    """The page may add more, and marks names as such; Prometheus shows the help."""
    page = (ROOT / "docs" / "metrics.md").read_text().partition("## Alerts")[0]
    rows = re.findall(r"^\| `(\w+)` \| \w+ \| .*? \| (.+) \|$", page, re.MULTILINE)
    meanings = {name: meaning.replace("`", "") for name, meaning in rows}
    served = {name: text.rstrip(".") for name, text in helps().items()}
    assert {n: t for n, t in served.items() if not meanings[n].startswith(t)} == {}


def test_every_metric_on_the_operations_page_exists() -> None:
    named = re.findall(r"`(kube_scheduler_operator_\w+)", OPERATIONS)
    assert named
    assert set(named) <= set(served_metrics())


def test_the_page_on_conversion_has_every_version_and_severity() -> None:
    page = (ROOT / "docs" / "converting.md").read_text()
    table = page.partition("| From |")[2].partition("\n\n")[0]
    assert set(re.findall(r"^\| `(v1\w*)`", table, re.MULTILINE)) == set(SOURCE_VERSIONS)
    lost = page.partition("## What has no equivalent")[2].partition("## ")[0]
    rows = re.findall(r"^\| (.+) \| (.+) \| (.+) \|$", lost, re.MULTILINE)[1:]
    assert {severity for _old, _new, severity in rows} == {each.value for each in Severity}
    named = " ".join(old for old, _new, _severity in rows)
    assert [plugin for plugin in WITHOUT_REPLACEMENT if plugin not in named] == []


DOCUMENTS = (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "ARCHITECTURE.md", "CHANGELOG.md")),
    ROOT / "hack" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)


def test_the_error_in_the_readme_is_reported_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    readme = (ROOT / "README.md").read_text()
    (profile,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    file = tmp_path / "profile.yaml"
    monkeypatch.chdir(tmp_path)
    file.write_text(profile)
    assert kubectl_plugin(["validate", "-f", file.name]) == 1
    printed = capsys.readouterr().out.rstrip("\n")
    assert shown_in(readme)["kubectl scheduler validate -f profile.yaml"] == printed
    file.write_text(profile.replace("ImageLocalty", "ImageLocality"))
    assert kubectl_plugin(["validate", "-f", file.name]) == 0, "the fix is enough"


def test_the_answer_in_the_readme_begins_as_the_one_in_the_docs() -> None:
    answer = shown_in((ROOT / "README.md").read_text())["kubectl scheduler why shop/web-1"]
    page = shown_in((ROOT / "docs" / "placements.md").read_text())
    real = page["kubectl scheduler why shop/web-1 --from-files cluster.json"]
    assert real.startswith(f"{answer}\n")


def test_every_proof_names_tests_that_exist() -> None:
    sections = proofs.load()
    assert sum(len(section["rows"]) for section in sections) > 100
    assert all(row["tests"] for section in sections for row in section["rows"])
    assert proofs.unknown_tests(sections, proofs.tests(ROOT)) == []


def test_the_page_of_proofs_is_up_to_date() -> None:
    made = proofs.page(proofs.load(), proofs.tests(ROOT))
    assert proofs.PAGE.read_text() == made, "run hack/proofs"


def test_a_page_with_proofs_links_to_them() -> None:
    for section in proofs.load():
        assert "(proofs.md" in (ROOT / "docs" / section["page"]).read_text(), section["title"]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_mentioned_test_exists(path: Path) -> None:
    named = set(re.findall(r"`(test_\w+)`", path.read_text()))
    assert named - proofs.tests(ROOT).keys() == set()


def _anchors(path: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_has_a_target(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        target, _, anchor = link.partition("#")
        page = (path.parent / target).resolve() if target else path
        assert page.exists(), link
        assert not anchor or anchor in _anchors(page), link


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_address_is_well_formed(path: Path) -> None:
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    for link in re.findall(r"\]\((\w+://[^)\s]*)\)", text):
        address = urlsplit(link)
        assert address.scheme == "https", link
        assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", address.netloc), link
        assert not re.search(r"[\"<>\\^`{|}]", link), link


_FOLDERS = ("deploy", "docs", "operator", "crds", "bindata", "templates")
_SUFFIXES = (".md", ".py", ".yaml", ".yml", ".json", ".tpl", ".txt", ".j2")
SHIPPED = [
    path
    for folder in _FOLDERS
    for path in sorted((ROOT / folder).rglob("*"))
    if path.is_file() and path.suffix in _SUFFIXES
]


def test_no_address_is_of_a_host_that_the_project_does_not_have() -> None:
    """The group of the kinds does not name a host, and /schemas… identifies a schema."""
    shown = re.compile(rf"https?://{re.escape(names.PREFIX)}\b(?!/schemas\b)[^\s\"']*")
    texts = {path.relative_to(ROOT): path.read_text() for path in (*SHIPPED, ROOT / "README.md")}
    assert {path: shown.findall(text) for path, text in texts.items() if shown.search(text)} == {}


def test_the_job_of_gitlab_installs_no_package_by_its_name() -> None:
    """The project is in no public index, where another one may take its name."""
    (job,) = yaml.safe_load((ROOT / "deploy/ci/validate.gitlab-ci.yml").read_text()).values()
    assert job["variables"]["SCHEDULER_PACKAGE"] == ""
    assert "${SCHEDULER_PACKAGE:?" in job["script"][0]


def test_every_mentioned_page_and_heading_exists() -> None:
    """Alerts and comments of manifests name pages by their path in the repository."""
    wrong, seen = [], 0
    for path in SHIPPED:
        if path.suffix in (".md", ".py"):  # they name pages of other projects as well
            continue
        for page, anchor in re.findall(r"\b(docs/[\w/-]+\.md)(?:#([\w-]+))?", path.read_text()):
            seen += 1
            target = ROOT / page
            if not target.is_file() or (anchor and anchor not in _anchors(target)):
                wrong.append(f"{path.relative_to(ROOT)}: {page}#{anchor}")
    assert wrong == []
    assert seen >= 5


OF_THE_CODE = (
    "CONTRIBUTING.md",
    "ARCHITECTURE.md",
    *(f"docs/decisions/{path.name}" for path in sorted((ROOT / "docs/decisions").glob("*.md"))),
)
"""The pages about the code."""


@pytest.mark.parametrize("name", OF_THE_CODE)
def test_every_mentioned_path_exists(name: str) -> None:
    """Relative to the repository or to the package; a bare file name may be anywhere in it."""
    text = re.sub(r"```.*?```", "", (ROOT / name).read_text(), flags=re.DOTALL)
    named = set(re.findall(r"`([\w.-]+(?:/[\w.-]+)*(?:/|\.(?:py|md|yaml|toml|txt|j2)))`", text))
    bare = {path.name for path in PACKAGE.rglob("*.py")}
    missing = {
        one
        for one in named
        if not ((ROOT / one).exists() or (PACKAGE / one).exists() or one in bare)
    }
    assert named or name.startswith("docs/")
    assert missing == set()


def test_every_comment_that_names_commands_is_before_a_block_of_its_own() -> None:
    """tests/e2e and test_migrations run them; docs/operations.md has those of every platform."""
    texts = [path.read_text() for path in DOCUMENTS]
    named = [
        name for text in texts for name in re.findall(r"^<!-- commands: (.+?) -->", text, re.M)
    ]
    blocks = [
        name
        for text in texts
        for name in re.findall(r"^<!-- commands: (.+?) -->\n```\n", text, re.M)
    ]
    assert blocks == named
    assert len(set(named)) == len(named)
    removed = {name.split()[-1] for name in named if name.startswith("uninstall")}
    assert removed >= {name.split()[2] for name in named if name.startswith("install kustomize")}
    assert removed >= {"helm", "openshift"}


@pytest.mark.parametrize("platform", [KUBEADM, MANAGED, OPENSHIFT], ids=lambda each: each.name)
def test_the_wait_of_an_uninstallation_is_for_a_condition_of_the_platform(
    platform: Platform,
) -> None:
    """tests/e2e/installing runs the commands; another condition would never have the reason."""
    how = "openshift" if platform is OPENSHIFT else f"kustomize {platform.name}"
    block = OPERATIONS.partition(f"<!-- commands: uninstall {how} -->\n```\n")[2]
    waits = re.findall(r'@\.type=="(\w+)"\)\]\.reason\}=(\w+)', block.partition("```")[0])
    progressing = (
        names.NODE_INSTALLER_PROGRESSING
        if platform.owns_static_pods
        else names.SCHEDULERS_PROGRESSING
    )
    assert waits == [(progressing, REMOVED)]


def test_a_story_has_at_most_seven_commands() -> None:
    page = (ROOT / "docs" / "stories.md").read_text()
    stories = re.findall(r"^<!-- commands: story .+? -->\n```\n(.*?)```", page, re.M | re.S)
    assert len(stories) == page.count("\n## ") == 5
    assert all(len(story.splitlines()) <= 7 for story in stories)


# --- what readers look for, and what they choose -------------------------------------------------


@pytest.mark.parametrize(
    "word", ["kube-safe-scheduler", "KubeCon", "crane-scheduler", "multiple schedulers"]
)
def test_the_readme_names_what_readers_come_from(word: str) -> None:
    (row,) = (
        line
        for line in (ROOT / "README.md").read_text().splitlines()
        if line.startswith("|") and word in line.split("|")[1]
    )
    assert re.search(r"\]\(docs/[\w.#/-]+\)", row)


@pytest.mark.parametrize("page", ["configuration.md", "packing.md", "profiles.md", "rules.md"])
def test_where_a_profile_is_chosen_a_simulation_of_it_is_shown(page: str) -> None:
    assert re.search(r"kubectl scheduler simulate .*--profile ", (ROOT / "docs" / page).read_text())


@pytest.mark.parametrize(
    ("path", "passage"),
    [
        ("docs/configuration.md", r"`HighNodeUtilization` \([^)]*hardly packs\]\(packing\.md\)"),
        ("docs/packing.md", r"\| `HighNodeUtilization` \|[^|]*\|[^|]*which spread the Pods"),
        ("crds/schedulers.config.openshift.io.yaml", "HighNodeUtilization prefers[^.]*.*?spread"),
        (
            "crds/schedulerprofiles.kube-scheduler-operator.dev.yaml",
            "HighNodeUtilization prefers[^.]*but spreads",
        ),
        ("bindata/profiles/HighNodeUtilization.yaml", "BinPacking"),
    ],
)
def test_what_describes_high_node_utilization_states_that_it_hardly_packs(
    path: str, passage: str
) -> None:
    assert re.search(passage, (ROOT / path).read_text(), re.DOTALL)


def test_the_comparison_names_what_refuses_the_preferred_host() -> None:
    """test_on_openshift_another_api_server_is_refused_before_an_image_checks_the_flags has it."""
    page = (ROOT / "docs" / "openshift-comparison.md").read_text()
    (row,) = re.findall(r"^\| should communicate with kube-apiserver over .*$", page, re.MULTILINE)
    assert "UnsafeArgument before any image" in row


def test_the_image_of_a_payload_has_the_program_where_an_installer_calls_it() -> None:
    containerfile = (ROOT / "Containerfile").read_text()
    ((program,),) = map(json.loads, re.findall(r"^ENTRYPOINT (.+)$", containerfile, re.MULTILINE))
    (derived,) = re.findall(r"^```dockerfile\n(.+?)^```$", OPERATIONS, re.MULTILINE | re.DOTALL)
    assert f"RUN ln -s {program} /usr/bin/cluster-kube-scheduler-operator\n" in derived
    assert {"USER 0", "ENTRYPOINT []"} <= set(derived.splitlines())


def test_the_readme_leads_from_openshift_to_profiles_and_caches() -> None:
    readme = (ROOT / "README.md").read_text()
    (row,) = re.findall(r"^\| cluster-kube-scheduler-operator .*$", readme, re.MULTILINE)
    assert "docs/operations.md#on-openshift" in row
    assert "docs/kubectl-scheduler.md#pprof" in row


def test_the_readme_packs_by_the_profile_that_packs() -> None:
    readme = (ROOT / "README.md").read_text()
    assert re.search(r"^\| pack Pods [^|]*\| [^|]*`base: BinPacking`", readme, re.MULTILINE)
    assert "HighNodeUtilization" not in readme


def test_the_page_names_what_a_pod_without_requests_counts() -> None:
    page = (ROOT / "docs" / "load-aware.md").read_text()
    cpu, memory = UNDECLARED[CPU], UNDECLARED[MEMORY] / 2**20
    assert f"**{cpu:g}m of CPU and {memory:g} MiB**" in page


def test_the_page_of_the_sandbox_shows_real_load() -> None:
    """Nodes share a kernel: their load is that of a cgroup, which only the host's mounts show."""
    section = (ROOT / "hack" / "README.md").read_text().partition("### Real load\n")[2]
    (shown,) = re.findall(r"```yaml\n(.*?)```", section.partition("\n## ")[0], re.DOTALL)
    options = yaml.safe_load(shown)["spec"]["source"]["nodeMetrics"]
    assert options["mountHost"]
    assert any(argument.startswith("--cgroup=") for argument in options["args"])
    assert "hack/README.md#real-load" in (ROOT / "docs" / "load-aware.md").read_text()
