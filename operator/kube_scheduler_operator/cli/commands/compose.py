"""`compose`: what the operator would make of a Scheduler and a KubeScheduler, without a cluster.

Also of SchedulerProfiles, SchedulerExtenders and SecondarySchedulers, and on OpenShift of the
APIServer, FeatureGate and Infrastructure of the cluster.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...base import names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ...base.findings import Finding
    from ...base.platform import Platform
    from ...extenders.validate import ExtenderVerdict
    from ...model.inputs import Inputs
    from ...profiles.validate import Verdict

DEFAULT_OPERAND_VERSION: Final = "v1.35.4"
_DEFAULT_OBJECTS: Final[dict[str, dict[str, Any]]] = {
    "Scheduler": {
        "apiVersion": "config.openshift.io/v1",
        "kind": "Scheduler",
        "metadata": {"name": names.CLUSTER},
        "spec": {},
    },
    "KubeScheduler": {
        "apiVersion": "operator.openshift.io/v1",
        "kind": "KubeScheduler",
        "metadata": {"name": names.CLUSTER},
        "spec": {"managementState": "Managed"},
    },
}
_API_VERSIONS: Final = {
    **{kind: obj["apiVersion"] for kind, obj in _DEFAULT_OBJECTS.items()},
    "SchedulerProfile": "kube-scheduler-operator.dev/v1alpha1",
    "SchedulerExtender": "kube-scheduler-operator.dev/v1alpha1",
    "SecondaryScheduler": "kube-scheduler-operator.dev/v1alpha1",
    "LoadPolicy": "kube-scheduler-operator.dev/v1alpha1",
    "APIServer": "config.openshift.io/v1",
    "FeatureGate": "config.openshift.io/v1",
    "Infrastructure": "config.openshift.io/v1",
}
_PROFILE: Final = "SchedulerProfile"
_SECONDARY: Final = "SecondaryScheduler"
_LOAD: Final = "LoadPolicy"
_EXTENDER: Final = "SchedulerExtender"
_MANY: Final = (_PROFILE, _EXTENDER, _SECONDARY, _LOAD)
_EMPTY: Final = {
    _PROFILE: "spec: {} for kube-scheduler's defaults",
    _EXTENDER: "spec: {agent: {policies: [{name: safe-overload}]}}, say",
    _SECONDARY: "spec: {namespace: NAME}, where it is to run",
    _LOAD: "spec: {} for the policy that crane ships",
}
_INSTEAD: Final = {
    "APIServer": "set spec.tlsSecurityProfile of the KubeScheduler instead",
    "FeatureGate": "set spec.featureGates of the KubeScheduler instead",
    "Infrastructure": "leave it out",
}


class InputError(Exception):
    """The files are not what the command can work with."""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Register the command and its options."""
    parser = subparsers.add_parser(
        "compose",
        help="show the configuration that a Scheduler and a KubeScheduler lead to",
        description="Show the scheduler's configuration, flags and conditions that a Scheduler, a "
        "KubeScheduler, SchedulerProfiles and SchedulerExtenders lead to, and those of "
        "SecondarySchedulers; of LoadPolicies the file that programs read. Nothing is sent "
        "anywhere. Exit code 0: it would be rolled out; 1: it would not, or a profile or an "
        "extender is not accepted; 2: the files cannot be read.",
    )
    parser.add_argument(
        "-f",
        "--file",
        dest="files",
        action="append",
        required=True,
        metavar="FILE",
        help="YAML or JSON with the objects, - for standard input; can be repeated",
    )
    parser.add_argument("-o", "--output", choices=("yaml", "json"), default="yaml")
    parser.add_argument(
        "--operand-version",
        default=DEFAULT_OPERAND_VERSION,
        metavar="VERSION",
        help="the kube-scheduler to compose for (default: %(default)s)",
    )
    parser.add_argument(
        "--platform",
        default="kubeadm",
        help="kind of cluster: kubeadm or openshift (default: %(default)s)",
    )
    parser.add_argument(
        "--payload-version",
        default="",
        metavar="VERSION",
        help="OpenShift's release, if FeatureGate has the gates of several",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compose and print; 0 if it would be rolled out, 1 if not, 2 for unreadable input."""
    from ...base.platform import PLATFORMS
    from ...controlplane.compose import Inputs, compose
    from ...schedulerconfig.versions import Version

    try:
        platform = PLATFORMS.get(args.platform)
        if platform is None:
            known = ", ".join(PLATFORMS)
            raise InputError(f"platform {args.platform!r} is not known; use {known}")
        found, many = _read(args.files, platform)
        profiles, further, extenders = many[_PROFILE], many[_SECONDARY], many[_EXTENDER]
        objects = {**_DEFAULT_OBJECTS, **found}
        inputs = Inputs(
            platform=platform,
            operand_version=Version.parse(args.operand_version),
            scheduler=objects["Scheduler"],
            kubescheduler=objects["KubeScheduler"],
            payload_version=args.payload_version,
            apiserver=objects.get("APIServer"),
            feature_gate=objects.get("FeatureGate"),
            infrastructure=objects.get("Infrastructure"),
            scheduler_profiles=tuple(profiles.values()),
            scheduler_extenders=tuple(extenders.values()),
            planned=True,
            schedulers=frozenset({"", *further}),
        )
        loads = [_load_policy(one) for one in many[_LOAD].values()]
        secondaries = [_secondary(one, inputs) for one in further.values()]
    except (InputError, ValueError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    composition = compose(inputs)
    document: dict[str, Any] = {
        "config": composition.config,
        "args": list(composition.arguments),
        "observedConfig": composition.observed_config,
        "conditions": _conditions(composition.findings),
    }
    verdicts = [*composition.verdicts, *(one for each in secondaries for one in each.verdicts)]
    called = [*composition.extenders, *(one for each in secondaries for one in each.extenders)]
    others = (*profiles.values(), *extenders.values())
    if (further or loads) and not found and all(scheduler_of(one) for one in others):
        document = {}  # nothing is said of the control plane
    if profiles:
        document["schedulerProfiles"] = _profiles(verdicts)
    if extenders:
        document["schedulerExtenders"] = _extenders(called)
    if further:
        document["secondarySchedulers"] = [each.document for each in secondaries]
    if loads:
        document["loadPolicies"] = loads
    _print(document, args.output)
    accepted = all(one.accepted for one in verdicts) and all(one.accepted for one in called)
    blocking = composition.blocking or any(each.blocking for each in secondaries)
    return 1 if blocking or not accepted else 0


@dataclass(frozen=True, slots=True)
class _Secondary:
    """What a SecondaryScheduler comes to."""

    document: dict[str, Any]
    verdicts: Sequence[Verdict]
    extenders: Sequence[ExtenderVerdict]
    blocking: bool


def scheduler_of(obj: dict[str, Any]) -> str:
    """The scheduler that is to have a profile or an extender; empty: the control plane's."""
    return str(obj["spec"].get("scheduler") or "")


def _secondary(obj: dict[str, Any], inputs: Inputs) -> _Secondary:
    """Compose one, with its profiles and extenders among the inputs.

    Raises:
        InputError: the API would not take it.
    """
    from ...base.findings import format_path
    from ...offline.kinds import Setting
    from ...offline.secondary_schedulers import DEFINITION, VERSION, composed
    from ...schedulerconfig.crd_schema import check_object
    from ...schedulerconfig.feature_gates import Gates

    name = obj["metadata"]["name"]
    for problem in check_object(obj, DEFINITION, VERSION):
        raise InputError(f'{_SECONDARY} "{name}": {format_path(problem.path)}: {problem.message}')
    setting = Setting(Gates(inputs.operand_version), inputs.platform)
    profiles, extenders = inputs.scheduler_profiles or (), inputs.scheduler_extenders or ()
    made = composed(obj, profiles, extenders, setting)
    composition = made.composition
    document = {
        "name": name,
        "config": composition.config,
        "args": list(composition.arguments),
        "conditions": [
            {"type": one.condition, "status": "True", "reason": one.reason, "message": one.text}
            for one in composition.findings
        ],
    }
    called = made.extenders.chosen.verdicts
    return _Secondary(document, made.verdicts, called, composition.blocking)


def _load_policy(obj: dict[str, Any]) -> dict[str, Any]:
    """What a LoadPolicy comes to.

    Raises:
        InputError: the operator would not accept it.
    """
    from ...load.policy import LoadPolicyError
    from ...load.policy_files import read_spec

    name = obj["metadata"]["name"]
    try:
        return {"name": name, "policy": read_spec(obj["spec"]).policy.document()}
    except LoadPolicyError as error:
        raise InputError(f'{_LOAD} "{name}": {error}') from error


def _profiles(verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
    """What became of each SchedulerProfile, and what runs then."""
    from ...profiles.status import plugin_table
    from ...status.accepted import state_of

    return [
        {
            "name": verdict.name,
            "state": state_of(verdict),
            "plugins": plugin_table(verdict),
            **({"warnings": [each.text for each in verdict.warnings]} if verdict.warnings else {}),
        }
        for verdict in verdicts
    ]


def _extenders(verdicts: Iterable[ExtenderVerdict]) -> list[dict[str, Any]]:
    """What became of each SchedulerExtender, and where it is called."""
    from ...status.accepted import state_of

    return [
        {
            "name": verdict.name,
            "state": state_of(verdict),
            **({"endpoint": verdict.entry["urlPrefix"]} if verdict.entry is not None else {}),
            **({"warnings": [each.text for each in verdict.warnings]} if verdict.warnings else {}),
        }
        for verdict in verdicts
    ]


def _read(
    files: list[str], platform: Platform
) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, dict[str, Any]]]]:
    """(the objects of all files by kind, those of which there can be many by kind and name).

    Raises:
        InputError: a file cannot be read or holds something else.
    """
    import yaml

    objects: dict[str, dict[str, Any]] = {}
    many: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in _MANY}
    for name in files:
        shown = "standard input" if name == "-" else name
        try:
            documents = list(yaml.safe_load_all(_text(name)))
        except OSError as error:
            raise InputError(f"{shown}: {error.strerror}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise InputError(f"{shown} is neither YAML nor JSON: {error}") from error
        for document in documents:
            if document is None:
                continue
            try:
                kind = _kind(document, platform)
            except InputError as error:
                raise InputError(f"{shown}: {error}") from None
            if kind in many:
                named = document["metadata"]["name"]
                if named in many[kind]:
                    raise InputError(f'{shown}: a second {kind} "{named}"; rename one')
                many[kind][named] = document
                continue
            if kind in objects:
                raise InputError(f"{shown}: a second {kind}; there is one per cluster")
            objects[kind] = document
    return objects, many


def _kind(document: Any, platform: Platform) -> str:
    """The kind of a document that the command can work with.

    Raises:
        InputError: it is another one, and what to do.
    """
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str) or kind not in _API_VERSIONS:
        what = f"kind {kind}" if kind else "no Kubernetes object"
        more = f" (also {', '.join(_INSTEAD)})" if platform.cluster_config else ""
        raise InputError(
            f"{what}; give a Scheduler, a KubeScheduler, SchedulerProfiles, SchedulerExtenders, "
            f"SecondarySchedulers and LoadPolicies{more}"
        )
    if kind in _INSTEAD and not platform.cluster_config:
        raise InputError(f"platform {platform.name} has no {kind}; {_INSTEAD[kind]}")
    got, wanted = document.get("apiVersion"), _API_VERSIONS[kind]
    if got != wanted:
        raise InputError(f"{kind} has apiVersion {got}; write {wanted}")
    metadata = document.get("metadata")
    if kind in _MANY:
        if not isinstance(metadata, dict) or not isinstance(metadata.get("name"), str):
            raise InputError(f"{kind} without metadata.name; give it one")
        if not isinstance(document.get("spec"), dict):
            raise InputError(f"{kind} without spec; write {_EMPTY[kind]}")
        return kind
    name = metadata.get("name", names.CLUSTER) if isinstance(metadata, dict) else names.CLUSTER
    if name != names.CLUSTER:
        raise InputError(f'{kind} "{name}" is not read; the one that counts is "{names.CLUSTER}"')
    return kind


def _text(name: str) -> str:
    from pathlib import Path

    return sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")


def _conditions(findings: tuple[Finding, ...]) -> list[dict[str, str]]:
    """What the operator would say; conditions that have nothing to say are left out."""
    from ...controlplane.conditions import from_findings

    return [
        {
            "type": condition.type,
            "status": condition.status,
            "reason": condition.reason,
            "message": condition.message,
        }
        for condition in from_findings(findings)
        if condition.message
    ]


def _print(document: dict[str, Any], output: str) -> None:
    import json

    import yaml

    if output == "json":
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        yaml.safe_dump(document, sys.stdout, sort_keys=False, allow_unicode=True)
