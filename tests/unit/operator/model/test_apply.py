"""Own objects are created when missing, updated when different, and otherwise not written."""

from __future__ import annotations

from typing import Any

import pytest

from kube_scheduler_operator.kube.resource import CONFIG_MAPS, ROLES, SECRETS
from kube_scheduler_operator.operator.model.apply import apply, contains, keep
from kube_scheduler_operator.operator.model.plan import Action, Create, Delete, Replace

LABELS = {"app.kubernetes.io/managed-by": "kube-scheduler-operator"}


def obj(kind: str, data: dict[str, str], **fields: Any) -> dict[str, Any]:
    metadata = {"name": "it", "namespace": "there", "labels": LABELS}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": data, **fields}


def found(**fields: Any) -> dict[str, Any]:
    """What is in the API; `labels` and `annotations` belong to its metadata."""
    metadata = {
        "name": "it",
        "namespace": "there",
        "resourceVersion": "7",
        "labels": fields.pop("labels", LABELS),
        "annotations": fields.pop("annotations", {}),
    }
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {}, **fields}


def reported(actions: tuple[Action, ...]) -> list[str]:
    return [f"{event.reason}: {event.message}" for a in actions for event in a.events]


def test_a_missing_object_is_created() -> None:
    actions = apply(CONFIG_MAPS, {}, obj("ConfigMap", {"a": "1"}), ("data",))
    assert actions == (Create(CONFIG_MAPS, obj("ConfigMap", {"a": "1"}), actions[0].events),)
    assert reported(actions) == [
        "ConfigMapCreated: Created ConfigMap/it -n there because it was missing"
    ]


SAME = {
    "the same": found(data={"a": "1"}),
    "with a foreign label": found(data={"a": "1"}, labels={**LABELS, "x": "y"}),
    "with annotations": found(data={"a": "1"}, annotations={"x": "y"}),
    "with an unknown field": found(data={"a": "1"}, binaryData={"b": "Yg=="}),
}


@pytest.mark.parametrize("existing", SAME.values(), ids=SAME.keys())
def test_a_correct_object_is_not_written(existing: dict[str, Any]) -> None:
    assert apply(CONFIG_MAPS, {"it": existing}, obj("ConfigMap", {"a": "1"}), ("data",)) == ()


WRONG = {
    "other data": (found(data={"a": "2"}), "data"),
    "more data": (found(data={"a": "1", "b": "2"}), "data"),
    "no data": (found(), "data"),
    "own label is missing": (found(data={"a": "1"}, labels={"x": "y"}), "labels"),
    "own label differs": (found(data={"a": "1"}, labels={next(iter(LABELS)): "y"}), "labels"),
}


@pytest.mark.parametrize(("existing", "why"), WRONG.values(), ids=WRONG.keys())
def test_a_different_object_is_corrected(existing: dict[str, Any], why: str) -> None:
    (action,) = apply(CONFIG_MAPS, {"it": existing}, obj("ConfigMap", {"a": "1"}), ("data",))
    assert isinstance(action, Replace)
    assert action.obj["data"] == {"a": "1"}
    assert action.obj["metadata"]["labels"] == {**existing["metadata"]["labels"], **LABELS}
    assert action.obj["metadata"]["resourceVersion"] == "7"
    assert reported((action,)) == [
        f"ConfigMapUpdated: Updated ConfigMap/it -n there because {why} changed"
    ]


def test_an_immutable_object_is_recreated() -> None:
    existing = found(immutable=True)
    actions = apply(CONFIG_MAPS, {"it": existing}, obj("ConfigMap", {"a": "1"}), ("data",))
    assert [type(action) for action in actions] == [Delete, Create]


def test_a_secret_of_another_type_is_recreated() -> None:
    wanted = obj("Secret", {"a": "MQ=="}, type="kubernetes.io/tls")
    existing = {**found(data={"a": "MQ=="}), "kind": "Secret", "type": "Opaque"}
    actions = apply(SECRETS, {"it": existing}, wanted, ("data",))
    assert [type(action) for action in actions] == [Delete, Create]
    assert reported(actions) == ["SecretUpdated: Updated Secret/it -n there because type changed"]


def test_events_never_contain_the_data_of_a_secret() -> None:
    wanted = obj("Secret", {"tls.key": "c2VjcmV0"}, type="kubernetes.io/tls")
    existing = {**found(), "kind": "Secret", "type": "kubernetes.io/tls"}
    for there in ({}, {"it": existing}):
        assert "c2VjcmV0" not in str(reported(apply(SECRETS, there, wanted, ("data",))))


# --- objects that the API server completes --------------------------------------------------------

OWNER = {"apiVersion": "v1", "kind": "Boss", "name": "boss", "uid": "1", "controller": True}


def role(**fields: Any) -> dict[str, Any]:
    metadata = {"name": "it", "namespace": "there", "labels": LABELS, "ownerReferences": [OWNER]}
    return {"kind": "Role", "metadata": metadata, "rules": [{"verbs": ["get"]}], **fields}


def kept(**fields: Any) -> dict[str, Any]:
    """The same object with the defaults of the API server."""
    whole = role(**fields)
    metadata = {**whole["metadata"], "resourceVersion": "7", "annotations": {"x": "y"}}
    return {**whole, "metadata": metadata, "rules": fields.get("rules", [{**RULE, "more": 1}])}


RULE = {"verbs": ["get"], "apiGroups": [""]}


def test_a_missing_object_is_created_unless_it_has_another_owner() -> None:
    (action,) = keep(ROLES, {}, role(), ("rules",))
    assert isinstance(action, Create)
    assert action.exclusive


def test_defaults_of_the_api_server_are_kept() -> None:
    assert keep(ROLES, {"it": kept()}, role(), ("rules",)) == ()


@pytest.mark.parametrize(
    ("existing", "why"),
    [
        (kept(rules=[{"verbs": ["get", "list"]}]), "rules"),
        (kept(rules=[]), "rules"),
        ({**kept(), "metadata": {**kept()["metadata"], "labels": {}}}, "metadata"),
        (
            {
                **kept(),
                "metadata": {
                    **kept()["metadata"],
                    "ownerReferences": [{**OWNER, "uid": "the one before"}],
                },
            },
            "metadata",
        ),
    ],
    ids=["more", "less", "labels", "owner"],
)
def test_changed_fields_are_restored(existing: dict[str, Any], why: str) -> None:
    (action,) = keep(ROLES, {"it": existing}, role(), ("rules",))
    assert isinstance(action, Replace)
    metadata = action.obj["metadata"]
    assert metadata["labels"] == LABELS
    assert metadata["ownerReferences"] == [OWNER]
    assert (metadata["resourceVersion"], metadata["annotations"]) == ("7", {"x": "y"})
    assert reported((action,)) == [f"RoleUpdated: Updated Role/it -n there because {why} changed"]


@pytest.mark.parametrize(
    ("found", "wanted", "does"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], [1], False),
        ([{"a": 1, "b": 2}], [{"a": 1}], True),
        (None, {}, True),
        (None, [], True),
        (None, {"a": 1}, False),
        ({}, {"a": {}}, True),
        ("x", {"a": 1}, False),
        ("x", ["x"], False),
        (0, 0, True),
        (None, 0, False),
    ],
)
def test_contains(found: Any, wanted: Any, *, does: bool) -> None:
    assert contains(found, wanted) is does
