"""`convert`: an old scheduler configuration as KubeSchedulerConfiguration v1, and what changed.

The result goes to standard output, so that it can be piped; the changes go to standard error.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any, Final

from ..lib import convert_crane
from ..lib.common import DEFAULT_VERSION, CommandError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...migrate.convert import Conversion
    from ...migrate.objects import Converted
    from ...schedulerconfig.check import Target

_CONFIG_MAP: Final = "ConfigMap"


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and its options."""
    parser = subparsers.add_parser(
        "convert",
        help="bring an old scheduler configuration to the version that is read today",
        description="Converts a Policy or a KubeSchedulerConfiguration of v1alpha1 to v1beta3 to "
        "v1, so that the scheduler does what it did, and says what changed on standard error. "
        "A configuration with crane's plugin Dynamic, and kube-safe-scheduler's manifests, become "
        "objects for kubectl apply. "
        "Files may have several documents and ConfigMaps with such documents in them; other "
        "objects are passed over. Exit code 0: converted; 1: it cannot be, or the scheduler would "
        "not start with the result; 2: wrong usage.",
    )
    parser.add_argument(
        "-f", "--file", required=True, metavar="FILE", help="YAML or JSON, - for standard input"
    )
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")
    parser.add_argument(
        "--kubernetes-version",
        default=DEFAULT_VERSION,
        metavar="VERSION",
        help="of the kube-scheduler that will read the result (default: %(default)s)",
    )
    parser.add_argument(
        "--policy",
        metavar="FILE",
        help="the Policy, or a ConfigMap with it, that algorithmSource of a v1alpha1 file names",
    )
    parser.add_argument(
        "--custom-image",
        action="store_true",
        help="keep plugins that kube-scheduler has not, because the image has them",
    )
    parser.add_argument(
        "--quiet", action="store_true", help="do not tell changes that keep the behaviour"
    )
    parser.add_argument(
        "--profiles",
        action="store_true",
        help="print SchedulerProfiles for kubectl apply instead of a configuration file",
    )
    convert_crane.add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Convert and print; 0 if all of it was converted, 1 if not, 2 for wrong usage."""
    from ...schedulerconfig.catalogue import NEWEST, OLDEST, on_record
    from ...schedulerconfig.check import Target
    from ...schedulerconfig.feature_gates import Gates
    from ...schedulerconfig.versions import Version

    try:
        version = Version.parse(args.kubernetes_version)
        if not on_record(version):
            known = f"{OLDEST.short} to {NEWEST.short}"
            raise CommandError(f"--kubernetes-version {version.short} is not known; use {known}")
        documents = read_documents(args.file)
        policy = _given_policy(args.policy)
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
    from ...migrate.changes import ConversionError, problem_text
    from ...migrate.convert import convert
    from ...migrate.crane_dynamic import read_dynamic

    found, failed = _convertible(documents)
    used = _referenced([document for _name, document in found], documents)
    results: list[dict[str, Any]] = []
    for name, document in found:
        if any(document is each for each in used):
            continue  # it is part of the document that names it
        prefix = f"{name}: " if len(found) > 1 else ""
        dynamic = None if args.custom_image else read_dynamic(document)
        try:
            if dynamic is not None:
                converted = convert_crane.convert_scheduler(dynamic, documents, target, args)
                results += converted.objects
                failed = _tell(converted, prefix, quiet=args.quiet) or failed
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
            failed = _tell(agents, prefix, quiet=args.quiet) or failed
            continue
        results += _as_profiles(conversion, prefix) if args.profiles else [conversion.config]
        failed = _tell(conversion, prefix, quiet=args.quiet) or failed
    if not found and not failed:
        try:
            results = convert_crane.convert_policies(documents, args)
        except CommandError as error:
            print(f"error: {error}", file=sys.stderr)
            return 1
    if not found and not failed and not results:
        print(
            "error: there is no Policy and no KubeSchedulerConfiguration in it; give one",
            file=sys.stderr,
        )
        return 1
    _print(results, args.output)
    return 1 if failed else 0


def _agents(
    conversion: Conversion, documents: Sequence[Any], args: argparse.Namespace
) -> Converted | None:
    """What comes of kube-safe-scheduler's manifests; None: these are others."""
    if not conversion.config.get("extenders"):
        return None
    from ...migrate.kube_safe_scheduler import convert_agents

    return convert_agents(
        conversion.config,
        conversion.changes,
        conversion.problems,
        documents,
        name=args.name or "",
        namespace=args.namespace,
    )


def _as_profiles(conversion: Conversion, prefix: str) -> list[dict[str, Any]]:
    """The SchedulerProfiles; what they cannot say is told."""
    from ...migrate.objects import scheduler_profiles

    objects, left = scheduler_profiles(conversion.config)
    if left:
        print(
            f"left out: {prefix}{', '.join(left)}: no SchedulerProfile says this; if it is still "
            "wanted, put it into spec.unsupportedConfigOverrides of KubeScheduler",
            file=sys.stderr,
        )
    return objects


