"""The check of a newer version of Kubernetes, which users request in OperatorSettings.

It reports, and nothing waits for it. Its memory is `status.upgradeCheck` of OperatorSettings: what
was checked, since when and with which result, so that another leader continues. It is repeated when
the configuration has changed, and every few hours, because Pods and Nodes change.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...base import names
from ...base.objects import mapping
from ...base.templates import canonical_json
from ...base.times import ALWAYS, rfc3339, seconds_left, timestamp
from ...config.effective.control_plane.compose import Composition
from ...config.effective.settings.upgrade_check import FIELD, UpgradeRequest, upgrade_request
from ...config.effective.upgrades import Upgrade
from ...config.language.plugins.in_tree_plugins import NEWEST_RELEASE
from ...config.language.versions import Version
from ...kube.api import EventType
from ..model.plan import Event, UpgradeQuestion
from ..model.snapshot import CheckIdentity, Snapshot, UpgradeAnswer
from ..status.conditions import Condition, Status

NOTHING_FOUND: Final = "NothingFound"
CHANGES: Final = "Changes"
NOT_KNOWN: Final = "NotKnown"
"""Results, and reasons of the condition."""
CHECKING: Final = "Checking"
REACHED: Final = "VersionReached"
UNKNOWN_VERSION: Final = "VersionUnknown"
"""Further reasons; CHECKING is also a state of the memory, until there is a result."""
CHECKED: Final = "Checked"

SECONDS: Final = 900
"""From the request to the answer: pulling two images, and two kube-schedulers that try 2,000 kinds
of Pods each."""
_LIMIT: Final = SECONDS + 30.0
"""After which a check without an answer counts as one that could not be run."""
CHANGED_SECONDS: Final = 600.0
"""Between two checks of different configurations, at least."""
RETRY_SECONDS: Final = 3600.0
"""From a check without a kube-scheduler, which could not be run, to the next one."""
REPEAT_SECONDS: Final = 6 * 3600.0
"""Between two checks of the same configuration."""

_STATUS: Final[Mapping[str, Status]] = {
    NOTHING_FOUND: "True",
    CHANGES: "False",
    NOT_KNOWN: "Unknown",
}
_RELEASE: Final = re.compile(r"[^@]+:v\d+\.\d+\.\d+")
_NO_IMAGE: Final = "name the image of its kube-scheduler in spec.upgradeCheck.image"


@dataclass(frozen=True, slots=True)
class UpgradeSubject:
    """What would be upgraded."""

    composition: Composition  # of the control plane's scheduler, with the version in use
    image: str
    upgrades: Callable[[], Sequence[Upgrade]]  # all schedulers

    @property
    def version(self) -> Version:
        return self.composition.inputs.facts.version


@dataclass(frozen=True, slots=True)
class UpgradeCheck:
    record: Mapping[str, Any] | None = None  # its memory; empty without a check; None: not known
    condition: Condition | None = None  # None if none is requested
    questions: tuple[UpgradeQuestion, ...] | None = None  # the checks to run; None: not known
    events: tuple[Event, ...] = ()
    requeue_after: float | None = None  # seconds until the next check, or its limit


NOT_REQUESTED: Final = UpgradeCheck({}, questions=())


def requested_upgrade(snapshot: Snapshot) -> UpgradeRequest | None:
    obj = mapping((snapshot.operator_settings or {}).get(names.CLUSTER))
    return upgrade_request(mapping(obj.get("spec")))


def check_upgrade(snapshot: Snapshot, subject: UpgradeSubject) -> UpgradeCheck:
    request = requested_upgrade(snapshot)
    if snapshot.operator_settings is None:
        return UpgradeCheck()  # the API does not serve the kind, or the object is too large
    if request is None:
        return NOT_REQUESTED
    newest = Version(NEWEST_RELEASE.major, NEWEST_RELEASE.minor + 1)
    if request.version > newest:
        message = f"{request.version.short} is not known; the newest is {newest.short}"
        return UpgradeCheck({}, _condition("Unknown", UNKNOWN_VERSION, message), ())
    return _Checked(snapshot, request, subject).check()


def result_of(snapshot: Snapshot, version: Version) -> str:
    """The summary of the last check of a minor version; empty without one."""
    record = _recorded(snapshot)
    if record.get("version") != version.short or not record.get("result"):
        return ""
    summary = str(record.get("message") or "").partition("\n")[0]
    return f"the check of {version.short} at {record.get('checked')}: {summary}"


@dataclass(frozen=True, slots=True)
class _Checked:
    snapshot: Snapshot
    request: UpgradeRequest
    subject: UpgradeSubject

    def check(self) -> UpgradeCheck:
        known = _recorded(self.snapshot)
        asked = {"version": self.request.version.short, "image": self.request.image}
        if any((known.get(key) or "") != value for key, value in asked.items()):
            known = {}
        in_use = self.subject.version
        if (in_use.major, in_use.minor) >= (self.request.version.major, self.request.version.minor):
            return self._reached({**known, **asked})
        record = {key: value for key, value in known.items() if key != "reached"}
        configuration = configuration_hash(self.snapshot, self.subject)
        if not record or self._is_due(record, configuration):
            record |= {
                **asked,
                "configuration": configuration,
                "started": rfc3339(self.snapshot.now),
                "state": CHECKING,
            }
        return self._checked(record, configuration)

    def _checked(self, record: dict[str, Any], configuration: str) -> UpgradeCheck:
        record, events = self._answered(record)
        condition = self._condition(record, configuration)
        if record.get("state") != CHECKING:
            wait = self._left(record, _wait(record, configuration))
            return UpgradeCheck(record, condition, (), events, wait)
        # Once its identity is on record, so that it stays the same.
        identity = _identity(record)
        is_recorded = identity == _identity(_recorded(self.snapshot))
        questions = (self._question(identity),) if is_recorded else ()
        return UpgradeCheck(record, condition, questions, events, self._left(record, _LIMIT))

    def _reached(self, record: dict[str, Any]) -> UpgradeCheck:
        """Report the last result once the version is in use, as after `kubeadm upgrade`."""
        version, target = self.subject.version, self.request.version.short
        if record.get("result"):
            found = record.get("message")
            had = f"the check of {target} at {record.get('checked')} had found: {found}"
        else:
            had = f"no check of {target} had a result"
        message = f"kube-scheduler {version} is in use; {had}"
        events: tuple[Event, ...] = ()
        if "reached" not in record and record.get("result"):
            events = (Event("UpgradeReached", message),)
        record = {**record, "state": CHECKED, "reached": str(version)}
        return UpgradeCheck(record, _condition("True", REACHED, message), (), events)

    def _is_due(self, record: Mapping[str, Any], configuration: str) -> bool:
        wait = _wait(record, configuration)
        return record.get("state") != CHECKING and not self._left(record, wait)

    def _left(self, record: Mapping[str, Any], period: float) -> float:
        started = timestamp(str(record.get("started") or "")) or ALWAYS
        return seconds_left(self.snapshot.now, started, period)

    def _answered(self, record: dict[str, Any]) -> tuple[dict[str, Any], tuple[Event, ...]]:
        """The memory with the answer, if there is one by now, or if it is overdue."""
        if record.get("state") != CHECKING:
            return record, ()
        identity = _identity(record)
        answer = self.snapshot.upgrade_answers.get(identity)
        if answer is None:
            if self._left(record, _LIMIT):
                return record, ()
            overdue = f"there was no answer within {SECONDS} s"
            answer = UpgradeAnswer(identity, NOT_KNOWN, overdue, tried=False)
        made = {"result": answer.result, "message": answer.message, "tried": answer.tried}
        events: tuple[Event, ...] = ()
        if any(record.get(key) != value for key, value in made.items()):
            type_: EventType = "Warning" if answer.result == CHANGES else "Normal"
            events = (Event("UpgradeChecked", answer.message, type_),)
        return {**record, **made, "checked": rfc3339(self.snapshot.now), "state": CHECKED}, events

    def _condition(self, record: Mapping[str, Any], configuration: str) -> Condition:
        if not record.get("result"):
            message = (
                f"the upgrade to {self.request.version.short} is checked, at most {SECONDS} s from "
                f"{record.get('started')}"
            )
            return _condition("Unknown", CHECKING, message)
        result = str(record["result"])
        message = f"{record.get('message')}\nchecked at {record.get('checked')}"
        if record.get("configuration") != configuration:
            message += "; the configuration has changed since, and is checked again"
        return _condition(_STATUS.get(result, "Unknown"), result, message)

    def _question(self, identity: CheckIdentity) -> UpgradeQuestion:
        snapshot, subject = self.snapshot, self.subject
        image, problem = self._next_image()
        return UpgradeQuestion(
            identity,
            subject.upgrades,
            self.request.version,
            subject.image,
            tuple(snapshot.platform.operand_command),
            image,
            SECONDS,
            bool(self.request.image),
            problem,
            _specs(snapshot.scheduler_extenders),
            _specs(snapshot.loads.policies),
        )

    def _next_image(self) -> tuple[str, str]:
        """(the image of the next kube-scheduler, why it is not known)."""
        image, in_use = self.request.image, self.subject.image
        if image:
            allowed = self.snapshot.settings.allowed_images.with_repositories_of(in_use)
            problem = next(allowed.problems((), image), None)
            return (image, "") if problem is None else ("", problem.message)
        if not self.subject.composition.inputs.facts.is_stock:
            return "", f"{in_use} may have plugins of its own; {_NO_IMAGE}"
        if not _RELEASE.fullmatch(in_use):
            return "", f"the tag of {in_use or 'its image'} is not that of a release; {_NO_IMAGE}"
        return f"{in_use.rpartition(':')[0]}:v{self.request.version.short}.0", ""


def configuration_hash(snapshot: Snapshot, subject: UpgradeSubject) -> str:
    """The identity of what is checked: SHA-256, 64 hex digits."""
    composition = subject.composition
    content = [
        composition.config,
        list(composition.arguments),
        [str(subject.version), subject.image],
        _specs(snapshot.secondaries.schedulers),
        _specs(snapshot.scheduler_profiles),
        _specs(snapshot.scheduler_extenders),
        _specs(snapshot.loads.policies),
    ]
    return hashlib.sha256(canonical_json(content).encode()).hexdigest()


def _specs(objects: Mapping[str, Mapping[str, Any]] | None) -> dict[str, Any]:
    return {name: mapping(obj.get("spec")) for name, obj in (objects or {}).items()}


def _wait(record: Mapping[str, Any], configuration: str) -> float:
    """Seconds from the last check to the next one."""
    if record.get("configuration") != configuration:
        return CHANGED_SECONDS
    return REPEAT_SECONDS if record.get("tried") else RETRY_SECONDS


def _recorded(snapshot: Snapshot) -> Mapping[str, Any]:
    obj = mapping((snapshot.operator_settings or {}).get(names.CLUSTER))
    return mapping(mapping(obj.get("status")).get(FIELD))


def _identity(record: Mapping[str, Any]) -> CheckIdentity:
    asked = " ".join(str(record.get(key) or "") for key in ("version", "image"))
    return CheckIdentity(str(record.get("configuration")), asked, str(record.get("started")))


def _condition(status: Status, reason: str, message: str) -> Condition:
    return Condition(names.UPGRADE_CHECK_PASSED, status, reason, message)
