"""`convert`: converts an old scheduler configuration and reports the changes.

The result is written to standard output, the changes to standard error.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ...base.images import SETTING
from ...base.objects import mapping
from ...base.source.yaml_text import yaml_text
from ...config.language.feature_gates import Gates
from ...config.language.flags import POLICY_KEY
from ...config.language.plugins.in_tree_plugins import OLDEST, on_record
from ...config.language.schema import KIND
from ...config.language.validation.configuration import UNKNOWN_PLUGIN, Target
from ...config.language.validation.newer_versions import newer_version_note
from ...config.language.versions import Version
from ...config.migrate.changes import ConversionError, Severity, problem_text
from ...config.migrate.convert import convert, is_policy, policy_reference
from ...config.migrate.crane_scheduler import is_dynamic_policy, read_dynamic
from ...config.migrate.operator_objects import EXTENDER, ConvertedObjects
from ...kube.resource import SECONDARY_SCHEDULERS
from ..console.errors import CommandError
from ..console.flags import add_file_arguments, add_version_flag, file_names
from ..console.input_files import (
    UnreadableDocumentError,
    embedded_document,
    embedded_errors,
    objects_of,
    read_documents,
    read_paths,
)
from ..console.output import json_text, print_remark
from ..conversion import objects as convert_objects
from ..conversion.change_over import change_over
from ..conversion.forms import OtherForms, Reader

_CONFIG_MAP: Final = "ConfigMap"
_POLICY_KIND: Final = re.compile(r"""kind"?\s*:\s*"?Policy\b""")


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "convert",
        description="Converts a Policy, or a KubeSchedulerConfiguration of v1alpha1 to v1beta3, to "
        "v1 without changing the scheduler's behavior, and reports the changes on standard error. "
        "With --to, converts to objects for kubectl apply. Converts configurations with crane's "
        "plugin Dynamic, and manifests of kube-safe-scheduler, to such objects as well. The file "
        "may have several documents and ConfigMaps that contain them; other objects are skipped. "
        "A file of another product with one configuration in it is accepted as well. "
        "The exit code is 0 if everything was converted, 1 if not or if the scheduler would not "
        "start with the result, 2 for invalid usage.",
    )
    add_file_arguments(parser, "what to convert")
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")
    add_version_flag(parser, "the result")
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
    convert_objects.add_flags(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    try:
        version = Version.parse(args.kubernetes_version)
        note = newer_version_note(version)
        if not (note or on_record(version)):
            fix = f"use {OLDEST.short} or newer"
            raise CommandError(f"--kubernetes-version {version.short} is not supported; {fix}")
        if note:
            print_remark(f"note: {note}")
        convert_objects.check_flags(args)
        files = read_paths(file_names(args))
        documents = [obj for _, _, objects in objects_of(files) for obj in objects]
        own = [document for document in documents if _is_converted(document)]
        forms = None
        if len(own) < len(documents):
            forms = OtherForms(files, version)
            documents = forms.configuration(own) or documents
        policy = _policy_from_flag(args.policy)
    except (CommandError, ValueError) as error:
        _print_error(error)
        return 1 if isinstance(error, UnreadableDocumentError) else 2
    target = Target(Gates(version), stock=not args.custom_image)
    return _convert_all(documents, policy, target, forms, args)


def _convert_all(
    documents: Sequence[Any],
    policy: Mapping[str, Any] | None,
    target: Target,
    forms: OtherForms | None,
    args: argparse.Namespace,
) -> int:
    named, failed = _convertible(documents, forms)
    policies = list(filter(None, (_policy_for(entry.document, documents) for entry in named)))
    named = _without_unread(named, policies)
    results: list[dict[str, Any]] = []
    for name, document, reader, _ in named:
        if document in policies:
            continue  # converted with the document that refers to it
        prefix = f"{name}: " if len(named) > 1 else ""
        try:
            converted = _convert_one(document, documents, policy, target, reader, results, args)
        except (ConversionError, CommandError) as error:
            failed = True
            _print_error(error, prefix)
            continue
        results += converted.objects
        failed = _report(converted, prefix, quiet=args.quiet) or failed
        if reader is not None and any(obj["kind"] == KIND for obj in converted.objects):
            print_remark(f"note: {reader.instruction(name, document)}")
    _print_skipped(documents, named, results)
    _note_change_over(named, documents, results)
    if not named and not failed:
        try:
            results = convert_objects.convert_policies(documents, args)
        except CommandError as error:
            _print_error(error)
            return 1
        if not results:
            nothing = "the file contains neither a Policy nor a KubeSchedulerConfiguration"
            missing = list(forms.missing()) if forms else []
            for line in missing or [nothing]:
                _print_error(line)
            return 1
    for line in _duplicates(results):
        failed = True
        _print_error(line)
    _note_flags(named, results, args)
    _print(results, args.output)
    return 1 if failed else 0


def _convert_one(
    document: Any,
    documents: Sequence[Any],
    policy: Mapping[str, Any] | None,
    target: Target,
    reader: Reader | None,
    results: Sequence[Mapping[str, Any]],
    args: argparse.Namespace,
) -> ConvertedObjects:
    """Convert one document of a file to a configuration or to objects.

    `reader` is the scheduler that reads it, if the files show one; `results` are those of the
    documents before.
    """
    extenders = {str(obj["metadata"]["name"]) for obj in results if obj["kind"] == EXTENDER}
    dynamic = None if args.custom_image else read_dynamic(document)
    if dynamic is not None:
        config: Mapping[str, Any] = {}
        converted = convert_objects.convert_scheduler(dynamic, documents, target, extenders, args)
    else:
        target = reader.target(target) if reader else target
        conversion = convert(document, target, policy or _policy_for(document, documents))
        if reader is not None:
            conversion = reader.completed(document, conversion, target)
        config = conversion.config
        converted = convert_objects.convert_objects(conversion, documents, extenders, args)
    if reader is None or not _has_second(converted.objects):
        return converted
    # Kubernetes' own image replaces crane's.
    own_image = dynamic is None
    return reader.with_pod(converted, config, documents, target, own_image=own_image)


def _has_second(objects: Iterable[Mapping[str, Any]]) -> bool:
    return any(obj["kind"] == SECONDARY_SCHEDULERS.kind for obj in objects)


def _print_skipped(
    documents: Sequence[Any], named: Sequence[_Named], results: Sequence[Mapping[str, Any]]
) -> None:
    """List the objects that are not converted; a SecondaryScheduler has what its workload had."""
    replaced: set[str] = set()
    if _has_second(results):
        replaced = {entry.reader.command.label for entry in named if entry.reader}
    for number, document in enumerate(documents, start=1):
        if not _is_other_object(document):
            continue
        label = f"{document['kind']} {mapping(document.get('metadata')).get('name', '')}".strip()
        if label not in replaced:
            print_remark(f"skipped: document {number}, {label}")


def _note_change_over(
    named: Sequence[_Named], documents: Sequence[Any], results: Sequence[Mapping[str, Any]]
) -> None:
    readers = [(entry.document, entry.reader.command) for entry in named if entry.reader]
    for line in change_over(readers, documents, results):
        print_remark(f"note: {line}")


def _is_other_object(document: Any) -> bool:
    has_kind = bool(mapping(document).get("kind") and mapping(document).get("apiVersion"))
    return has_kind and not _is_converted(document)


def _print_error(error: object, prefix: str = "") -> None:
    if isinstance(error, ConversionError):
        for problem in error.problems:
            hint = "; use --policy" if "algorithmSource" in problem.path[:1] else ""
            print_remark(f"error: {prefix}{problem_text(problem)}{hint}")
        return
    lines = str(error).split("\n") if isinstance(error, CommandError) else [str(error)]
    for line in lines:
        print_remark(f"error: {prefix}{line}")


def _duplicates(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield errors of objects with the same kind and name: kubectl would apply the last one."""
    known: set[tuple[str, str]] = set()
    for obj in results:
        key = (obj["kind"], str(mapping(obj.get("metadata")).get("name")))
        if "metadata" in obj and key in known:
            yield (
                f'two documents become {key[0]} "{key[1]}"; convert them one at a time, with '
                "another --name or schedulerName"
            )
        known.add(key)