def _tell(conversion: Conversion | Converted, prefix: str, *, quiet: bool) -> bool:
    """Print the changes, the worst first; True if the scheduler would not start."""
    from ...migrate.changes import Severity, problem_text
    from ...schedulerconfig.check import UNKNOWN_PLUGIN

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
    """(name for messages and document, of all that can be converted; whether one cannot be read).

    A ConfigMap counts for the documents in it, of which only those of a scheduler are looked at.
    """
    from ...migrate.convert import POLICY_KEY, is_policy

    found: list[tuple[str, Any]] = []
    failed = False
    for number, document in enumerate(documents, start=1):
        kind = document.get("kind") if isinstance(document, dict) else None
        if kind == _CONFIG_MAP:
            name = _object(document, "metadata").get("name", number)
            for key, text in _object(document, "data").items():
                inner = inner_document(text)
                if _is_scheduler(inner):
                    found.append((f"{_CONFIG_MAP} {name} {key}", inner))
                elif key == POLICY_KEY:
                    failed = True
                    print(
                        f"error: {_CONFIG_MAP} {name}: data.{key} has no Policy; put one in",
                        file=sys.stderr,
                    )
        elif _is_scheduler(document) or is_policy(document):
            found.append((f"document {number}", document))
        elif convert_crane.is_load_policy(document):
            continue  # it is part of the document that needs it
        elif kind and document.get("apiVersion"):
            print(f"passed over: document {number}, {kind}", file=sys.stderr)
        else:
            found.append((f"document {number}", document))  # the conversion says what is wrong
    return found, failed


def _is_scheduler(document: Any) -> bool:
    from ...migrate.convert import is_policy
    from ...schedulerconfig.schema import KIND

    return is_policy(document) or (isinstance(document, dict) and document.get("kind") == KIND)


def _object(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A field that holds an object, with something empty for one that does not."""
    value = document.get(key)
    return value if isinstance(value, dict) else {}


def inner_document(text: Any) -> Any:
    """The document in a value of a ConfigMap, each time another object; None if there is none."""
    import yaml

    try:
        return yaml.safe_load(text) if isinstance(text, str) else None
    except yaml.YAMLError:
        return None


def _policy_for(document: Any, documents: Sequence[Any]) -> Mapping[str, Any] | None:
    """The Policy that a v1alpha1 document names, from a ConfigMap of the same file."""
    from ...migrate.changes import ConversionError
    from ...migrate.convert import POLICY_KEY, policy_reference

    try:
        reference = policy_reference(document) if isinstance(document, dict) else None
    except ConversionError:
        return None  # which the conversion tells
    if reference is None or reference.config_map is None:
        return None
    for other in documents:
        if not isinstance(other, dict) or other.get("kind") != _CONFIG_MAP:
            continue
        metadata = _object(other, "metadata")
        place = (metadata.get("namespace") or reference.config_map[0], metadata.get("name"))
        if place == reference.config_map:
            inner = inner_document(_object(other, "data").get(POLICY_KEY))
            return inner if isinstance(inner, dict) else None
    return None


def _referenced(found: Sequence[Any], documents: Sequence[Any]) -> list[Any]:
    """Those of the found documents that are the Policy of another one."""
    named = [policy for document in found if (policy := _policy_for(document, documents))]
    return [document for document in found if document in named]


def _given_policy(name: str | None) -> Mapping[str, Any] | None:
    """The Policy of `--policy`.

    Raises:
        CommandError: there is none in that file.
    """
    from ...migrate.convert import POLICY_KEY, is_policy

    if name is None:
        return None
    for document in read_documents(name):
        inner = document
        if isinstance(document, dict) and document.get("kind") == _CONFIG_MAP:
            inner = inner_document(_object(document, "data").get(POLICY_KEY))
        if is_policy(inner) and isinstance(inner, dict):
            return inner
    raise CommandError(f"--policy {name} has no Policy in it; give the file that has")


def read_documents(name: str) -> list[Any]:
    """The documents of a file; empty ones are left out.

    Raises:
        CommandError: it cannot be read.
    """
    from pathlib import Path

    import yaml

    shown = "standard input" if name == "-" else name
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        return [each for each in yaml.safe_load_all(text) if each is not None]
    except OSError as error:
        raise CommandError(f"{shown}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CommandError(f"{shown} is neither YAML nor JSON: {error}") from error


def _print(results: list[dict[str, Any]], output: str) -> None:
    """One document as it is; several as YAML documents, or as a List in JSON."""
    import json

    import yaml

    if not results:
        return
    if output == "yaml":
        yaml.safe_dump_all(results, sys.stdout, sort_keys=False, allow_unicode=True)
        return
    several = {"apiVersion": "v1", "kind": "List", "items": results}
    document = results[0] if len(results) == 1 else several
    print(json.dumps(document, indent=2, ensure_ascii=False))
