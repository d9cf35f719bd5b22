"""What a check reads, gathered by `cli/adoption/cluster_facts.py`, and what it yields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from ...base.objects import Object
from ...base.platform import Platform
from ...base.recognition import Recognition

if TYPE_CHECKING:
    # Types only; their modules load the composition, and `check --help` would wait for it.
    from ...operator.controlplane.adoption.preview import AdoptionPreview
    from ...operator.model.snapshot import AssignmentWay

T_co = TypeVar("T_co", covariant=True)


class NotObservedError(Exception):
    """What a check needs could not be read; the message is the reason."""


@dataclass(frozen=True, slots=True)
class Observed(Generic[T_co]):
    """A value that was read, or the reason why it was not."""

    value: T_co | None = None
    error: str = ""  # why it was not read; empty if it was

    def get(self) -> T_co:
        """Get the value, or raise NotObservedError."""
        if self.error:
            raise NotObservedError(self.error)
        return cast("T_co", self.value)


UNREAD: Final[Observed[Any]] = Observed(error="it was not read")
"""A fact that no check of this run needs."""


@dataclass(frozen=True, slots=True)
class KnownCertificate:
    name: str  # whose it is, for messages
    expires: datetime | None  # None if it cannot be read
    renew: str  # how to renew it


@dataclass(frozen=True, slots=True)
class DryRun:
    what: str  # the object, for messages
    error: str = ""  # the refusal of the API server; empty if it accepts the object
    unanswered: str = ""  # why there is no answer; empty if there is one


@dataclass(frozen=True, slots=True)
class AssignmentTrial:
    """What a new Pod that a SecondaryScheduler selects gets, tried as a dry run."""

    expected: str  # the schedulerName that it should get
    namespace: str = ""  # where it was tried
    scheduler: str = ""  # the schedulerName that it got
    unanswered: str = ""  # why it was not tried; empty if it was


@dataclass(frozen=True, slots=True)
class UnlimitedAccount:
    """A ServiceAccount that may do everything."""

    account: str  # namespace/name
    bindings: Sequence[str]  # the ClusterRoleBindings that grant it; empty: not known


@dataclass(frozen=True, slots=True)
class SecondaryFacts:
    """What exists of a SecondaryScheduler."""

    deployment: Object | None  # None if it does not exist
    pods: Sequence[Object]
    lease: Object | None
    lost_config_map: str = ""  # the configuration that its status names; empty if it exists


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    now: datetime  # the time of the API server
    platform: Platform
    ahead: float = 0.0  # seconds by which this machine's clock is ahead of it
    # what detection finds now; None if `--platform` decides
    recognition: Observed[Recognition | None] = UNREAD
    server_version: str = ""  # `gitVersion` of the API server
    images: Sequence[str] = ()  # the images of the installation's Pods
    # the certificate of the API server, and of the user in the kubeconfig
    server: Observed[Sequence[KnownCertificate]] = UNREAD
    nodes: Observed[Sequence[Object]] = UNREAD
    node_leases: Observed[Mapping[str, Object]] = UNREAD  # the Leases of kubelets, by node
    namespace: Observed[Object | None] = UNREAD  # the operator's; None if it does not exist
    # the CustomResourceDefinitions of our names in the cluster, by name
    crds: Observed[Mapping[str, Object]] = UNREAD
    own_crds: Sequence[Object] = ()  # those of this version
    # what the user may not do, of what the installation does
    missing_rights: Observed[Sequence[str]] = UNREAD
    # whether the API server accepts the installation's Pods
    admission: Observed[Sequence[DryRun]] = UNREAD
    # whether it accepts the installation's roles, by the rule against escalation
    rbac: Observed[Sequence[DryRun]] = UNREAD
    # admission webhooks for Pods whose Service is missing: (webhook, Service)
    webhooks: Observed[Sequence[tuple[str, str]]] = UNREAD
    # Deployments with a scheduler or with this operator, of all namespaces
    deployments: Observed[Sequence[Object]] = UNREAD
    # what adoption would do; None if there is no static Pod
    adoption: Observed[AdoptionPreview | None] = UNREAD
    # Pods of control-plane nodes that use their node's network
    host_pods: Observed[Sequence[Object]] = UNREAD
    operator_pods: Observed[Sequence[Object]] = UNREAD  # the Pods in the operator's namespace
    operand_pods: Observed[Mapping[str, Object]] = UNREAD  # the schedulers' mirror Pods, by node
    # None if they do not exist
    deployment: Observed[Object | None] = UNREAD  # the operator's
    operator_lease: Observed[Object | None] = UNREAD
    operand_lease: Observed[Object | None] = UNREAD  # of the control plane's scheduler
    kubescheduler: Observed[Object | None] = UNREAD
    cluster_operator: Observed[Object | None] = UNREAD
    # objects of our kinds by kind and name
    kinds: Mapping[str, Observed[Mapping[str, Object]]] = field(default_factory=dict)
    secondaries: Mapping[str, Observed[SecondaryFacts]] = field(default_factory=dict)  # by name
    # what applies spec.assign of SecondarySchedulers to new Pods; None if that is not known
    assignment_way: Observed[AssignmentWay | None] = UNREAD
    webhook_service: Observed[Object | None] = UNREAD  # of the assignment webhook
    # by SecondaryScheduler; those whose assignment is in effect
    assignment_trials: Observed[Mapping[str, AssignmentTrial]] = UNREAD
    missing_account_rights: Observed[Sequence[str]] = UNREAD  # of the operator's ServiceAccount
    # the ServiceAccounts of the operator's Pods that may do everything
    unlimited_accounts: Observed[Sequence[UnlimitedAccount]] = UNREAD
    certificates: Observed[Sequence[KnownCertificate]] = UNREAD  # of webhooks and schedulers

    def control_plane_nodes(self) -> tuple[Object, ...]:
        """The control-plane nodes; NotObservedError if nodes cannot be read."""
        return tuple(filter(self.platform.is_control_plane, self.nodes.get()))


# --- what a check yields ------------------------------------------------------------------------


PAGE: Final = "troubleshooting.md"
"""The page of docs/ with a section for each check."""


class CheckState(Enum):
    """The result of a check; the value is displayed. Later ones are worse."""

    OK = "ok"
    NOT_CHECKED = "not checked"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CheckResult:
    check: str  # the name of the check
    state: CheckState
    cause: str  # one sentence: the problem; if ok what was seen; why it was not checked
    hint: str = ""  # what to do; empty if ok
    link: str = ""  # page and anchor, relative to docs/


@dataclass(frozen=True, slots=True)
class CheckProblem:
    cause: str  # one sentence
    hint: str  # what to do
    state: CheckState = CheckState.FAILED  # WARNING, FAILED or NOT_CHECKED
    link: str = ""  # page and anchor; empty: the section of the check


@dataclass(frozen=True, slots=True)
class Check:
    name: str  # in the table, and the anchor of its section in the documentation
    # yields problems; may return what it saw without any, as the text of `ok`
    find: Callable[[ClusterFacts], Iterator[CheckProblem | str]]

    @property
    def link(self) -> str:
        return f"{PAGE}#{self.name}"


def run_check(check: Check, facts: ClusterFacts) -> tuple[CheckResult, ...]:
    """The results of a check, the worst first; one `ok` if there is no problem."""
    results: list[CheckResult] = []
    summary = ""
    try:
        for problem in check.find(facts):
            if isinstance(problem, str):
                summary = problem
                continue
            link = problem.link or check.link
            results.append(
                CheckResult(check.name, problem.state, problem.cause, problem.hint, link)
            )
    except NotObservedError as error:
        state = CheckState.NOT_CHECKED
        hint = (
            "grant the right that the message names, or run the command as an administrator (--as)"
        )
        results.append(CheckResult(check.name, state, str(error), hint, check.link))
    if not results:
        return (CheckResult(check.name, CheckState.OK, summary, link=check.link),)
    order = list(CheckState)
    return tuple(sorted(results, key=lambda result: -order.index(result.state)))


def exit_code(results: Iterable[CheckResult], *, strict: bool) -> int:
    """1 if a check failed, or with `strict` warned; otherwise 0."""
    states = {result.state for result in results}
    bad = {CheckState.FAILED, CheckState.WARNING} if strict else {CheckState.FAILED}
    return 1 if states & bad else 0
