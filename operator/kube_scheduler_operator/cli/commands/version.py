"""`kubectl scheduler version`: the versions of client, operator, schedulers and API server.

docs/versions.md has the rules by which they fit.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ... import __version__
from ...config.language.versions import Version, version_skew
from ...kube.resource import CLUSTER_OPERATORS, SECONDARY_SCHEDULERS
from ..console.flags import add_cluster_flags, add_output_flag
from ..console.output import format_table, print_document, text_of

if TYPE_CHECKING:
    from ...base.objects import Object
    from ...base.platform import Platform
    from ...kube.client import ApiClient

MINORS_APART: Final = 1
"""Minor versions by which client and operator may differ, as those of kubectl and an API server."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "version",
        description="Shows the versions of this program, the operator, the schedulers and the API "
        "server, and whether they fit. The exit code is 1 if they do not.",
    )
    parser.add_argument("--client", action="store_true", help="only this program; needs no cluster")
    add_cluster_flags(parser)
    add_output_flag(parser)
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class Versions:
    client: str  # of this program
    operator: str  # empty if it has not reported one
    payload: bool  # whether that is the version of an OpenShift release, not the operator's own
    api_server: str  # `gitVersion` of the API server
    # the images of schedulers that the operator runs or adopts, by `node NAME` or
    # `SecondaryScheduler NAME`
    images: Sequence[tuple[str, str]]


def run(args: argparse.Namespace) -> int:
    if args.client:
        document = {"client": __version__}
        print_document(document, args.output, text=f"client  {__version__}")
        return 0
    from ..cluster.connection import connected

    return connected(_show)(args)


async def _show(api: ApiClient, platform: Platform, args: argparse.Namespace) -> int:
    report = summarize(await _read(api, platform))
    print_document(report, args.output, text_of(render(report)))
    return 0 if report["fits"] else 1


async def _read(api: ApiClient, platform: Platform) -> Versions:
    from ...base import names
    from ...operator.model import operand_pods
    from ...operator.status.running import images_that_run
    from ..cluster.operands import list_operand_pods
    from ..cluster.operator_objects import find_object, list_by_name

    reported = await find_object(api, CLUSTER_OPERATORS.named(names.CLUSTEROPERATOR))
    pods = await list_operand_pods(api, platform)
    images = [(f"node {node}", operand_pods.read(pod).image) for node, pod in sorted(pods.items())]
    secondaries = await list_by_name(api, SECONDARY_SCHEDULERS) or {}
    images += [
        (f"SecondaryScheduler {name}", image)
        for name, obj in sorted(secondaries.items())
        for image in images_that_run(obj)
    ]
    answer = await api.get_path("/version")
    return Versions(
        client=__version__,
        operator=_operator_version(reported),
        payload=platform.cluster_config,
        api_server=str(answer.get("gitVersion") or ""),
        images=images,
    )


def _operator_version(cluster_operator: Object | None) -> str:
    status = (cluster_operator or {}).get("status") or {}
    versions = {entry.get("name"): entry.get("version") for entry in status.get("versions") or ()}
    return str(versions.get("operator") or "")


def _version_in(image: str) -> str:
    try:
        return str(Version.of_image(image))
    except ValueError:
        return ""


def summarize(versions: Versions) -> dict[str, Any]:
    """Return the versions as `-o json` prints them."""
    schedulers = [
        {"name": name, "image": image, "version": _version_in(image)}
        for name, image in versions.images
    ]
    skews = _scheduler_problems(versions.api_server, schedulers)
    problems = list(filter(None, (_client_problem(versions), *skews)))
    return {
        "client": versions.client,
        "operator": versions.operator,
        "apiServer": versions.api_server,
        "schedulers": schedulers,
        "fits": not problems,
        "problems": problems,
        "notes": _notes(versions, schedulers),
    }


def _client_problem(versions: Versions) -> str:
    """Return why the client does not fit the operator; empty if it does, or if that is unknown."""
    if versions.payload or not versions.operator:
        return ""
    try:
        client, operator = Version.parse(versions.client), Version.parse(versions.operator)
    except ValueError:
        return ""
    if client.major == operator.major and abs(client.minor - operator.minor) <= MINORS_APART:
        return ""
    newer = "newer" if client > operator else "older"
    return (
        f"this program {versions.client} is more than one minor version {newer} than the operator "
        f"{versions.operator}; install kubectl-scheduler {operator.short}"
    )


def _scheduler_problems(version: str, schedulers: Sequence[Mapping[str, str]]) -> list[str]:
    """Return which schedulers do not fit the API server's version."""
    try:
        api_server = Version.parse(version)
    except ValueError:
        return []
    skews = (
        (scheduler["name"], version_skew(Version.parse(scheduler["version"]), api_server))
        for scheduler in schedulers
        if scheduler["version"]
    )
    return [f"{name}: {skew}" for name, skew in skews if skew]


def _notes(versions: Versions, schedulers: Sequence[Mapping[str, str]]) -> list[str]:
    from ...config.language.validation.newer_versions import newer_version_note

    notes = []
    if not versions.operator:
        notes.append("the operator has not reported a version: it is not installed or not running")
    elif versions.payload:
        notes.append(
            "the operator reports the version of its OpenShift release, which is not compared with "
            "that of this program"
        )
    elif versions.operator != versions.client:
        notes.append(
            "simulations in the cluster need the operator's version: run them with "
            f"kubectl-scheduler {versions.operator}"
        )
    known = sorted({scheduler["version"] for scheduler in schedulers if scheduler["version"]})
    notes += filter(None, (newer_version_note(Version.parse(version)) for version in known))
    notes += [
        f'{scheduler["name"]}: the tag of image "{scheduler["image"]}" is not a version of '
        "Kubernetes, so it is not compared"
        for scheduler in schedulers
        if not scheduler["version"]
    ]
    return notes


def render(report: Mapping[str, Any]) -> list[str]:
    names_by_version: dict[str, list[str]] = {}
    for scheduler in report["schedulers"]:
        names_by_version.setdefault(scheduler["version"] or "unknown", []).append(scheduler["name"])
    rows = [
        ("COMPONENT", "VERSION", "WHERE"),
        ("client", report["client"], "this program"),
        ("operator", report["operator"] or "unknown", ""),
        ("API server", report["apiServer"] or "unknown", ""),
        *(
            ("kube-scheduler", version, ", ".join(names))
            for version, names in sorted(names_by_version.items())
        ),
    ]
    lines = format_table(rows)
    for prefix, texts in (("PROBLEM  ", report["problems"]), ("note: ", report["notes"])):
        if texts:
            lines += ["", *(f"{prefix}{text}" for text in texts)]
    return lines if report["problems"] else [*lines, "", "The versions fit."]
