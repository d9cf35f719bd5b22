"""`render`: the manifests and the configuration of a bootstrap node's scheduler.

The flags are those of OpenShift's operator, because its callers pass them; some have no effect.
"""

from __future__ import annotations

import argparse
import os
import posixpath
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...base.source.yaml_text import yaml_text
from ..console.errors import UsageError
from ..console.input_files import read_documents
from ..console.output import print_remark

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from ...operator.controlplane.bootstrap import ManifestFile, Template

_FOLDERS: Final = ("bootstrap-manifests", "manifests")
_CONFIG_TEMPLATE: Final = "bootstrap-config-overrides.yaml"
_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_UNUSED: Final = "ignored; accepted because callers of OpenShift's operator pass it"
_DIRECTORY_MODE: Final = 0o755
_FILE_MODE: Final = 0o644


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "render",
        description="Writes bootstrap-manifests/, manifests/ and the configuration for the "
        "scheduler of a node that bootstraps an OpenShift cluster. This scheduler uses the same "
        "Lease as the schedulers of the cluster. The exit code is 0 if the files were written, 1 "
        "if they cannot be written, 2 if an input is missing or invalid and nothing was written.",
    )
    add = parser.add_argument
    add(
        "--asset-input-dir",
        required=True,
        metavar="DIR",
        help="directory of assets; ../auth/kubeconfig must exist",
    )
    add(
        "--asset-output-dir", required=True, metavar="DIR", help="output directory of the manifests"
    )
    add(
        "--config-output-file",
        required=True,
        metavar="FILE",
        help="output file of the configuration",
    )
    add(
        "--config-override-files",
        action="extend",
        type=_listed,
        default=[],
        metavar="FILE[,FILE]",
        help="KubeSchedulerConfigurations to merge last, in this order; can be repeated",
    )
    add(
        "--rendered-manifest-files",
        action="extend",
        type=_listed,
        default=[],
        metavar="PATH[,PATH]",
        help="files or directories with manifests, which must not contradict each other; a "
        "FeatureGate selects templates, SchedulerProfiles add profiles; can be repeated",
    )
    add(
        "--templates-input-dir",
        metavar="DIR",
        help="jinja2 templates: bootstrap-manifests/*.yaml, manifests/*.yaml and "
        f"config/{_CONFIG_TEMPLATE}, each with or without .j2 (default: built-in templates)",
    )
    add(
        "--manifest-image",
        default="openshift/origin-hyperkube:latest",
        metavar="IMAGE",
        help="image of kube-scheduler (default: %(default)s)",
    )
    add(
        "--manifest-image-pull-policy",
        default="IfNotPresent",
        metavar="POLICY",
        help=f"{', '.join(_POLICIES)} (default: %(default)s)",
    )
    add(
        "--manifest-config-host-path",
        default="/etc/kubernetes/bootstrap-configs",
        metavar="DIR",
        help="directory of the configuration on the bootstrap node (default: %(default)s)",
    )
    add(
        "--manifest-config-file-name",
        default="kube-scheduler-config.yaml",
        metavar="NAME",
        help="file name of the configuration on the bootstrap node (default: %(default)s)",
    )
    add(
        "--manifest-secrets-host-path",
        default="/etc/kubernetes/bootstrap-secrets",
        metavar="DIR",
        help="directory of the file kubeconfig on the bootstrap node (default: %(default)s)",
    )
    add("--manifest-namespace", default="openshift-kube-scheduler", metavar="NAME", help=_UNUSED)
    add("--manifest-operator-image", metavar="IMAGE", help=_UNUSED)
    add("--manifest-cloud-provider-host-path", metavar="DIR", help=_UNUSED)
    add("--payload-version", metavar="VERSION", help=_UNUSED)
    parser.set_defaults(run=run)


def _listed(text: str) -> list[str]:
    return text.split(",") if text else []


def run(args: argparse.Namespace) -> int:
    from ...operator.controlplane.bootstrap import BootstrapError

    try:
        files = _render(args)
    except (UsageError, BootstrapError) as error:
        for line in str(error).split("\n"):
            print_remark(f"kube-scheduler-operator render: {line}")
        return 2
    try:
        for path, text in files.items():
            _write(path, text)
    except OSError as error:
        print_remark(
            f"kube-scheduler-operator render: {error.filename}: {error.strerror}; "
            "--asset-output-dir and --config-output-file must be writable"
        )
        return 1
    return 0


def _render(args: argparse.Namespace) -> dict[Path, str]:
    """Return the files to write, by path."""
    from ...base import assets
    from ...base.platform import OPENSHIFT
    from ...operator.controlplane import bootstrap

    problems = list(_wrong_flags(args))
    if problems:
        raise UsageError(*problems)
    _read_kubeconfig(args.asset_input_dir)
    manifests = [_read(path) for path in _manifest_files(args.rendered_manifest_files)]
    if contradictions := bootstrap.contradictions(manifests):
        raise UsageError(*(f"--rendered-manifest-files: {line}" for line in contradictions))
    overrides = [
        _read(Path(name), "--config-override-files") for name in args.config_override_files
    ]

    pod = bootstrap.BootstrapPod(
        image=args.manifest_image,
        image_pull_policy=args.manifest_image_pull_policy,
        config_host_path=args.manifest_config_host_path.rstrip("/"),
        config_file_name=args.manifest_config_file_name,
        secrets_host_path=args.manifest_secrets_host_path,
    )
    templates: Traversable = assets.directory("templates") / "bootkube"
    if args.templates_input_dir is not None:
        templates = Path(args.templates_input_dir)
    config = bootstrap.bootstrap_config(
        OPENSHIFT, pod, _config_template(templates), overrides, manifests
    )
    feature_set = bootstrap.feature_set_of(manifests)
    written = {}
    for folder in _FOLDERS:
        own = [
            template
            for template in _folder(templates, folder)
            if template.name.removesuffix(".j2").endswith((".yaml", ".yml"))
        ]
        for file in bootstrap.bootstrap_manifests(OPENSHIFT, pod, own, feature_set):
            name = posixpath.basename(file.name).removesuffix(".j2")
            written[Path(args.asset_output_dir, folder, name)] = yaml_text(file.documents)
    return {**written, Path(args.config_output_file): yaml_text([config])}


