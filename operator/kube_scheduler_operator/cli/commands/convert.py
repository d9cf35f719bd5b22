"""`convert`: converts an old scheduler configuration and reports the changes.

The result is written to standard output, the changes to standard error.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...migrate.changes import ConversionError, Severity, problem_text
from ...migrate.convert import POLICY_KEY, Conversion, convert, is_policy, policy_reference
from ...migrate.crane_dynamic import read_dynamic
from ...migrate.kube_safe_scheduler import convert_agents
from ...migrate.objects import ConvertedObjects, scheduler_profiles
from ...schedulerconfig.feature_gates import Gates
from ...schedulerconfig.in_tree_plugins import NEWEST, OLDEST, on_record
from ...schedulerconfig.schema import KIND
from ...schedulerconfig.validation import UNKNOWN_PLUGIN, Target
from ...schedulerconfig.versions import Version
from ..lib import convert_crane
from ..lib.errors import CommandError
from ..lib.flags import DEFAULT_VERSION
from ..lib.input_files import embedded_document, read_documents

_CONFIG_MAP: Final = "ConfigMap"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and its options."""
    parser = subparsers.add_parser(
        "convert",
        description="Converts a Policy, or a KubeSchedulerConfiguration of v1alpha1 to v1beta3, to "
        "v1 without changing the scheduler's behavior, and reports the changes on standard error. "
        "Converts configurations with crane's plugin Dynamic, and manifests of "
        "kube-safe-scheduler, to objects for kubectl apply. The file may have several documents "
        "and ConfigMaps that contain them; other objects are skipped. The exit code is 0 if "
        "everything was converted, 1 if not or if the scheduler would not start with the result, "
        "2 for invalid usage.",
    )
    parser.add_argument(
        "-f", "--file", required=True, metavar="FILE", help="YAML or JSON, - for standard input"
    )
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")
    parser.add_argument(
        "--kubernetes-version",
        default=DEFAULT_VERSION,
        metavar="VERSION",
        help="version of the kube-scheduler that will read the result (default: %(default)s)",
    )
    parser.add_argument(
        "--policy",
        metavar="FILE",
        help="the Policy, or the ConfigMap with it, to which algorithmSource of a v1alpha1 file "
        "refers",
    )
    parser.add_argument(
        "--custom-image",
        action="store_true",
        help="keep plugins that Kubernetes' own kube-scheduler does not have",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="do not report changes that preserve the behavior"
    )
    parser.add_argument(
        "--profiles",
        action="store_true",
        help="convert to SchedulerProfiles for kubectl apply",
    )
    convert_crane.add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Convert and print; returns 0 if everything was converted, 1 if not, 2 for invalid usage."""
    try:
        version = Version.parse(args.kubernetes_version)
        if not on_record(version):
            known = f"{OLDEST.short} to {NEWEST.short}"
            raise CommandError(
                f"--kubernetes-version {version.short} is not supported; use {known}"
            )
        documents = read_documents(args.file)
        policy = _policy_from_flag(args.policy)
    except (CommandError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    target = Target(Gates(version), stock=not args.custom_image)
    return _convert_all(documents, policy, target, args)


def _convert_all(
    documents: Sequence[Any],
    policy: Mapping[str, Any] | None,
    target: Target,
    args: argparse.Namespace,
) -> int:
    found, failed = _convertible(documents)
    used = _referenced([document for _name, document in found], documents)
    results: list[dict[str, Any]] = []
    for name, document in found:
        if any(document is each for each in used):
            continue  # converted with the document that refers to it
        prefix = f"{name}: " if len(found) > 1 else ""
        dynamic = None if args.custom_image else read_dynamic(document)
        try:
            if dynamic is not None:
                converted = convert_crane.convert_scheduler(dynamic, documents, target, args)
                results += converted.objects
                failed = _report(converted, prefix, quiet=args.quiet) or failed
                continue
            conversion = convert(document, target, policy or _policy_for(document, documents))
        except ConversionError as error:
            failed = True
            for problem in error.problems:
                text = problem_text(problem)
                hint = "; use --policy" if "algorithmSource" in problem.path[:1] else ""
                print(f"error: {prefix}{text}{hint}", file=sys.stderr)
            continue
        except CommandError as error:
            failed = True
            print(f"error: {prefix}{error}", file=sys.stderr)
            continue
        agents = None if args.profiles else _agents(conversion, documents, args)
        if agents is not None:
            results += agents.objects
            failed = _report(agents, prefix, quiet=args.quiet) or failed
            continue
        results += _as_profiles(conversion, prefix) if args.profiles else [conversion.config]
        failed = _report(conversion, prefix, quiet=args.quiet) or failed
    if not found and not failed:
        try:
            results = convert_crane.convert_policies(documents, args)
        except CommandError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    if not found and not failed and not results:
        print(
            "error: the file contains neither a Policy nor a KubeSchedulerConfiguration",
            file=sys.stderr,
        )
        return 1
    _print(results, args.output)
    return 1 if failed else 0


def _agents(
    conversion: Conversion, documents: Sequence[Any], args: argparse.Namespace
) -> ConvertedObjects | None:
    """The conversion of kube-safe-scheduler's manifests; None for other manifests."""
    if not conversion.config.get("extenders"):
        return None
    return convert_agents(
        conversion.config,
        conversion.changes,
        conversion.problems,
        documents,
        name=args.name or "",
        namespace=args.namespace,
    )