def _note_flags(
    named: Sequence[_Named],
    results: Sequence[Mapping[str, Any]],
    args: argparse.Namespace,
) -> None:
    kinds = {obj["kind"] for obj in results}
    if args.name and SECONDARY_SCHEDULERS.kind not in kinds:
        _note("--name", "the result contains no SecondaryScheduler; use --to second")
    for flag, value in (("--prometheus", args.prometheus), ("--load-policy", args.load_policy)):
        if value and "LoadPolicy" not in kinds:
            _note(flag, "no document enables crane's plugin Dynamic; omit it")
    if args.policy and not any(_has_reference(entry.document) for entry in named):
        _note("--policy", "no document refers to a Policy in algorithmSource; omit it")
    if args.custom_image:
        _note_missing_images(results)


def _note_missing_images(results: Sequence[Mapping[str, Any]]) -> None:
    for obj in results:
        if obj["kind"] == SECONDARY_SCHEDULERS.kind and "image" not in obj["spec"]:
            print_remark(
                f"note: {obj['kind']} {obj['metadata']['name']} runs Kubernetes' own "
                "kube-scheduler; set spec.image to the image with the custom plugins, and add it "
                f"to {SETTING}"
            )


def _note(flag: str, why: str) -> None:
    print_remark(f"note: {flag} has no effect: {why}")