def _wrong_flags(args: argparse.Namespace) -> Iterator[str]:
    for name in ("asset_output_dir", "config_output_file", "manifest_image", "manifest_namespace"):
        if not getattr(args, name):
            yield f"{_flag(name)} is empty; set it"
    for name in ("manifest_config_host_path", "manifest_secrets_host_path"):
        if not getattr(args, name).startswith("/"):
            yield f"{_flag(name)} {getattr(args, name)!r} must be an absolute path on the node"
    name = args.manifest_config_file_name
    if not name or "/" in name or name in (".", ".."):
        yield f"--manifest-config-file-name {name!r} must be a file name without a directory"
    if args.manifest_image_pull_policy not in _POLICIES:
        policy = args.manifest_image_pull_policy
        yield f"--manifest-image-pull-policy {policy!r} is unknown; use {', '.join(_POLICIES)}"
    if not args.asset_input_dir or not Path(args.asset_input_dir).is_dir():
        yield f"--asset-input-dir {args.asset_input_dir!r} must be a directory that exists"
    if args.templates_input_dir is not None and not Path(args.templates_input_dir).is_dir():
        yield (
            f"--templates-input-dir {args.templates_input_dir!r} must be a directory that exists; "
            "omit it to use the built-in templates"
        )


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _read_kubeconfig(asset_input_dir: str) -> None:
    """Check the kubeconfig of the bootstrap scheduler, which the installer copies to the node."""
    # Like OpenShift's operator, this resolves ".." before it follows a link.
    path = Path(os.path.normpath(Path(asset_input_dir, "..", "auth", "kubeconfig")))
    documents = _read(path, "--asset-input-dir").documents
    if not any(document.get("clusters") for document in documents):
        raise UsageError(f"--asset-input-dir: {path} is not a kubeconfig: it has no clusters")


def _manifest_files(names: list[str]) -> Iterator[Path]:
    for path in map(Path, names):
        if not path.is_dir():
            yield path
            continue
        for file in sorted(path.rglob("*")):
            if file.suffix in (".yaml", ".yml", ".json") and file.is_file():
                yield file


def _read(path: Path, flag: str = "--rendered-manifest-files") -> ManifestFile:
    """Return the objects in a file, including the items of Lists."""
    from ...base.findings import format_path
    from ...base.objects import mapping
    from ...config.lint.known_kinds import wrong_types
    from ...operator.controlplane.bootstrap import ManifestFile

    try:
        documents = read_documents(str(path))
    except UsageError as error:
        lines = str(error).splitlines()
        raise UsageError(*(f"{flag}: {line}" for line in lines)) from None
    objects: list[dict[str, Any]] = []
    for document in documents:
        is_list = isinstance(document, dict) and document.get("kind") == "List"
        items = document.get("items", []) if is_list else [document]
        if not isinstance(items, list):
            raise UsageError(f"{flag}: {path}: items of a List must be a list; write one")
        objects += items
    for obj in objects:
        for problem in wrong_types(mapping(obj)):
            where = format_path(problem.path)
            raise UsageError(f"{flag}: {path}: {where}: {problem.message}; {problem.fix}")
        for key in ("metadata", "spec"):
            if key in mapping(obj) and not isinstance(obj[key], dict):
                raise UsageError(f"{flag}: {path}: {key} must be an object; write one")
        if not isinstance(obj, dict):
            raise UsageError(f"{flag}: {path} contains a {type(obj).__name__} instead of an object")
        if flag == "--rendered-manifest-files" and not (obj.get("apiVersion") and obj.get("kind")):
            raise UsageError(
                f"{flag}: {path} contains an object without apiVersion or kind; add them"
            )
    return ManifestFile(str(path), tuple(objects))


def _config_template(templates: Traversable) -> Template:
    """Return the template of the configuration."""
    for template in _folder(templates, "config"):
        if posixpath.basename(template.name).removesuffix(".j2") == _CONFIG_TEMPLATE:
            return template
    raise UsageError(
        f"--templates-input-dir: {templates} has no config/{_CONFIG_TEMPLATE}; add it, or omit "
        "the flag to use the built-in templates"
    )


def _folder(templates: Traversable, folder: str) -> list[Template]:
    """Return the files of a directory, by name."""
    from ...operator.controlplane.bootstrap import Template

    directory = templates / folder
    if not directory.is_dir():
        raise UsageError(
            f"--templates-input-dir: {templates} has no directory {folder}; add it, or omit the "
            "flag to use the built-in templates"
        )
    try:
        return [
            Template(f"{folder}/{file.name}", file.read_text(encoding="utf-8"))
            for file in sorted(directory.iterdir(), key=lambda file: file.name)
            if file.is_file()
        ]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--templates-input-dir: {directory}: {error}") from error


def _write(path: Path, text: str) -> None:
    """Write a world-readable file atomically, and create its directories."""
    missing = [directory for directory in path.parents if not directory.exists()]
    path.parent.mkdir(parents=True, exist_ok=True)
    for directory in missing:
        directory.chmod(_DIRECTORY_MODE)  # regardless of the umask
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.chmod(_FILE_MODE)
    unfinished.replace(path)