def _as_profiles(conversion: Conversion, prefix: str) -> list[dict[str, Any]]:
    """The SchedulerProfiles; reports fields that they do not have."""
    objects, left = scheduler_profiles(conversion.config)
    if left:
        print(
            f"left out: {prefix}{', '.join(left)}: not supported by SchedulerProfile; if you need "
            "it, set it in spec.unsupportedConfigOverrides of KubeScheduler",
            file=sys.stderr,
        )
    return objects


def _report(conversion: Conversion | ConvertedObjects, prefix: str, *, quiet: bool) -> bool:
    """Print the changes by severity; True if the scheduler would not start."""
    for severity in (Severity.LOST, Severity.DIFFERS, Severity.SAME):
        if quiet and severity is Severity.SAME:
            continue
        for change in conversion.changes:
            if change.severity is severity:
                print(f"{severity.value}: {prefix}{change.text}", file=sys.stderr)
    for problem in conversion.problems:
        hint = ", or use --custom-image" if problem.reason == UNKNOWN_PLUGIN else ""
        what = f"error: {prefix}the scheduler would not start: {problem_text(problem)}{hint}"
        print(what, file=sys.stderr)
    return bool(conversion.problems)


def _convertible(documents: Sequence[Any]) -> tuple[list[tuple[str, Any]], bool]:
    """(display name and document, for all that can be converted; whether one cannot be read).

    The scheduler's documents in ConfigMaps are included.
    """
    found: list[tuple[str, Any]] = []
    failed = False
    for number, document in enumerate(documents, start=1):
        kind = document.get("kind") if isinstance(document, dict) else None
        if kind == _CONFIG_MAP:
            name = _object(document, "metadata").get("name", number)
            for key, text in _object(document, "data").items():
                inner = embedded_document(text)
                if _is_scheduler(inner):
                    found.append((f"{_CONFIG_MAP} {name} {key}", inner))
                elif key == POLICY_KEY:
                    failed = True
                    print(
                        f"error: {_CONFIG_MAP} {name}: data.{key} has no Policy; add one",
                        file=sys.stderr,
                    )
        elif _is_scheduler(document) or is_policy(document):
            found.append((f"document {number}", document))
        elif convert_crane.is_load_policy(document):
            continue  # converted with the document that refers to it
        elif kind and document.get("apiVersion"):
            print(f"skipped: document {number}, {kind}", file=sys.stderr)
        else:
            found.append((f"document {number}", document))  # the conversion reports its errors
    return found, failed


def _is_scheduler(document: Any) -> bool:
    return is_policy(document) or (isinstance(document, dict) and document.get("kind") == KIND)


def _object(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The object in a field; empty if the field is not an object."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def _policy_for(document: Any, documents: Sequence[Any]) -> Mapping[str, Any] | None:
    """The Policy to which a v1alpha1 document refers, from a ConfigMap of the same file."""
    try:
        reference = policy_reference(document) if isinstance(document, dict) else None
    except ConversionError:
        return None  # reported by the conversion
    if reference is None or reference.config_map is None:
        return None
    for other in documents:
        if not isinstance(other, dict) or other.get("kind") != _CONFIG_MAP:
            continue
        metadata = _object(other, "metadata")
        config_map = (metadata.get("namespace") or reference.config_map[0], metadata.get("name"))
        if config_map == reference.config_map:
            inner = embedded_document(_object(other, "data").get(POLICY_KEY))
            return inner if isinstance(inner, dict) else None
    return None


def _referenced(found: Sequence[Any], documents: Sequence[Any]) -> list[Any]:
    """The documents that are the Policy of another document."""
    named = [policy for document in found if (policy := _policy_for(document, documents))]
    return [document for document in found if document in named]


def _policy_from_flag(name: str | None) -> Mapping[str, Any] | None:
    """The Policy of `--policy`.

    Raises:
        CommandError: the file has none.
    """
    if name is None:
        return None
    for document in read_documents(name):
        inner = document
        if isinstance(document, dict) and document.get("kind") == _CONFIG_MAP:
            inner = embedded_document(_object(document, "data").get(POLICY_KEY))
        if is_policy(inner) and isinstance(inner, dict):
            return inner
    raise CommandError(f"--policy {name} does not contain a Policy; specify a file that does")


def _print(results: list[dict[str, Any]], output: str) -> None:
    """Print one document as it is, several as YAML documents or as a List in JSON."""
    import yaml

    if not results:
        return
    if output == "yaml":
        yaml.safe_dump_all(results, sys.stdout, sort_keys=False, allow_unicode=True)
        return
    several = {"apiVersion": "v1", "kind": "List", "items": results}
    document = results[0] if len(results) == 1 else several
    print(json.dumps(document, indent=2, ensure_ascii=False))
