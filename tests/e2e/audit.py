"""What the operator and its pods asked of the API servers of a run, and what they may ask.

Both come from the servers themselves: their audit logs, and the roles that are in their API.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from cluster import model, processes
from cluster.api import Api, Object
from cluster.model import Sandbox
from kube_scheduler_operator.base.platform import PLATFORMS

OPERATORS = {platform.operator.account for platform in PLATFORMS.values()}
"""The names of the operator's account."""

NAMESPACES = {
    "kube-scheduler-operator", "openshift-kube-scheduler", "openshift-kube-scheduler-operator",
}  # fmt: skip
RBAC = "/apis/rbac.authorization.k8s.io/v1"
SERVES = re.compile(r"^I(\d{4} \d\d:\d\d:\d\d\.\d+) .*Serving securely on", re.MULTILINE)
UNREAD = timedelta(seconds=5)
"""kube-apiserver serves before it has read the roles, and until then refuses everything: for up to
0.5 s, in each of six starts of version 1.35.4."""


@dataclass(frozen=True, order=True)
class Right:
    """To do something with a kind of object, in a namespace or (empty) everywhere."""

    account: str  # NAMESPACE:NAME of the ServiceAccount
    namespace: str  # where
    group: str  # API group
    resource: str  # the kind, with its subresource if it is one: "pods/log"
    verb: str  # what

    @property
    def kind(self) -> tuple[str, ...]:
        """What is the same on every platform: our namespaces, one or two, and the operator."""
        place = "ours" if self.namespace in NAMESPACES else self.namespace
        account = self.account.partition(":")[2]
        if account in OPERATORS:
            account = "the operator"
        return account, place, self.group, self.resource, self.verb

    def __str__(self) -> str:
        kind = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.account} {self.verb} {kind} in {self.namespace or 'the whole cluster'}"


@dataclass
class Record:
    """The sum of several clusters."""

    clusters: list[str] = field(default_factory=list)  # which ones
    requests: int = 0  # how many there were
    used: set[Right] = field(default_factory=set)  # what was done
    refused: set[Right] = field(default_factory=set)  # the rights that requests lacked
    granted: set[Right] = field(default_factory=set)  # what could be done

    def add(self, name: str) -> None:
        """Take in a sandbox that still runs, once.

        For the accounts of secondary schedulers, whose roles the operator creates, nothing is
        taken in: their rights are Kubernetes' own, and go before they do when one is deleted.
        """
        sandbox = model.load(name)
        if sandbox is None or name in self.clusters:
            return
        self.clusters.append(name)
        events = list(_events(sandbox))
        theirs = {account for event in events for account in _given_a_role(event)}
        granted = {right for right in _granted(Api(sandbox)) if right.account not in theirs}
        self.granted |= granted
        starts = serving(processes.log_file(sandbox, "kube-apiserver").read_text())
        for event in events:
            if _account(event) in theirs:
                continue
            self.requests += 1
            about = event.get("objectRef")
            if about is None:
                continue  # discovery, versions: every account may read them
            right, decided = _right(event, about), decision(event)
            if decided == "allow":
                self.used |= {right, *handed_out(event)}
            elif decided and not (is_granted(right, granted) and had_just_started(event, starts)):
                self.refused.add(right)

    def merge(self, other: Record) -> None:
        """Take in what another process has recorded."""
        self.clusters += other.clusters
        self.requests += other.requests
        self.used |= other.used
        self.refused |= other.refused
        self.granted |= other.granted

    def unused(self) -> list[Right]:
        """Rights that no request used, on any platform."""
        used = {right.kind for right in self.used}
        used |= {(name, "", *what) for name, _, *what in used}
        return sorted(right for right in self.granted if right.kind not in used)


def refusals(sandbox: Sandbox, account: str, since: str) -> list[str]:
    """What was refused to one account, NAMESPACE:NAME, since a time as the API writes it.

    Another test may have had an account of that name, whose rights went before its pods did.
    """
    refused = {
        _right(event, event["objectRef"])
        for event in _events(sandbox)
        if _account(event) == account and "objectRef" in event and decision(event) == "forbid"
        if event["requestReceivedTimestamp"] >= since
    }
    return [str(right) for right in sorted(refused)]


