"""What the webhook decides about one request, without a connection."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

import pytest

from kube_scheduler_operator.kube.errors import (
    ApiRequest,
    Forbidden,
    KubeError,
    NotFound,
    Unavailable,
)
from kube_scheduler_operator.kube.resource import NAMESPACES, ObjectRef
from kube_scheduler_operator.operator.admission import decisions as module
from kube_scheduler_operator.operator.admission.decisions import (
    CANNOT_DECIDE,
    NAMESPACE_SECONDS,
    OUTDATED_SECONDS,
    REMEMBERED,
    NamespaceLabels,
    ReviewAnswer,
    ReviewDecisions,
)

from .webhook_client import SCHEDULER, assigned_to, review

REQUEST = ApiRequest("GET", "/x")
EXCLUDED = "kube-scheduler-operator"


class Cluster:
    """Namespaces.

    Attributes:
        namespaces: labels; an error is raised when they are read.
        reads: the namespaces that were read, in order.
        delay: seconds that each read takes.
    """

    def __init__(self) -> None:
        self.namespaces: dict[str, Mapping[str, str] | KubeError] = {"jobs": {"team": "batch"}}
        self.reads: list[str] = []
        self.delay = 0.0

    async def get(self, ref: ObjectRef) -> dict[str, Any]:
        assert ref.resource == NAMESPACES
        self.reads.append(ref.name)
        await asyncio.sleep(self.delay)
        found = self.namespaces.get(ref.name, NotFound(REQUEST, status=404))
        if isinstance(found, KubeError):
            raise found
        return {"metadata": {"name": ref.name, "labels": found}}


class Decided:
    """The decisions of a process."""

    def __init__(self, cluster: Cluster) -> None:
        api: Any = cluster
        self.cluster = cluster
        self.decisions = ReviewDecisions(api, [EXCLUDED])
        self.decisions.use([SCHEDULER])

    async def about(self, body: bytes, address: str = "10.0.0.1") -> ReviewAnswer:
        found = self.decisions.decide(body, address)
        return await found if inspect.isawaitable(found) else found

    async def scheduler_of(self, **of: Any) -> str:
        answer = await self.about(review(**of))
        scheduler = assigned_to(answer.status, answer.body)
        assert answer.result == ("assigned" if scheduler else "unchanged")
        return scheduler


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def decided(cluster: Cluster) -> Decided:
    return Decided(cluster)


async def test_a_selected_pod_is_assigned_and_others_stay_unchanged(decided: Decided) -> None:
    decided.cluster.namespaces["web"] = {"team": "web"}
    assert await decided.scheduler_of() == "packed"
    assert await decided.scheduler_of(namespace="web") == ""
    assert await decided.scheduler_of(schedulerName="own") == ""
    assert await decided.scheduler_of(namespace=EXCLUDED) == ""


async def test_an_assignment_that_was_taken_away_ends_at_once(decided: Decided) -> None:
    assert await decided.scheduler_of() == "packed"
    decided.decisions.use([])
    assert await decided.scheduler_of() == ""


@pytest.mark.parametrize(
    "error",
    [NotFound(REQUEST, status=404), Unavailable(REQUEST, status=503)],
    ids=["deleted", "no answer"],
)
async def test_an_unknown_namespace_is_an_error_that_admits_the_pod(
    decided: Decided, error: KubeError
) -> None:
    decided.cluster.namespaces["jobs"] = error
    assert await decided.about(review()) == ReviewAnswer(503, b"cannot decide\n", result="error")
    decided.cluster.namespaces["jobs"] = {"team": "batch"}
    assert await decided.scheduler_of() == "packed"


async def test_a_namespace_that_is_read_too_slowly_ends_the_request(
    decided: Decided, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.1)
    decided.cluster.delay = 30.0
    assert await decided.about(review()) == CANNOT_DECIDE


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (RuntimeError("a defect"), ReviewAnswer(500, b"cannot decide\n", result="error")),
        (MemoryError(), ReviewAnswer(503, b"cannot decide\n", result="error")),
    ],
    ids=["defect", "memory"],
)
async def test_a_failure_is_contained_in_its_request(
    decided: Decided, monkeypatch: pytest.MonkeyPatch, error: BaseException, answer: ReviewAnswer
) -> None:
    def fails(*_: Any) -> str:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(module, "parse_json", fails)
        assert await decided.about(review()) == answer
    assert await decided.scheduler_of() == "packed"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", b"the body is not JSON\n"),
        (b"\xff\xfe", b"the body is not JSON\n"),
        (b"[" * 90_000, b"the body is not JSON\n"),
        (b"{}", b"the body is not an AdmissionReview of admission.k8s.io/v1\n"),
        (review().replace(b"CREATE", b"UPDATE"), b"the request is not about a new Pod\n"),
        (review().replace(b"of-the-request", b""), b"request.uid is missing\n"),
        (review(".."), b"request.namespace is not the name of a namespace\n"),
    ],
    ids=["empty", "no text", "nested", "another object", "operation", "no uid", "namespace"],
)
async def test_the_answer_names_what_makes_a_body_invalid(
    decided: Decided, body: bytes, message: bytes
) -> None:
    assert await decided.about(body) == ReviewAnswer(400, message, result="invalid")
    assert decided.cluster.reads == []


# --- labels of namespaces -------------------------------------------------------------------------


async def test_pods_that_are_created_together_share_one_read(decided: Decided) -> None:
    decided.cluster.delay = 0.01
    found = await asyncio.gather(*(decided.scheduler_of() for _ in range(300)))
    assert set(found) == {"packed"}
    assert decided.cluster.reads == ["jobs"]


async def test_an_address_that_names_many_namespaces_is_busy_and_no_other_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "READS", 0.001)
    monkeypatch.setattr(module, "READS_AT_ONCE", 5)
    decided = Decided(cluster)
    found = [(await decided.about(review(f"n{number}"))).status for number in range(10)]
    assert found == [503] * 5 + [429] * 5
    answer = await decided.about(review(), "10.0.0.2")
    assert assigned_to(answer.status, answer.body) == "packed"


async def test_labels_are_remembered_for_a_while_and_errors_are_not(cluster: Cluster) -> None:
    api: Any = cluster
    time = 0.0
    labels = NamespaceLabels(lambda: time)
    assert await labels.of(api, "jobs") == {"team": "batch"}
    cluster.namespaces["jobs"] = {"team": "web"}
    time = NAMESPACE_SECONDS - 0.1
    assert await labels.of(api, "jobs") == {"team": "batch"}
    time = NAMESPACE_SECONDS
    assert await labels.of(api, "jobs") == {"team": "web"}
    for _ in range(2):
        with pytest.raises(NotFound):
            await labels.of(api, "away")
    assert cluster.reads == ["jobs", "jobs", "away", "away"]


async def test_labels_serve_for_minutes_while_they_cannot_be_read(cluster: Cluster) -> None:
    """The rights of an operator may end before its Pods, when it is upgraded or put back."""
    api: Any = cluster
    time = 0.0
    labels = NamespaceLabels(lambda: time)
    await labels.latest(api, "jobs")
    cluster.namespaces["jobs"] = Forbidden(REQUEST, status=403)
    time = OUTDATED_SECONDS - 0.1
    assert await labels.latest(api, "jobs") == {"team": "batch"}
    cluster.namespaces["jobs"] = NotFound(REQUEST, status=404)
    with pytest.raises(NotFound):
        await labels.latest(api, "jobs")
    cluster.namespaces["jobs"] = Forbidden(REQUEST, status=403)
    time = OUTDATED_SECONDS
    with pytest.raises(Forbidden):
        await labels.latest(api, "jobs")


async def test_labels_serve_while_reads_take_too_long(
    decided: Decided, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "NAMESPACE_SECONDS", 0.0)
    monkeypatch.setattr(module, "UNREAD_SECONDS", 0.05)
    assert await decided.scheduler_of() == "packed"
    decided.cluster.delay = 30.0
    assert await decided.scheduler_of() == "packed"
    assert decided.cluster.reads == ["jobs", "jobs"]


async def test_a_bounded_number_of_namespaces_is_remembered(cluster: Cluster) -> None:
    api: Any = cluster
    labels = NamespaceLabels(lambda: 0.0)
    for number in range(REMEMBERED + 1):
        cluster.namespaces[f"n{number}"] = {}
        await labels.of(api, f"n{number}")
    cluster.reads.clear()
    await labels.of(api, f"n{REMEMBERED}")
    await labels.of(api, "n1")
    assert cluster.reads == []
    await labels.of(api, "n0")
    assert cluster.reads == ["n0"]
