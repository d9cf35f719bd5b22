"""`kubectl scheduler diff`: compares two revisions, or a file with the cluster."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ...base import names
from ...base.field_types import document_of
from ...base.objects import annotation
from ...base.platform import Platform
from ...base.settings import Settings
from ...kube.api import Api, Object
from ...kube.resource import CONFIG_MAPS, DEPLOYMENTS
from ...operator.loadpolicy.created_objects import policy_config_map, workloads
from ...scheduling.load.policy import FILE, LoadPolicy, LoadPolicyError
from ...scheduling.load.policy_files import read_policy, read_spec
from ..answers.comparison import compare, complete, label_of
from ..cluster.compare import ParsedRevision, changes, parse_revision, unified
from ..cluster.connection import connected
from ..cluster.operator_objects import find_object, get_kubescheduler
from ..cluster.revisions import (
    find_revision,
    find_running_revision,
    list_revisions,
    nodes_by_revision,
)
from ..cluster.scheduler_contents import (
    find_content,
    find_scheduler,
    read_contents,
    readable,
    rolled_out_content,
)
from ..console.errors import CommandError, UsageError, prints_errors
from ..console.flags import add_cluster_flags, add_files_flag, add_scheduler_flag
from ..console.output import print_document, print_lines
from ..simulation.flags import add_kube_scheduler_flags

if TYPE_CHECKING:
    from ...kube.client import ApiClient
    from ..cluster.proposal import InputObjects
    from ..simulation.placements import EditAnswer

FAILED = 2
"""The exit code after an error; as in diff(1), 1 means that the revisions differ."""

BOTH: Final = "both"
WORDS: Final = "words"
LINES: Final = "lines"
JSON: Final = "json"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "diff",
        description="Compares revision N with M, or with -f the revision N with the result of the "
        "file: first in words (plugins, weights, arguments, flags), then line by line "
        "(configuration and pod as YAML, flags one per line, image). Changes nothing. The exit "
        "code is 0 if they are equal, 1 if they differ, 2 after an error.",
    )
    parser.add_argument(
        "old",
        nargs="?",
        metavar="N",
        help="default: the revision that nodes run, or ran, before M; with -f the current one. A "
        "SecondaryScheduler has hashes of configurations instead of numbers",
    )
    parser.add_argument("new", nargs="?", metavar="M", help="default: the latest one")
    add_scheduler_flag(parser)
    add_files_flag(
        parser,
        "Scheduler, KubeScheduler, OperatorSettings, SchedulerProfiles and "
        "SchedulerExtenders, or a SecondaryScheduler, a LoadPolicy or a "
        "KubeSchedulerConfiguration; - for standard input",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=(BOTH, WORDS, LINES, JSON),
        default=BOTH,
        help="lines are a patch, json has both and --placements (default: both)",
    )
    parser.add_argument(
        "--placements",
        action="store_true",
        help="with -f: also report which running and waiting pods could no longer be placed, and "
        "how full nodes would be if all pods were placed again. A kube-scheduler on this machine "
        "decides, over a copy of the cluster in memory",
    )
    add_kube_scheduler_flags(parser)
    add_cluster_flags(parser)
    parser.set_defaults(run=run, config=None, feature_gates=[], from_files=[])


@prints_errors(FAILED)
def run(args: argparse.Namespace) -> int:
    if args.files and args.new is not None:
        raise UsageError("-f FILE replaces M; omit M")
    if args.placements and not args.files:
        raise UsageError("--placements is about an edit; add -f FILE")
    return connected(_compare, failure=FAILED)(args)


async def _compare(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    if args.files:
        return await _with_files(api, platform, args)
    found = await compare(api, platform, args.scheduler, args.old, args.new)
    return _print(found.words, found.lines, args.output)


async def _with_files(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    from ..cluster.proposal import LOAD, read_objects

    objects = read_objects(args.files)
    name = ("stdin" if args.files == ["-"] else args.files[0]).lstrip("/")
    if LOAD in objects.single:
        if args.old is not None:
            raise CommandError("a LoadPolicy has no revisions; omit N")
        if args.placements:
            raise CommandError("--placements is not possible for a LoadPolicy")
        load_words, patch = await differences(api, platform, objects.single[LOAD], name)
        return _print(load_words, patch, args.output)
    before, after, label = await _proposal(api, platform, objects, args.old)
    words, lines = changes(before, after), unified(before, after, (label, name))
    answer = None
    if args.placements and (words or lines):
        from ..simulation.placements import placements_of_edit

        answer = await placements_of_edit(api, platform, args, before, after)
    return _print(words, lines, args.output, answer)


async def _proposal(
    api: Api, platform: Platform, objects: InputObjects, old: str | None
) -> tuple[ParsedRevision, ParsedRevision, str]:
    """Return the content of revision `old`, that of the objects, and the label of the former."""
    from ..cluster import proposal

    if objects.scheduler and old is not None:
        raise CommandError("a SecondaryScheduler has no revisions; omit N")
    if not platform.owns_static_pods:
        if objects.scheduler:
            return await proposal.proposed_secondary(api, platform, objects, None)
        scheduler = await find_scheduler(api, platform) or {}
        contents = await read_contents(api, scheduler)
        content = rolled_out_content(contents) if old is None else find_content(contents, old)
        compared = await proposal.proposed_managed(
            api, platform, objects, scheduler, readable(content)
        )
        return *compared, label_of(content)
    nodes = nodes_by_revision(await get_kubescheduler(api))
    revisions = await list_revisions(api, platform)
    revision = (
        find_running_revision(revisions, nodes)
        if old is None
        else complete(find_revision(revisions, old))
    )
    if objects.scheduler:
        control_plane = parse_revision(revision.content)
        return await proposal.proposed_secondary(api, platform, objects, control_plane)
    compared = await proposal.proposed(api, platform, objects, revision)
    return *compared, f"revision-{revision.number}"


def _print(
    words: Sequence[str], lines: Sequence[str], output: str, placements: EditAnswer | None = None
) -> int:
    """Print all; return 1 if there is a difference, else 0."""
    if output == JSON:
        document = {"words": words, "lines": lines, "placements": placements}
        print_document(document_of(document), output)
        return 1 if lines or words else 0
    words = (*words, *(placements.lines() if placements else ()))
    if output == BOTH:
        # patch(1) ignores text before the first file, and # cannot start a file.
        shown = [*(f"# {sentence}" for sentence in words), *lines]
    else:
        shown = [*(words if output == WORDS else lines)]
    for line in shown:
        print_lines(line)
    return 1 if lines or words else 0


# --- LoadPolicies -------------------------------------------------------------------------------


async def differences(
    api: Api, platform: Platform, obj: Mapping[str, Any], label: str
) -> tuple[list[str], list[str]]:
    """Return (the changes of an edit in words, the changes of the policy file as a patch).

    `label` is the name of the new file in the patch.
    """
    name = str(obj["metadata"]["name"])
    ref = CONFIG_MAPS.named(policy_config_map(name), platform.target_namespace)
    config_map = await find_object(api, ref)
    if config_map is None:
        raise CommandError(
            f'LoadPolicy "{name}" is not deployed yet, so there is nothing to compare with; use '
            "`compose -f` to see its result"
        )
    before = str((config_map.get("data") or {}).get(FILE) or "")
    try:
        after = read_spec(obj.get("spec")).policy
        old = read_policy(before).policy
    except LoadPolicyError as error:
        raise CommandError(f"the LoadPolicy would not be accepted: {error}") from error
    words = [*_words(old, after), *[line async for line in _changed_workloads(api, platform, obj)]]
    lines = difflib.unified_diff(
        before.splitlines(), after.text().splitlines(), ref.name, label, lineterm=""
    )
    return words, list(lines)


def _words(before: LoadPolicy, after: LoadPolicy) -> Iterator[str]:
    old, new = dict(_flat(before.document())), dict(_flat(after.document()))
    for key in dict.fromkeys((*old, *new)):
        if key not in new:
            yield f"{key}: {old[key]} removed"
        elif key not in old:
            yield f"{key}: {new[key]} added"
        elif old[key] != new[key]:
            yield f"{key}: {old[key]} → {new[key]}"


def _flat(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, value) of every leaf; list entries are identified by name or seconds."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else key)
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for item in value:
            key = "name" if "name" in item else "seconds"
            rest = {name: field for name, field in item.items() if name != key}
            yield from _flat(rest, f"{path}[{item[key]}]")
    else:
        yield path, ", ".join(map(str, value)) or "nothing" if isinstance(value, list) else value


async def _changed_workloads(
    api: Api, platform: Platform, obj: Mapping[str, Any]
) -> AsyncIterator[str]:
    target = platform.target_namespace
    annotator_name = f"{names.LOAD_ANNOTATOR}-{obj['metadata']['name']}"
    annotator = await find_object(api, DEPLOYMENTS.named(annotator_name, target))
    if annotator is None:
        return
    owners = annotator["metadata"].get("ownerReferences") or ()
    uid = next((str(owner["uid"]) for owner in owners), "")
    policy = {**obj, "metadata": {**obj["metadata"], "uid": uid}}
    settings, spec = _settings_of(annotator), obj.get("spec") or {}
    for resource, workload, spec_hash in workloads(platform, policy, spec, settings):
        ref = resource.named(workload["metadata"]["name"], target)
        deployed = await find_object(api, ref)
        if deployed is None:
            yield f"{ref} created"
        elif annotation(deployed, names.SPEC_HASH_ANNOTATION) != spec_hash:
            yield f"{ref} updated"


def _settings_of(annotator: Object) -> Settings:
    pod = annotator["spec"]["template"]["spec"]
    secrets = tuple(str(secret["name"]) for secret in pod.get("imagePullSecrets") or ())
    image = str(pod["containers"][0]["image"])
    return Settings(operator_image=image, image_pull_secrets=secrets)