def writes(sandbox: Sandbox, since: str) -> dict[str, int]:
    """What operators wrote since a time as the API writes it, and how often.

    Leases and Events come by time, and are left out.
    """
    found: dict[str, int] = {}
    for event in _events(sandbox):
        about = event.get("objectRef") or {}
        if (
            _account(event).partition(":")[2] in OPERATORS
            and event["verb"] in ("create", "update", "patch", "delete")
            and about.get("resource") not in ("leases", "events")
            and event["requestReceivedTimestamp"] >= since
            and not about.get("apiGroup", "").endswith(
                ("authorization.k8s.io", "authentication.k8s.io")
            )
        ):
            key = f"{event['verb']} {_right(event, about).resource} {about.get('name', '')}"
            found[key] = found.get(key, 0) + 1
    return found


def handed_out(event: Object) -> Iterator[Right]:
    """The right to bind that a request made use of, if it wrote a binding.

    The API server asks for that verb by itself, in the place where the binding is.
    """
    role = (event.get("requestObject") or {}).get("roleRef")
    if role and event["responseStatus"]["code"] < 300:
        place = event["objectRef"].get("namespace", "")
        resource = f"{role['kind'].lower()}s"
        yield Right(_account(event), place, role["apiGroup"], resource, "bind")


def _given_a_role(event: Object) -> Iterator[str]:
    for subject in (event.get("requestObject") or {}).get("subjects") or ():
        if subject["kind"] == "ServiceAccount":
            yield f"{subject['namespace']}:{subject['name']}"


def decision(event: Object) -> str:
    """ "allow" or "forbid"; empty without a decision.

    A request is queued (API Priority and Fairness) before it is authorized. If the server is slow
    or the client has gone, it ends there.
    """
    return str(event.get("annotations", {}).get("authorization.k8s.io/decision", ""))


def _account(event: Object) -> str:
    _, _, account = event["user"]["username"].partition(":serviceaccount:")
    return str(account)


def is_granted(right: Right, granted: set[Right]) -> bool:
    """Whether a role allows it, there or in the whole cluster."""
    return right in granted or replace(right, namespace="") in granted


def serving(log: str) -> list[datetime]:
    """When a kube-apiserver began to serve, from its log: klog knows neither year nor time zone."""
    year = datetime.now().year
    found = (
        datetime.strptime(f"{year}{text}", "%Y%m%d %H:%M:%S.%f") for text in SERVES.findall(log)
    )
    return [moment.astimezone(UTC) for moment in found]


def had_just_started(event: Object, starts: Sequence[datetime]) -> bool:
    """Whether the server may not have read the roles yet."""
    moment = datetime.fromisoformat(event["requestReceivedTimestamp"])
    return any(start <= moment <= start + UNREAD for start in starts)


def _events(sandbox: Sandbox) -> Iterator[Object]:
    with (sandbox.state / "logs/audit.log").open() as file:
        for line in file:
            yield json.loads(line)


def _right(event: Object, about: Object) -> Right:
    subresource = f"/{about['subresource']}" if "subresource" in about else ""
    return Right(
        _account(event),
        about.get("namespace", ""),
        about.get("apiGroup", ""),
        f"{about['resource']}{subresource}",
        event["verb"],
    )


def _granted(api: Api) -> Iterator[Right]:
    for kind, roles in (("rolebindings", "roles"), ("clusterrolebindings", "clusterroles")):
        rules = {
            (role["metadata"].get("namespace", ""), role["metadata"]["name"]): role["rules"]
            for role in api.request("GET", f"{RBAC}/{roles}")["items"]
        }
        for binding in api.request("GET", f"{RBAC}/{kind}")["items"]:
            place = binding["metadata"].get("namespace", "")
            for subject in binding.get("subjects") or ():
                if subject["kind"] != "ServiceAccount" or subject["namespace"] not in NAMESPACES:
                    continue
                account = f"{subject['namespace']}:{subject['name']}"
                for rule in rules[(place, binding["roleRef"]["name"])] or ():
                    yield from _of_rule(account, place, rule)


def _of_rule(account: str, place: str, rule: Object) -> Iterator[Right]:
    for group in rule.get("apiGroups", ()):
        for resource in rule.get("resources", ()):
            for verb in rule["verbs"]:
                yield Right(account, place, group, resource, verb)
