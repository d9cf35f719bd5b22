"""The definition of SecondarySchedulers is read again and again, and need not be readable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest

from kube_scheduler_operator.kube.api import Api
from kube_scheduler_operator.kube.errors import ApiRequest, from_response
from kube_scheduler_operator.kube.resource import ObjectRef
from kube_scheduler_operator.operator.engine.secondary_kind import SecondaryKind


class Answers:
    """An API server that gives one answer after the other: a uid, or a status code."""

    def __init__(self, *answers: str | int) -> None:
        self.answers = list(answers)

    async def get(self, ref: ObjectRef) -> Mapping[str, Any]:
        assert ref.name == "secondaryschedulers.kube-scheduler-operator.dev"
        answer = self.answers.pop(0)
        if isinstance(answer, int):
            request = ApiRequest("get", ref.path, ref.resource, ref.namespace, ref.name)
            raise from_response(request, answer, "no")
        return {"metadata": {"name": ref.name, "uid": answer}}


@pytest.mark.parametrize(
    ("answers", "uids", "changes"),
    [
        (["a", "a"], ["a", "a"], 1),
        (["a", "b"], ["a", "b"], 2),
        (["a", 503], ["a", "a"], 1),
        (["a", 404, "b"], ["a", "", "b"], 3),
        (["a", 403], ["a", ""], 2),
        ([403, 403, "a"], ["", "", "a"], 1),
    ],
    ids=str,
)
async def test_the_uid_is_that_of_the_last_answer(
    answers: list[str | int], uids: list[str], changes: int
) -> None:
    seen: list[str] = []
    kind = SecondaryKind(lambda: seen.append("changed"))
    api, found = cast("Api", Answers(*answers)), []
    for _ in answers:
        await kind.read(api)
        found.append(kind.uid)
    assert (found, len(seen)) == (uids, changes)


async def test_a_problem_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    kind = SecondaryKind(lambda: None)
    for _ in range(3):
        await kind.read(cast("Api", Answers(403)))
    assert len([r for r in caplog.records if "Cannot read the definition" in r.message]) == 1
