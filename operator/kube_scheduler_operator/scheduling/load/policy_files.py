"""Parses load policies: policy.json, a LoadPolicy, or crane's DynamicSchedulerPolicy.

crane-scheduler and its fork crane-scheduler-plus decode the same file leniently, one with limits as
fractions and the other as percentages; both are accepted, with a warning for everything that crane
ignores silently. The operator's own formats are parsed strictly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ...base.findings import Problem
from .policy import LoadPolicy, LoadPolicyError, Rules
from .policy_fields import CRANE, FILE, SPEC
from .policy_reader import PolicyReader

CRANE_GROUP: Final = "scheduler.policy.crane.io"
CRANE_KIND: Final = "DynamicSchedulerPolicy"
OWN_GROUP: Final = "kube-scheduler-operator.dev"
OWN_KIND: Final = "LoadPolicy"


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    policy: LoadPolicy
    notes: tuple[Problem, ...] = ()  # warnings about ignored or reinterpreted values


def read_policy(text: str) -> LoadedPolicy:
    """Parse policy.json, a LoadPolicy or a DynamicSchedulerPolicy, in YAML or JSON.

    Raises:
        LoadPolicyError: the text is invalid; every problem has the field and the fix.
    """
    from ...base.source.reader import read  # deferred: policies are mostly JSON

    documents, error = read(text)
    if error is not None:
        where = f"line {error.position.line}, column {error.position.column}"
        raise LoadPolicyError([Problem("Unreadable", (), f"{where}: {error.message}")])
    if len(documents) != 1:
        message = f"found {len(documents)} documents; write one load policy"
        raise LoadPolicyError([Problem("NotOneDocument", (), message)])
    (document,) = documents
    flaws = [Problem("Unreadable", flaw.path, flaw.message) for flaw in document.flaws]
    if flaws:
        raise LoadPolicyError(flaws)
    return from_document(document.value)


def from_document(document: Any) -> LoadedPolicy:
    """Like read_policy, for a parsed document. Raises LoadPolicyError."""
    if not isinstance(document, Mapping):
        message = "a load policy must be an object; write its fields"
        raise LoadPolicyError([Problem("InvalidType", (), message)])
    if "kind" not in document and "apiVersion" not in document:
        return _strictly(PolicyReader(FILE), document)
    group, _, version = str(document.get("apiVersion") or "").partition("/")
    kind = document.get("kind")
    if kind == CRANE_KIND and group == CRANE_GROUP:
        return _crane(document)
    if kind == OWN_KIND and group == OWN_GROUP and version == "v1alpha1":
        return read_spec(document.get("spec"))
    message = (
        f"{document.get('apiVersion')} {kind} is not a load policy; write {OWN_GROUP}/v1alpha1 "
        f"{OWN_KIND} or {CRANE_GROUP}/v1alpha1 {CRANE_KIND}"
    )
    raise LoadPolicyError([Problem("UnknownKind", ("kind",), message)])


def read_spec(spec: Any) -> LoadedPolicy:
    """Parse the spec of a LoadPolicy.

    Raises:
        LoadPolicyError: the spec is invalid; paths start with `spec`.
    """
    return _strictly(PolicyReader(SPEC), {} if spec is None else spec, ("spec",))


def read_rules(document: Mapping[str, Any]) -> Rules:
    """Parse only the rules of a policy.json; absent fields have their defaults.

    Raises LoadPolicyError.
    """
    names = map(FILE.name, ("sync", "predicates", "priorities", "hot_values", "grace"))
    reader = PolicyReader(FILE)
    rules = reader.rules({name: document[name] for name in names if name in document}, ())
    if reader.problems:
        raise LoadPolicyError(reader.problems)
    return rules


def _strictly(
    reader: PolicyReader, document: Any, path: tuple[str | int, ...] = ()
) -> LoadedPolicy:
    if not isinstance(document, Mapping):
        raise LoadPolicyError([Problem("InvalidType", path, "this must be an object")])
    return _finished(reader, reader.policy(document, path))


def _crane(document: Mapping[str, Any]) -> LoadedPolicy:
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        message = "this is required; write the policy into it"
        raise LoadPolicyError([Problem("InvalidType", ("spec",), message)])
    reader = PolicyReader(CRANE)
    return _finished(reader, LoadPolicy(reader.rules(spec, ("spec",))))


def _finished(reader: PolicyReader, policy: LoadPolicy) -> LoadedPolicy:
    if reader.problems:
        raise LoadPolicyError(reader.problems)
    return LoadedPolicy(policy, tuple(reader.notes))