def _has_reference(document: Any) -> bool:
    try:
        return isinstance(document, dict) and policy_reference(document) is not None
    except ConversionError:
        return True  # reported by the conversion


def _report(conversion: ConvertedObjects, prefix: str, *, quiet: bool) -> bool:
    """Print the changes by severity; return True if the scheduler would not start."""
    for severity in (Severity.LOST, Severity.DIFFERS, Severity.SAME):
        if quiet and severity is Severity.SAME:
            continue
        for change in conversion.changes:
            if change.severity is severity:
                print_remark(f"{severity.value}: {prefix}{change.text}")
    for problem in conversion.problems:
        hint = ", or use --custom-image" if problem.reason == UNKNOWN_PLUGIN else ""
        text = f"{problem_text(problem)}{hint}"
        print_remark(f"error: {prefix}the scheduler would not start: {text}")
    return bool(conversion.problems)


class _Named(NamedTuple):
    """A document to convert."""

    name: str  # in messages
    document: Any
    reader: Reader | None = None  # the scheduler that reads it, if the files show one
    namespace: str | None = None  # of the ConfigMap that has it; None: in none


def _convertible(documents: Sequence[Any], forms: OtherForms | None) -> tuple[list[_Named], bool]:
    """Return (the documents to convert, whether others have errors, which are printed)."""
    named: list[_Named] = []
    failed = False
    for number, document in enumerate(documents, start=1):
        kind = mapping(document).get("kind")
        if kind == _CONFIG_MAP:
            inside, errors = _in_config_map(document, number, forms)
            named += inside
            failed = failed or bool(errors)
            for error in errors:
                _print_error(error)
        elif is_dynamic_policy(document):
            continue  # converted with the document that refers to it
        elif not _is_other_object(document):
            # The conversion reports the errors of what is not a scheduler's.
            named.append(_Named(f"document {number}", document))
    return named, failed


