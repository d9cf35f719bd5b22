"""What `kubectl scheduler adopt` does: reads schedulers, and prints objects, a document or text."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from ...base.findings import Finding, listing
from ...base.platform import KUBEADM, PLATFORMS, Platform
from ...base.source.yaml_text import yaml_text
from ...config.language.plugins.known_schedulers import scheduler_of_image
from ...config.lint.forms.workload import is_stock
from ...config.migrate.changes import Severity
from ...kube.api import Api
from ...operator.controlplane.adoption.preview import (
    HIDDEN,
    AdoptionPreview,
    Outcome,
    adopted_objects,
    config_text,
    preview,
    shown,
)
from ...operator.controlplane.revision.history import read
from ..cluster.connection import connected
from ..console.errors import CommandError, UsageError, error_message
from ..console.output import (
    counted,
    format_table,
    json_text,
    print_document,
    print_remark,
    text_of,
)
from .input import AdoptionInput, NodeFiles, from_cluster, from_files, read_node_files

_WIDEST: Final = 44
"""Characters of a value in a table; `-o json` has all of it."""


def adopt(args: argparse.Namespace) -> int:
    try:
        if not (args.dry_run or args.as_profiles):
            raise UsageError(
                "the operator adopts schedulers by itself when it is installed; use --dry-run to "
                "see what it does, or --as-profiles for its configuration as objects"
            )
        files = read_node_files(args.file)
        if not files.manifests:
            return connected(partial(_live, files))(args)
        platform = KUBEADM if args.platform == "auto" else PLATFORMS.get(args.platform)
        if platform is None:
            raise UsageError(f'--platform: "{args.platform}" is not {listing(PLATFORMS)}')
        _check_platform(platform)
        return _show(from_files(files, platform), args)
    except CommandError as error:
        for line in error_message(error).splitlines():
            print_remark(f"error: {line}")
        return 2 if isinstance(error, UsageError) else 1


async def _live(files: NodeFiles, api: Api, platform: Platform, args: argparse.Namespace) -> int:
    _check_platform(platform)
    adoption = await from_cluster(api, platform, files)
    if not adoption.snapshot.operand_pods:
        labels = ",".join(f"{key}={value}" for key, value in platform.static_pod_labels)
        raise CommandError(
            f"no Pod in {platform.operand_namespace} has the labels {labels}; pass manifests of "
            "nodes with -f"
        )
    return _show(adoption, args)


def _check_platform(platform: Platform) -> None:
    if not platform.adopts_pods:
        raise CommandError(
            f"on the platform {platform.name} there are no settings of users in the manifests of "
            "schedulers; nothing is adopted"
        )


def _show(adoption: AdoptionInput, args: argparse.Namespace) -> int:
    for note in adoption.notes:
        print_remark(f"note: {note}")
    previewed = preview(adoption.snapshot, adoption.reports)
    if args.as_profiles:
        return _print_objects(previewed, args.output)
    if not previewed.adopted.new:
        record = _record(adoption, previewed)
        print_document(record, args.output, _record_text(record))
        return 0
    document = _document(adoption, previewed)
    print_document(document, args.output, text_of(_lines(adoption, previewed)))
    return 0 if previewed.adoptable else 1


def _print_objects(previewed: AdoptionPreview, output: str) -> int:
    """Print objects for `kubectl apply`, and what happens when they are applied."""
    if previewed.unseen:
        raise CommandError(
            *(
                f'{path} of node "{node}" is not visible in the API; copy it: -f {node}=FILE'
                for node, path in sorted(previewed.unseen.items())
            )
        )
    if previewed.findings:
        raise CommandError(*(finding.text for finding in previewed.findings))
    effective = previewed.content.config if previewed.content is not None else {}
    adopted = adopted_objects(previewed.adopted.config, effective)
    for change in adopted.changes:
        if change.severity is not Severity.SAME:
            print_remark(f"{change.severity.value}: {change.text}")
    if not adopted.objects:
        raise CommandError("no profile and no extender was adopted, so there is nothing to convert")
    print_remark(
        "note: applied, these objects replace the adopted profiles and extenders of the same names "
        "and URLs, in a new revision that is equal in effect; deleted, the adopted ones return"
    )
    for image in sorted({node.image for node in previewed.nodes}):
        if not is_stock(image):
            known = scheduler_of_image(image)
            flag = f"--for {known.name}" if known else "--custom-image"
            print_remark(f"note: {image} may have plugins of its own: check with validate {flag}")
    if adopted.remaining:
        fields = ", ".join(adopted.remaining)
        print_remark(f"note: fields that stay adopted as they are: {fields}")
    if output == "json":
        document = {"apiVersion": "v1", "kind": "List", "items": list(adopted.objects)}
        sys.stdout.write(json_text(document))
    else:
        sys.stdout.write(yaml_text(list(adopted.objects)))
    return 0


# --- as a document and as text ------------------------------------------------------------------


def _document(adoption: AdoptionInput, previewed: AdoptionPreview) -> dict[str, Any]:
    return {
        "adoptable": previewed.adoptable,
        "platform": adoption.snapshot.platform.name,
        "nodes": [
            {
                "node": node.node,
                "image": node.image,
                "configFile": node.file,
                "configFileRead": _source(adoption, node.node) if node.file else "",
                "settings": [
                    {
                        "name": setting.name,
                        "value": _visible(setting.value),
                        "outcome": setting.outcome.value,
                        "note": setting.note,
                    }
                    for setting in node.settings
                ],
                "converted": [
                    {"effect": change.severity.value, "change": change.text}
                    for change in node.converted
                ],
            }
            for node in previewed.nodes
        ],
        "problems": [_finding(finding) for finding in previewed.findings],
        "notVisible": [
            {"node": node, "path": path} for node, path in sorted(previewed.unseen.items())
        ],
        "warnings": [_finding(warning) for warning in previewed.warnings],
        "notes": [*previewed.notes],
        "arguments": previewed.arguments,
        "configuration": previewed.configuration or None,
    }


def _visible(value: str) -> str | None:
    return None if value == HIDDEN else value


def _finding(finding: Finding) -> dict[str, str]:
    return {"reason": finding.reason, "path": finding.path, "message": finding.message}


def _source(adoption: AdoptionInput, node: str) -> str:
    if node in adoption.recorded:
        return "by the operator"
    return "from -f" if node in adoption.reports else "not yet"


def _lines(adoption: AdoptionInput, previewed: AdoptionPreview) -> Iterator[str]:
    """Yield the text output: problems last, where users look."""
    nodes = [node.node for node in previewed.nodes]
    images = ", ".join(sorted({node.image for node in previewed.nodes}))
    verb = "predates" if len(nodes) == 1 else "predate"
    yield f"{counted(len(nodes), 'scheduler')} {verb} the operator: {', '.join(nodes)} ({images})"
    yield ""
    yield from format_table(list(_rows(previewed)))
    same = sorted(
        {s.name for n in previewed.nodes for s in n.settings if s.outcome is Outcome.SAME}
    )
    if same:
        yield ""
        yield f"The operator's schedulers have the same {', '.join(same)}."
    yield f"Everything else is as {adoption.snapshot.platform.name} writes it."
    for title, entries in (
        ("Converted to v1 (-o json has all changes)", list(_converted(previewed))),
        ("Blocks", [finding.text for finding in previewed.findings]),
        ("Not visible", list(_unseen(previewed))),
        ("Not in a manifest", list(previewed.notes)),
        ("Warnings", [warning.text for warning in previewed.warnings]),
    ):
        if entries:
            yield ""
            yield f"{title}:"
            yield from (f"  * {entry}" for entry in entries)
    yield ""
    yield _conclusion(previewed)


def _converted(previewed: AdoptionPreview) -> Iterator[str]:
    yield from dict.fromkeys(
        f"{change.severity.value}: {change.text}"
        for node in previewed.nodes
        for change in node.converted
        if change.severity is not Severity.SAME
    )


def _rows(previewed: AdoptionPreview) -> Iterator[list[str]]:
    """Yield one row for each setting and value, with the nodes that have it if not all do."""
    rows: dict[tuple[str, str, str], list[str]] = {}
    for node in previewed.nodes:
        for setting in node.settings:
            if setting.outcome is not Outcome.SAME:
                lost = setting.outcome in (Outcome.BLOCKS, Outcome.UNKNOWN)
                outcome = setting.outcome.value.upper() if lost else setting.outcome.value
                # The note of a lost setting, with the way to keep it, is below the table.
                text = outcome if lost or not setting.note else f"{outcome}: {setting.note}"
                rows.setdefault((setting.name, setting.value, text), []).append(node.node)
    count = len(previewed.nodes)
    differ = any(len(nodes) < count for nodes in rows.values())
    heading = ["SETTING", "VALUE", "ADOPTION"]
    yield ["NODES", *heading] if differ else heading
    for (name, value, text), nodes in rows.items():
        cells = [name, _short(value), text]
        where = "all" if len(nodes) == count else ", ".join(nodes)
        yield [where, *cells] if differ else cells
    if not rows:
        empty = ["(none)", "", "kubeadm's own scheduler has no settings of users"]
        yield ["all", *empty] if differ else empty


def _short(value: str) -> str:
    line = " ".join(value.split())
    return line if len(line) <= _WIDEST else f"{line[: _WIDEST - 1]}…"


def _unseen(previewed: AdoptionPreview) -> Iterator[str]:
    for node, path in sorted(previewed.unseen.items()):
        yield (
            f'{path} of node "{node}": the API does not show files of nodes. The operator reads it '
            f"there before it touches a node, with a Pod that sees nothing else; to see the result "
            f"now, copy it: -f {node}=FILE"
        )


def _conclusion(previewed: AdoptionPreview) -> str:
    if previewed.adoptable and previewed.profiling_ends:
        return "All of it is adopted; no setting is lost, except that profiling is off."
    if previewed.adoptable:
        return "All of it is adopted; no setting is lost."
    if previewed.findings:
        return "Adoption is blocked until this is changed; the schedulers keep running as they are."
    return "What is visible is adopted; the rest is not known yet."


def _record(adoption: AdoptionInput, previewed: AdoptionPreview) -> dict[str, Any]:
    """Return what was adopted before."""
    history = read(adoption.snapshot.config_maps, adoption.snapshot.platform.parts)
    return {
        "adopted": True,
        "revision": max((revision.number for revision in history if revision.ready), default=0),
        "settings": [
            {"name": name, "value": _visible(value)}
            for name, value in _recorded(adoption, previewed)
        ],
    }


def _record_text(record: Mapping[str, Any]) -> str:
    rows = [["SETTING", "VALUE"]]
    for setting in record["settings"]:
        value = setting["value"]
        rows.append([setting["name"], _short(HIDDEN if value is None else value)])
    if not record["settings"]:
        return "The schedulers are adopted; they had no settings of users."
    head = f"The schedulers are adopted; revision {record['revision']} has what they were started"
    return text_of([f"{head} with:", "", *format_table(rows)])


def _recorded(adoption: AdoptionInput, previewed: AdoptionPreview) -> Iterator[tuple[str, str]]:
    """Yield (setting, value as text) of the record, and the flags that were adopted."""
    observed: Mapping[str, Any] = adoption.snapshot.spec.get("observedConfig") or {}
    for name, values in sorted((observed.get("arguments") or {}).items()):
        yield f"flags.{name}", shown(f"flags.{name}", ", ".join(values))
    for key, value in sorted(previewed.adopted.config.items()):
        yield f"config.{key}", config_text(key, value)
    for name, value in previewed.adopted.settings.names():
        yield name, shown(name, value)
