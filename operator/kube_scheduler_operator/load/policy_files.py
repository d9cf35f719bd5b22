"""Load policies as files: our policy.json, a LoadPolicy, crane's DynamicSchedulerPolicy.

crane-scheduler and its fork crane-scheduler-plus decode the same file leniently, one with limits as
fractions and the other with percentages; both are read as they are, with a note for whatever they
would have passed over in silence. What is our own is read strictly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ..base.findings import Problem
from .policy import LoadPolicy, LoadPolicyError, Rules
from .policy_reader import CRANE, FILE, SPEC, Reader

CRANE_GROUP: Final = "scheduler.policy.crane.io"
CRANE_KIND: Final = "DynamicSchedulerPolicy"
OWN_GROUP: Final = "kube-scheduler-operator.dev"
OWN_KIND: Final = "LoadPolicy"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A policy that was read.

    Attributes:
        policy: the policy.
        notes: what of it counts for nothing, or not as it was written.
    """

    policy: LoadPolicy
    notes: tuple[Problem, ...] = ()


def read_policy(text: str) -> Loaded:
    """Read policy.json, a LoadPolicy or a DynamicSchedulerPolicy, in YAML or JSON.

    Raises:
        LoadPolicyError: it is none of them; every problem names the field and the fix.
    """
    from ..schedulerconfig.source import read  # it loads PyYAML, which a document needs not

    documents, error = read(text)
    if error is not None:
        where = f"line {error.position.line}, column {error.position.column}"
        raise LoadPolicyError([Problem("Unreadable", (), f"{where}: {error.message}")])
    if len(documents) != 1:
        message = f"there are {len(documents)} documents; write one load policy"
        raise LoadPolicyError([Problem("NotOneDocument", (), message)])
    (document,) = documents
    flaws = [Problem("Unreadable", flaw.path, flaw.message) for flaw in document.flaws]
    if flaws:
        raise LoadPolicyError(flaws)
    return from_document(document.value)


def from_document(document: Any) -> Loaded:
    """The same, of a document that has been parsed.

    Raises:
        LoadPolicyError: it is no load policy.
    """
    if not isinstance(document, Mapping):
        message = "a load policy is an object; write its fields"
        raise LoadPolicyError([Problem("InvalidType", (), message)])
    if "kind" not in document and "apiVersion" not in document:
        return _finished(*_strictly(Reader(FILE), document))
    group, _, version = str(document.get("apiVersion") or "").partition("/")
    kind = document.get("kind")
    if kind == CRANE_KIND and group == CRANE_GROUP:
        return _crane(document)
    if kind == OWN_KIND and group == OWN_GROUP and version == "v1alpha1":
        return read_spec(document.get("spec"))
    message = (
        f"{document.get('apiVersion')} {kind} is no load policy; write {OWN_GROUP}/v1alpha1 "
        f"{OWN_KIND} or {CRANE_GROUP}/v1alpha1 {CRANE_KIND}"
    )
    raise LoadPolicyError([Problem("UnknownKind", ("kind",), message)])


def read_spec(spec: Any) -> Loaded:
    """The policy of a LoadPolicy's spec.

    Raises:
        LoadPolicyError: it is none; the paths begin with `spec`.
    """
    return _finished(*_strictly(Reader(SPEC), {} if spec is None else spec, ("spec",)))


def read_rules(
    document: Mapping[str, Any], path: tuple[str | int, ...] = (), *, shape: str = "file"
) -> Rules:
    """The rules alone, from keys of policy.json among others; what is absent has its default.

    Args:
        document: with `syncPolicy`, `predicate`, `priority`, `hotValue` or `graceSeconds`.
        path: of the document, for messages.
        shape: `spec` for the keys that a LoadPolicy has.

    Raises:
        LoadPolicyError: they are wrong.
    """
    reader = Reader(SPEC if shape == "spec" else FILE)
    rules = reader.rules(document, path)
    if reader.problems:
        raise LoadPolicyError(reader.problems)
    return rules


def _strictly(
    reader: Reader, document: Any, path: tuple[str | int, ...] = ()
) -> tuple[Reader, LoadPolicy]:
    if not isinstance(document, Mapping):
        raise LoadPolicyError([Problem("InvalidType", path, "this must be an object")])
    reader.known(document, path, reader.shape.fields)
    return reader, reader.policy(document, path)


def _crane(document: Mapping[str, Any]) -> Loaded:
    spec = document.get("spec")
    if not isinstance(spec, Mapping):
        message = "there is no spec; write the policy into one"
        raise LoadPolicyError([Problem("InvalidType", ("spec",), message)])
    reader = Reader(CRANE)
    fields = (CRANE.sync, CRANE.predicates, CRANE.priorities, CRANE.hot_values)
    reader.known(spec, ("spec",), fields)
    return _finished(reader, LoadPolicy(reader.rules(spec, ("spec",))))


def _finished(reader: Reader, policy: LoadPolicy) -> Loaded:
    if reader.problems:
        raise LoadPolicyError(reader.problems)
    return Loaded(policy, tuple(reader.notes))