def _in_config_map(
    config_map: Mapping[str, Any], number: int, forms: OtherForms | None
) -> tuple[list[_Named], list[str]]:
    """Return (the documents in a ConfigMap to convert, the errors of others)."""
    named: list[_Named] = []
    errors: list[str] = []
    name = mapping(config_map.get("metadata")).get("name", number)
    for key, text in mapping(config_map.get("data")).items():
        inner = embedded_document(text)
        where = f"{_CONFIG_MAP} {name} {key}"
        unreadable = embedded_errors(text, where) if _may_be_scheduler(inner, text) else []
        if unreadable:
            errors += unreadable
        elif _is_scheduler(inner):
            reader = forms.reader_of(config_map, key) if forms else None
            namespace = str(mapping(config_map.get("metadata")).get("namespace") or "")
            named.append(_Named(where, inner, reader, namespace))
        elif key == POLICY_KEY:
            errors.append(f"{_CONFIG_MAP} {name}: data.{key} has no Policy; add one")
    return named, errors


def _without_unread(named: Sequence[_Named], policies: Sequence[Any]) -> list[_Named]:
    """Leave out, and list, what no scheduler reads beside a configuration that one reads.

    A namespace also has ConfigMaps of before. `policies` are read by configurations.
    """
    in_use = {entry.namespace for entry in named if entry.reader and entry.reader.is_named}
    kept = []
    for entry in named:
        if entry.reader or entry.namespace not in in_use or entry.document in policies:
            kept.append(entry)
        else:
            alone = "convert it alone to get its objects"
            print_remark(f"skipped: {entry.name}, which no scheduler in these files reads; {alone}")
    return kept


def _is_converted(document: Any) -> bool:
    """Return whether it is converted itself, or is a ConfigMap, of which each value may be."""
    is_config_map = mapping(document).get("kind") == _CONFIG_MAP
    return is_config_map or _is_scheduler(document) or is_dynamic_policy(document)


def _is_scheduler(document: Any) -> bool:
    return is_policy(document) or mapping(document).get("kind") == KIND


def _may_be_scheduler(document: Any, text: Any) -> bool:
    """Return whether a value of a ConfigMap is one of the scheduler's documents, even if broken."""
    named = isinstance(text, str) and (KIND in text or _POLICY_KIND.search(text) is not None)
    return _is_scheduler(document) or (document is None and named)


def _policy_for(document: Any, documents: Sequence[Any]) -> Mapping[str, Any] | None:
    """Return the Policy to which a v1alpha1 document refers, from a ConfigMap of the same file."""
    try:
        reference = policy_reference(document) if isinstance(document, dict) else None
    except ConversionError:
        return None  # reported by the conversion
    if reference is None or reference.config_map is None:
        return None
    for other in documents:
        metadata = mapping(mapping(other).get("metadata"))
        config_map = (metadata.get("namespace") or reference.config_map[0], metadata.get("name"))
        if mapping(other).get("kind") == _CONFIG_MAP and config_map == reference.config_map:
            inner = _policy_in(other)
            return inner if isinstance(inner, dict) else None
    return None


def _policy_in(config_map: Mapping[str, Any]) -> Any:
    return embedded_document(mapping(config_map.get("data")).get(POLICY_KEY))


def _policy_from_flag(name: str | None) -> Mapping[str, Any] | None:
    if name is None:
        return None
    for document in read_documents(name):
        is_config_map = mapping(document).get("kind") == _CONFIG_MAP
        policy = _policy_in(document) if is_config_map else document
        if is_policy(policy) and isinstance(policy, dict):
            return policy
    raise CommandError(f"--policy {name} does not contain a Policy; specify a file that does")


def _print(results: list[dict[str, Any]], output: str) -> None:
    """Print one document unchanged, several as YAML documents or as a List in JSON."""
    if not results:
        return
    if output == "yaml":
        sys.stdout.write(yaml_text(results))
        return
    several = {"apiVersion": "v1", "kind": "List", "items": results}
    document = results[0] if len(results) == 1 else several
    sys.stdout.write(json_text(document))
