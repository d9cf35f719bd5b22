"""Every optional field of the operator's own kinds, with the zero value that programs in Go write.

The API server accepts it and the operator takes it as unset, or the field is in REFUSED and its
description has the alternative. OpenShift's kinds: test_typed_client.py.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from kube_scheduler_operator.base import names

from ..unit.crds.test_crds import schema
from ..unit.crds.zero_values import REFUSED, Case, adjust, cases
from .conftest import RefusedError

if TYPE_CHECKING:
    from .conftest import ApiServer

GROUP = "kube-scheduler-operator.dev"
KINDS = {
    names.LOADPOLICIES: "LoadPolicy",
    names.SCHEDULEREXTENDERS: "SchedulerExtender",
    names.SCHEDULERPROFILES: "SchedulerProfile",
    names.SECONDARYSCHEDULERS: "SecondaryScheduler",
}


@pytest.mark.timeout(180, func_only=True)
@pytest.mark.parametrize("name", KINDS)
def test_zero_values_of_optional_fields_are_accepted_or_documented(
    name: str, api_server: ApiServer
) -> None:
    assert unexpected(api_server, name, KINDS[name]) == {}


def unexpected(server: ApiServer, name: str, kind: str, own: str = "") -> dict[str, str]:
    """The fields of a kind whose zero value is accepted or refused unexpectedly, and why.

    `own` is the name of the object; empty: any.
    """
    wrong = {}
    for case in cases(schema(name)):
        message = refusal(server, name, kind, case, own)
        refused = case.zero is not None and (
            case.path in REFUSED[name] or (case.zero == {} and "required" in case.schema)
        )
        if bool(message) != refused:
            wrong[case.id] = message or "accepted, although zero_values.REFUSED lists it"
    return wrong


def refusal(server: ApiServer, name: str, kind: str, case: Case, own: str) -> str:
    """The API server's message about an object with the field; empty if it accepts it."""
    path = f"/apis/{GROUP}/v1alpha1/{name.partition('.')[0]}"
    own = own or f"zero-{uuid.uuid4().hex[:8]}"
    obj: dict[str, Any] = {
        "apiVersion": f"{GROUP}/v1alpha1", "kind": kind, "metadata": {"name": own},
        "spec": adjust(name, {}), **adjust(name, case.value, case.path),
    }  # fmt: skip
    try:
        created = server.request("POST", f"{path}?fieldValidation=Strict", obj)
        if "status" in obj:
            whole = {**created, "status": obj["status"]}
            server.request("PUT", f"{path}/{own}/status?fieldValidation=Strict", whole)
    except RefusedError as error:
        return str(error)
    finally:
        with suppress(RefusedError):
            server.request("DELETE", f"{path}/{own}")
    return ""
